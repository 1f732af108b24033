"use strict";
// The page of one bandit: asks for data, draws it, and keeps it up to date.
(() => {
  const root = document.getElementById("bandit");
  const api = `/v1/bandits/${encodeURIComponent(root.dataset.bandit)}`;
  const view = { since: 0, until: 0, span: 900, fixed: null, data: null, names: [], shown: [], marks: [], paused: false, zoom };
  let known = "", busy = false, again = false, young = true;

  async function get(path) {
    const response = await fetch(api + path, { headers: { accept: "application/json" } });
    const body = await response.json();
    if (!response.ok) throw new Error(body.error);
    return body;
  }

  function say(text, bad) {
    const notice = document.getElementById("notice");
    notice.textContent = text;
    notice.classList.toggle("bad", Boolean(bad));
  }

  function cell(text, number) {
    const td = document.createElement("td");
    if (text instanceof Node) td.append(text); else td.textContent = text;
    if (number) td.className = "number";
    return td;
  }

  function fill(id, rows, note) {
    const table = document.getElementById(id);
    if (note) {
      const last = cell(note);
      last.colSpan = table.querySelectorAll("th").length;
      last.className = "note";
      rows = [...rows, [last]];
    }
    table.querySelector("tbody").replaceChildren(...rows.map((cells) => {
      const tr = document.createElement("tr");
      tr.append(...cells);
      return tr;
    }));
  }

  const text = (arm) => (typeof arm === "string" ? arm : JSON.stringify(arm));

  // ---- the time range ---------------------------------------------------------------------------------------------

  function query() {
    if (view.fixed) return `?since=${view.fixed[0]}&until=${view.fixed[1]}`;
    const step = Math.max(1, view.span / 240); // a range that moves in steps is counted once for several requests
    return view.span ? `?since=${Math.round((Math.floor(Date.now() / 1e3 / step) * step - view.span) * 1e6)}` : "";
  }

  function zoom(low, high) {
    if (high - low < 1e6) return;
    view.fixed = [low, high];
    refresh(true);
  }

  function pressed() {
    for (const button of document.querySelectorAll(".ranges button[data-seconds]")) {
      button.setAttribute("aria-pressed", String(!view.fixed && Number(button.dataset.seconds) === view.span));
    }
    const range = document.getElementById("range");
    range.textContent = view.data ? `${new Date(view.since / 1e3).toLocaleString()} – ${new Date(view.until / 1e3).toLocaleString()}` +
      (view.fixed ? "" : ". Drag over a chart to look closer.") : "";
    range.dataset.since = view.since;
    range.dataset.until = view.until;
  }

  // ---- drawing ----------------------------------------------------------------------------------------------------

  function legend() {
    const now = JSON.stringify([view.data.arms, view.data.retired]);
    if (now === known) return;
    const first = known === "";
    known = now;
    const box = document.getElementById("legend");
    const off = new Set([...box.querySelectorAll("input:not(:checked)")].map((input) => input.value));
    const busiest = new Set(busiestArms());
    box.querySelectorAll("label").forEach((label) => label.remove());
    view.names.forEach((name, slot) => {
      if (view.last[slot] !== slot) return; // retired and added again: one entry for both
      const label = document.createElement("label"), input = document.createElement("input");
      input.type = "checkbox";
      input.value = String(slot);
      input.checked = first ? busiest.has(slot) : !off.has(String(slot));
      input.addEventListener("change", () => { choose(); draw(); });
      const swatch = document.createElementNS("http://www.w3.org/2000/svg", "svg");
      swatch.setAttribute("class", "swatch");
      swatch.setAttribute("aria-hidden", "true");
      const square = document.createElementNS("http://www.w3.org/2000/svg", "rect");
      square.setAttribute("width", "14");
      square.setAttribute("height", "14");
      square.setAttribute("rx", "3");
      square.setAttribute("fill", drift.colour(slot));
      swatch.append(square);
      label.append(input, swatch, name + (view.data.retired.includes(slot) ? " (retired)" : view.data.fixed === slot ? " (fixed)" : ""));
      box.append(label);
    });
    choose();
  }

  // Of many arms those that are played most, at first.
  function busiestArms() {
    const all = view.names.map((_, slot) => slot).filter((slot) => view.last[slot] === slot);
    if (all.length <= 12) return all;
    const total = all.map((slot) => view.data.history.decisions.reduce((sum, row) => sum + row[slot], 0));
    return all.sort((a, b) => total[b] - total[a]).slice(0, 8);
  }

  function choose() {
    const chosen = new Set([...document.querySelectorAll("#legend input:checked")].map((input) => Number(input.value)));
    view.shown = view.last.map((last, slot) => slot).filter((slot) => chosen.has(view.last[slot]));
  }

  function draw() {
    if (!view.data) return;
    drift.shares(view);
    drift.beliefs(view, "beliefs", view.data.beliefs, view.data.truth);
    drift.weights(view);
    drift.densities(view);
    drift.delays(view);
  }

  async function refresh(now) {
    if (busy) { again = again || now; return; }
    busy = true;
    try {
      const wide = Math.max(60, Math.min(300, Math.floor(document.getElementById("shares").clientWidth / 3)));
      const path = query();
      view.data = await get(`/charts${path}${path ? "&" : "?"}points=${wide}`);
      if (young) { // a bandit of a few minutes is shown whole
        young = false;
        if (view.data.first != null && view.data.until - view.data.first < 3e8) {
          view.span = 0;
          view.data = await get(`/charts?points=${wide}`);
        }
      }
      const arms = view.data.arms.map((arm) => JSON.stringify(arm));
      view.names = view.data.arms.map(text);
      view.last = drift.owners(arms.map((arm) => arms.lastIndexOf(arm))); // by slot: the newest of the same name
      view.since = view.data.since;
      view.until = view.data.until;
      const [now, recent, { changes }] = await Promise.all([get("/arms"), get("/decisions?limit=15"), get("/changes")]);
      view.marks = changes;
      legend();
      pressed();
      draw();
      tables(now, recent);
      await greedy();
      document.body.dataset.drawn = String(Number(document.body.dataset.drawn || 0) + 1);
    } catch (error) {
      say(error.message, true);
    } finally {
      busy = false;
      if (again) { again = false; refresh(false); }
    }
  }

  function tables(arms, recent) {
    const most = Math.max(1e-9, ...arms.arms.map((row) => row.weight || 0));
    const active = arms.arms.filter((row) => !row.retired);
    if (active.length > 12) active.sort((a, b) => b.probability - a.probability);
    const counts = counted(), total = Math.max(1, [...counts.values()].reduce((sum, one) => sum + one.shown, 0));
    fill("arms", active.slice(0, 50).map((row) => {
      const meter = document.createElement("meter");
      meter.max = most;
      meter.value = row.weight || 0;
      const weight = document.createElement("span");
      weight.append(meter, ` ${drift.short(row.weight)}`);
      const { shown, rewarded, sum } = counts.get(JSON.stringify(row.arm)) || { shown: 0, rewarded: 0, sum: 0 };
      return [cell(text(row.arm)), cell(shown.toLocaleString(), true), cell(rewarded.toLocaleString(), true), cell(rewarded ? drift.short(sum / rewarded) : "–", true),
        cell(`${(100 * shown / total).toFixed(1)}%`, true), cell(`${(100 * row.probability).toFixed(1)}%`, true), cell(drift.short(row.mean), true), cell(drift.short(row.spread), true), cell(weight)];
    }), active.length > 50 ? `The 50 most likely of ${active.length} arms.` : "");
    const open = new Set([...document.querySelectorAll("#recent .why")].map((place) => place.dataset.id));
    if (!open.size) fill("recent", recent.decisions.map(decided), recent.decisions.length ? "" : "No decisions yet.");
    fill("changes", view.marks.slice(-20).reverse().map((row) => [cell(new Date(row.at / 1e3).toLocaleString()), cell(row.what), cell(row.who)]));
  }

  // The answer for previews; with features, it belongs to the context that is asked about.
  async function greedy() {
    const place = document.getElementById("greedy");
    if (place && !place.closest("#context")) place.textContent = text((await get("/greedy")).arm);
  }

  // By arm, of the time shown: decisions, outcomes and the sum of their rewards.
  function counted() {
    const { decisions, outcomes, rewards } = view.data.history, found = new Map();
    view.data.arms.forEach((arm, slot) => {
      const one = found.get(JSON.stringify(arm)) || { shown: 0, rewarded: 0, sum: 0 };
      const add = (rows) => rows.reduce((sum, row) => sum + row[slot], 0);
      found.set(JSON.stringify(arm), { shown: one.shown + add(decisions), rewarded: one.rewarded + add(outcomes), sum: one.sum + add(rewards) });
    });
    return found;
  }

  function decided(row) {
    const { decision } = row, id = document.createElement("code"), why = document.createElement("button");
    id.textContent = decision.id.length > 20 ? `${decision.id.slice(0, 6)}…${decision.id.slice(-8)}` : decision.id;
    id.title = decision.id;
    why.type = "button";
    why.textContent = "Why?";
    why.addEventListener("click", () => explain(why, decision.id));
    const reward = row.outcome == null ? (row.added == null ? "–" : `${drift.short(row.added)} (added so far)`) : `${drift.short(row.reward)}${row.outcome === "default" ? " (default)" : row.waiting ? " (waiting)" : ""}${row.late == null ? "" : `, late: ${drift.short(row.late)}`}`;
    return [cell(new Date(decision.at / 1e3).toLocaleTimeString()), cell(text(decision.arm)), cell(decision.how), cell(reward, true), cell(id), cell(why)];
  }

  async function explain(button, id) {
    const place = document.createElement("span");
    place.className = "why";
    place.dataset.id = id;
    button.replaceWith(place);
    try {
      const why = await get(`/decisions/${encodeURIComponent(id)}/why`);
      const scores = why.scores.slice(0, 12).map((s) => `${text(s.arm)}: ${s.score == null ? "" : `sampled ${drift.short(s.score)}, `}probability ${(100 * s.probability).toFixed(1)}%`);
      place.textContent = `${id}: ${why.text} ${why.proved ? "Proved again." : "The recomputed decision differs!"} ${scores.join("; ")}.`;
    } catch (error) {
      place.textContent = error.message;
    }
  }

  // ---- explanation, uplift, audit --------------------------------------------------------------------------

  async function believes() {
    const place = document.getElementById("explanation");
    if (!place) return;
    try {
      const found = await get("/explanation");
      place.textContent = found.learned == null ? "This policy has no beliefs about changes." : found.text.split("\n  ")[0]; // the arms are in the table
    } catch (error) {
      place.textContent = error.message;
    }
  }

  async function uplift() {
    const box = document.getElementById("uplift"), note = document.createElement("p");
    try {
      const found = root.dataset.heldBack ? await get("/uplift") : { n_baseline: 0, low: null };
      note.textContent = found.n_baseline ? found.text : "Nothing is held back: without a holdback the uplift of the policy cannot be measured.";
      box.replaceChildren(note);
      if (found.low != null) box.append(interval(found));
    } catch (error) {
      note.textContent = error.message;
      box.replaceChildren(note);
    }
  }

  function interval({ low, high, difference }) {
    const ns = "http://www.w3.org/2000/svg", svg = document.createElementNS(ns, "svg");
    const far = 1.2 * Math.max(Math.abs(low), Math.abs(high), 1e-9), x = (v) => 200 + (180 * v) / far;
    svg.setAttribute("viewBox", "0 0 400 60");
    svg.setAttribute("class", "interval");
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", `difference ${drift.short(difference)}, from ${drift.short(low)} to ${drift.short(high)}`);
    const add = (name, attributes, words) => {
      const part = document.createElementNS(ns, name);
      for (const [key, value] of Object.entries(attributes)) part.setAttribute(key, value);
      if (words) part.textContent = words;
      svg.append(part);
    };
    add("line", { x1: 200, x2: 200, y1: 5, y2: 45, class: "zero" });
    add("line", { x1: x(low), x2: x(high), y1: 25, y2: 25 });
    add("circle", { cx: x(difference), cy: 25, r: 5 });
    add("text", { x: 200, y: 57, "text-anchor": "middle" }, "0");
    add("text", { x: x(low), y: 14, "text-anchor": "middle" }, drift.short(low));
    add("text", { x: x(high), y: 14, "text-anchor": "middle" }, drift.short(high));
    return svg;
  }

  async function audit(begin) {
    const place = document.getElementById("audit");
    let found = begin ? await (await fetch(`${api}/audit`, { method: "POST", body: "{}" })).json() : await get("/audit");
    for (;;) {
      const words = { never: "Not audited since the service started.", running: "Recomputing every decision …", failed: "The audit failed: " + (found.differences || []).join("; "),
        proved: `Proved: ${found.decisions} decisions and ${found.events} events were recomputed and are as written.`, differs: `It differs: ${(found.differences || []).join("; ")}`,
        "proved in part": `Proved in part. Not recomputed: ${(found.unproved || []).join("; ")}.` };
      place.textContent = words[found.state] || found.error;
      place.className = found.state === "proved" ? "ok" : found.state === "differs" || found.state === "failed" ? "bad-word" : "";
      if (found.state !== "running") return;
      await new Promise((done) => setTimeout(done, 500));
      found = await get("/audit");
    }
  }

  // ---- beginning --------------------------------------------------------------------------------------------------

  for (const button of document.querySelectorAll(".ranges button[data-seconds]")) {
    button.addEventListener("click", () => { view.fixed = null; view.span = Number(button.dataset.seconds); refresh(true); });
  }
  document.getElementById("pause").addEventListener("click", (event) => {
    view.paused = !view.paused;
    event.target.setAttribute("aria-pressed", String(view.paused));
  });
  document.getElementById("prove").addEventListener("click", () => audit(true).catch((error) => say(error.message, true)));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { known = ""; if (view.data) { legend(); draw(); } });
  let resizing = 0;
  addEventListener("resize", () => { clearTimeout(resizing); resizing = setTimeout(draw, 150); });
  setInterval(() => { if (!view.paused && !view.fixed && !document.hidden) refresh(false); }, 2000);
  driftAdmin(api, say, () => refresh(true));
  const slot = (arm) => (view.data ? view.data.arms.map((one) => JSON.stringify(one)).lastIndexOf(JSON.stringify(arm)) : 0);
  const contexts = driftContext({ api, get, cell, fill, text, interval, slot });
  refresh(true).then(contexts);
  believes();
  uplift();
  setInterval(() => { if (!document.hidden && !view.paused) { believes(); uplift(); contexts(); } }, 15000);
  audit(false).catch((error) => say(error.message, true));
})();
