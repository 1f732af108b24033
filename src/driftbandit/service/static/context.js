"use strict";
// What features do: which of them matter, the best arm by level and hour, and what would be expected in a context.
const driftContext = ({ api, get, cell, fill, text, interval, slot }) => {
  const root = document.getElementById("context");
  if (!root) return () => {};
  const candidates = Boolean(root.dataset.candidates), form = document.getElementById("what-if");
  const MOST_ARMS = 8, MOST_CASES = 8, MOST_SENTENCES = 6;

  function head(id, words) {
    document.querySelector(`#${id} thead tr`).replaceChildren(...words.map((word, place) => {
      const th = document.createElement("th");
      th.scope = "col";
      th.textContent = word;
      if (place > 1) th.className = "number";
      return th;
    }));
  }

  // ---- what matters, in words ---------------------------------------------------------------------------------------

  function sentences(features) {
    const names = Object.keys(features || {}), useless = names.filter((name) => !features[name].length);
    const words = names.flatMap((name) => features[name].slice(0, MOST_SENTENCES));
    if (useless.length) words.push(`No effect on the choice is visible so far of ${useless.join(", ")}.`);
    if (!names.length) words.push("Nothing has been learned yet.");
    document.getElementById("matters").replaceChildren(...words.map((word) => {
      const li = document.createElement("li");
      li.textContent = word;
      return li;
    }));
  }

  function gains(found) {
    const box = document.getElementById("gain"), note = document.createElement("p");
    if (!box) return;
    note.className = "note";
    note.textContent = found == null ? "Not known yet." : `In the last ${found.contexts} contexts, the best arm of each is expected to be ${drift.short(found.gain)} better than always playing ` +
      `${text(found.arm)} (${found.low == null ? "or more: that arm is hardly played in other contexts" :
        `95% interval ${drift.short(found.low)} to ${drift.short(found.high)}`}).`;
    box.replaceChildren(note);
    if (found?.low != null) box.append(interval({ ...found, difference: found.gain }));
  }

  // ---- the map of the best arms -------------------------------------------------------------------------------------

  function strip(row, columns, best, lead, arms) {
    const ns = "http://www.w3.org/2000/svg", svg = document.createElementNS(ns, "svg");
    svg.setAttribute("viewBox", `0 0 ${columns.length} 1`);
    svg.setAttribute("preserveAspectRatio", "none");
    svg.setAttribute("role", "img");
    const names = best.map((place) => text(arms[place]));
    svg.setAttribute("aria-label", `${row}: ${columns.map((column, n) => `${column} ${names[n]}`).join(", ")}`);
    best.forEach((place, n) => {
      const rect = document.createElementNS(ns, "rect"), title = document.createElementNS(ns, "title");
      for (const [key, value] of Object.entries({ x: n, y: 0, width: 1, height: 1, fill: drift.colour(slot(arms[place])) })) rect.setAttribute(key, value);
      rect.setAttribute("fill-opacity", String(0.25 + 0.75 * Math.min(1, lead[n] / 2)));
      title.textContent = `${row} ${columns[n]}: ${names[n]}, ahead by ${lead[n].toFixed(1)} standard deviations`;
      rect.append(title);
      svg.append(rect);
    });
    return svg;
  }

  function map(found) {
    const table = document.getElementById("best");
    if (!table) return;
    if (!found.best) { fill("best", [[cell("Not known yet.")]]); return; }
    const { rows, columns, best, lead } = found.best, hours = document.createElement("div");
    hours.className = "hours";
    hours.append(...(columns.length > 1 ? ["0:00", "6:00", "12:00", "18:00", "24:00"] : []).map((word) => {
      const span = document.createElement("span");
      span.textContent = word;
      return span;
    }));
    table.querySelector("thead tr").replaceChildren(cell(""), cell(hours), cell("best"));
    fill("best", rows.map((row, n) => {
      const label = document.createElement("th"), most = mode(best[n]);
      label.scope = "row";
      label.textContent = row;
      return [label, cell(strip(row, columns, best[n], lead[n], found.arms)), cell(most.map((place) => text(found.arms[place])).join(", "))];
    }));
  }

  // The arms that are best somewhere in a row, the most frequent first.
  function mode(places) {
    const counts = new Map();
    for (const place of places) counts.set(place, (counts.get(place) || 0) + 1);
    return [...counts.keys()].sort((a, b) => counts.get(b) - counts.get(a)).slice(0, 3);
  }

  // ---- the table of effects -----------------------------------------------------------------------------------------

  function effects(found) {
    const arms = candidates ? ["Difference"] : found.arms.map(text), every = found.features.flatMap((one) => one.mean);
    const size = (arm) => every.reduce((sum, row) => sum + row[arm], 0);
    let shown = arms.map((_, place) => place);
    if (shown.length > MOST_ARMS) shown = shown.sort((a, b) => size(b) - size(a)).slice(0, MOST_ARMS);
    head("effects", ["Feature", "Value", ...shown.map((place) => arms[place])]);
    const rows = found.features.flatMap((one) => {
      const step = Math.ceil(one.cases.length / MOST_CASES);
      return one.cases.map((_, n) => n).filter((n) => n % step === 0).map((n, first) => [
        cell(first ? "" : `${one.feature}${one.matters ? "" : " (no visible effect)"}`), cell(one.cases[n]),
        ...shown.map((place) => number(one.mean[n], one.sd[n], place)),
      ]);
    });
    fill("effects", rows, rows.length ? (arms.length > MOST_ARMS ? `${MOST_ARMS} of ${arms.length} arms.` : "") : "Not known yet.");
  }

  function number(mean, sd, place) {
    const words = `${drift.short(mean[place])} ± ${drift.short(sd[place])}`, best = !candidates && mean[place] === (root.dataset.goal === "minimise" ? Math.min : Math.max)(...mean);
    if (!best) return cell(words, true);
    const bold = document.createElement("b");
    bold.textContent = words;
    return cell(bold, true);
  }

  // ---- what if ------------------------------------------------------------------------------------------------------

  function asked() {
    const out = {};
    for (const input of form.querySelectorAll("select, input")) {
      if (input.value === "") continue;
      const kind = input.dataset.kind;
      out[input.name] = kind === "number" ? Number(input.value) : kind === "flag" ? input.value === "=yes" : input.value.slice(1);
    }
    return out;
  }

  async function ask() {
    const body = candidates ? { candidates: { "this candidate": asked() } } : { context: asked() };
    const post = async (path) => {
      const response = await fetch(api + path, { method: "POST", body: JSON.stringify(body), headers: { accept: "application/json" } });
      const found = await response.json();
      if (!response.ok) throw new Error(found.error);
      return found;
    };
    const found = await post("/what-if"), greedy = document.getElementById("greedy");
    if (greedy) greedy.textContent = text((await post("/greedy")).arm);
    const rows = found.arms.sort((a, b) => b.probability - a.probability).slice(0, 50);
    fill("asked", rows.map((row) => [cell(text(row.arm)), cell(`${(100 * row.probability).toFixed(1)}%`, true), cell(drift.short(row.mean), true), cell(drift.short(row.spread), true)]));
  }

  const failed = (error) => fill("asked", [], error.message);
  form.addEventListener("submit", (event) => { event.preventDefault(); ask().catch(failed); });

  return async () => {
    try {
      const [found, explanation] = await Promise.all([get("/effects"), get("/explanation")]);
      sentences(explanation.features);
      gains(found.gain);
      map(found);
      effects(found);
      await ask();
    } catch (error) {
      const li = document.createElement("li");
      li.textContent = error.message;
      document.getElementById("matters").replaceChildren(li);
    }
    root.dataset.drawn = "yes";
  };
};
