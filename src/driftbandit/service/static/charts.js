"use strict";
// The drawings of a bandit's page. Each is one function from data to a uPlot; texts go in as text, never as HTML.
const drift = (() => {
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  let owner = []; // by slot: the slot whose colour it has, where an arm was retired and added again
  const owners = (slots) => (owner = slots);
  const colour = (slot) => css(`--arm${(owner[slot] ?? slot) % 8}`);
  const dash = (slot) => (slot < 8 ? [] : slot < 16 ? [6, 3] : [2, 3]);
  const faint = (text, part) => text + Math.round(255 * part).toString(16).padStart(2, "0");
  const made = new Map(); // id of the place: its uPlot
  const sync = uPlot.sync("time");

  function axis(more) {
    return { stroke: css("--soft"), grid: { stroke: css("--line"), width: 1 }, ticks: { stroke: css("--line"), width: 1 }, ...more };
  }

  // Lines at the times of changes.
  function marked(marks) {
    return {
      hooks: {
        draw: (u) => {
          const { ctx, bbox } = u;
          ctx.save();
          ctx.lineWidth = devicePixelRatio;
          ctx.strokeStyle = css("--text");
          ctx.setLineDash([6, 3]);
          for (const mark of marks) {
            const x = u.valToPos(mark.at / 1e6, "x", true);
            if (x < bbox.left || x > bbox.left + bbox.width) continue;
            ctx.beginPath();
            ctx.moveTo(x, bbox.top);
            ctx.lineTo(x, bbox.top + bbox.height);
            ctx.stroke();
          }
          ctx.restore();
        },
      },
    };
  }

  // The values under the pointer, as text below the drawing, after the marks close to it.
  function describe(tip, words, marks, note) {
    tip.textContent = note;
    return { hooks: { setCursor: (u) => {
      if (u.cursor.idx == null) { tip.textContent = note; return; }
      const near = marks.filter((mark) => Math.abs(u.valToPos(mark.at / 1e6, "x") - u.cursor.left) < 6);
      tip.textContent = [...near.map((mark) => `${clock(mark.at / 1e6)}: ${mark.what}.`), words(u, u.cursor.idx)].join(" ");
    } } };
  }

  function place(id, options, data, words) {
    const box = document.getElementById(id);
    if (!box) return null;
    if (made.has(id)) { made.get(id).destroy(); made.delete(id); }
    box.replaceChildren();
    const tip = document.createElement("p");
    tip.className = "tip";
    const width = Math.max(240, box.clientWidth);
    const { marks, note, ...rest } = options;
    const full = { width, height: 230, legend: { show: false }, ...rest, plugins: [...(rest.plugins || []), describe(tip, words, marks || [], note || "")] };
    const chart = new uPlot(full, data, box);
    box.append(tip);
    made.set(id, chart);
    box.dataset.points = String(data[0].length);
    return chart;
  }

  function nothing(id, text) {
    if (made.has(id)) { made.get(id).destroy(); made.delete(id); }
    const box = document.getElementById(id);
    const note = document.createElement("p");
    note.className = "none";
    note.textContent = text;
    box.replaceChildren(note);
    box.dataset.points = "0";
  }

  function timed(view, more) {
    return {
      cursor: { sync: { key: sync.key }, drag: { x: true, y: false, setScale: false } },
      scales: { x: { time: true, range: [view.since / 1e6, view.until / 1e6] }, y: more.y || {} },
      hooks: {
        setSelect: [(u) => {
          if (u.select.width < 4) return;
          const low = u.posToVal(u.select.left, "x"), high = u.posToVal(u.select.left + u.select.width, "x");
          u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          view.zoom(Math.round(low * 1e6), Math.round(high * 1e6));
        }],
      },
      plugins: [marked(view.marks)],
      marks: view.marks,
    };
  }

  // Times on the axis in one line: seconds where they matter, the day where it does.
  const pad = (n) => String(n).padStart(2, "0");
  function moments(u, ticks, _axis, _space, step) {
    return ticks.map((tick) => {
      const at = new Date(tick * 1000), time = `${pad(at.getHours())}:${pad(at.getMinutes())}`;
      if (step < 60) return `${time}:${pad(at.getSeconds())}`;
      if (step < 86400 && u.scales.x.max - u.scales.x.min < 129600) return time;
      return step < 86400 ? `${at.getMonth() + 1}/${at.getDate()} ${time}` : `${at.getMonth() + 1}/${at.getDate()}`;
    });
  }
  const times = () => axis({ values: moments, space: 80, size: 32 });

  const clock = (seconds) => new Date(seconds * 1000).toLocaleString();
  const short = (x) => (x == null ? "–" : Math.abs(x) >= 100 ? x.toFixed(0) : x.toPrecision(3));

  function shares(view) {
    const { starts, width, decisions } = view.data.history;
    const slots = view.shown;
    const x = starts.map((at) => at / 1e6);
    const parts = decisions.map((row) => { const all = row.reduce((a, b) => a + b, 0); return all ? row.map((n) => n / all) : null; });
    if (!parts.some(Boolean)) return nothing("shares", "No decisions in this time.");
    const tops = [], running = parts.map((row) => (row ? 0 : null));
    for (const slot of slots) {
      tops.push(running.map((sum, i) => (parts[i] ? (running[i] = sum + parts[i][slot]) : null)));
    }
    x.push(x[x.length - 1] + width / 1e6); // the last stretch has an end too
    for (const top of tops) top.push(null);
    const order = slots.map((_, i) => slots.length - 1 - i); // the highest first, the others over it
    const layer = (fill) => ({ stroke: fill, fill, width: 0, points: { show: false }, paths: uPlot.paths.stepped({ align: 1, alignGaps: 1 }) });
    const series = order.map((i) => layer(colour(slots[i])));
    const hidden = view.names.length - slots.length, whole = parts.map((row) => (row ? 1 : null));
    whole.push(null);
    const rest = (row) => Math.max(0, 1 - slots.reduce((sum, slot) => sum + row[slot], 0));
    return place("shares", {
      ...timed(view, { y: { range: [0, 1] } }), series: [{}, ...(hidden ? [layer(css("--line"))] : []), ...series],
      note: hidden ? `Grey: ${hidden} other arms.` : "",
      axes: [times(), axis({ values: (_, ticks) => ticks.map((v) => `${Math.round(100 * v)}%`), size: 56 })],
    }, [x, ...(hidden ? [whole] : []), ...order.map((i) => tops[i])], (u, i) => {
      const row = parts[Math.min(i, parts.length - 1)];
      if (!row) return `${clock(x[i])}: no decisions`;
      return `${clock(x[i])}: ` + [...slots.map((slot) => `${view.names[slot]} ${(100 * row[slot]).toFixed(0)}%`),
        ...(hidden ? [`other arms ${(100 * rest(row)).toFixed(0)}%`] : [])].join(", ");
    });
  }

  function beliefs(view, id, series, truth) {
    const x = series.times.map((at) => at / 1e6);
    if (!x.length || !series.mean.some((row) => row.some((v) => v != null))) return nothing(id, "This policy keeps no belief of each arm, or has learned nothing yet.");
    const lines = [{}], data = [x], bands = [];
    for (const slot of view.shown) {
      const mean = series.mean.map((row) => row[slot]);
      const spread = series.spread.map((row) => row[slot]);
      const first = lines.length;
      lines.push({ stroke: colour(slot), width: 2, dash: dash(slot), points: { show: false } });
      data.push(mean);
      const hidden = { stroke: "transparent", points: { show: false } };
      lines.push(hidden, hidden);
      data.push(mean.map((m, i) => (m == null || spread[i] == null ? null : m + spread[i])));
      data.push(mean.map((m, i) => (m == null || spread[i] == null ? null : m - spread[i])));
      bands.push({ series: [first + 1, first + 2], fill: faint(colour(slot), 0.16) });
      if (truth) {
        lines.push({ stroke: colour(slot), width: 1.5, dash: [7, 5], points: { show: false } });
        data.push(truth.map((row) => row[slot]));
      }
    }
    return place(id, { ...timed(view, {}), series: lines, bands, axes: [times(), axis({ size: 56 })] }, data, (u, i) =>
      `${clock(x[i])}: ` + view.shown.map((slot) => `${view.names[slot]} ${short(series.mean[i][slot])} ± ${short(series.spread[i][slot])}`).join(", "));
  }

  function weights(view) {
    const series = view.data.beliefs, x = series.times.map((at) => at / 1e6);
    if (!series.weight.some((row) => row.some((v) => v))) return nothing("weights", "This policy keeps no count of each arm, or has learned nothing yet.");
    const lines = view.shown.map((slot) => ({ stroke: colour(slot), width: 2, dash: dash(slot), points: { show: false } }));
    return place("weights", { ...timed(view, {}), series: [{}, ...lines], axes: [times(), axis({ size: 56 })] },
      [x, ...view.shown.map((slot) => series.weight.map((row) => row[slot]))],
      (u, i) => `${clock(x[i])}: ` + view.shown.map((slot) => `${view.names[slot]} ${short(series.weight[i][slot])}`).join(", "));
  }

  function densities(view) {
    const found = view.data.densities;
    if (!found) return nothing("densities", "This policy does not sample from a belief.");
    const slots = view.shown.filter((slot) => !view.data.retired.includes(slot));
    const lines = slots.map((slot) => ({ stroke: colour(slot), fill: faint(colour(slot), 0.18), width: 2, dash: dash(slot), points: { show: false } }));
    return place("densities", { cursor: { drag: { x: false, y: false } }, scales: { x: { time: false }, y: { range: (u, low, high) => [0, high || 1] } },
      series: [{}, ...lines], axes: [axis({ label: "reward", labelSize: 20, size: 42 }), axis({ size: 56 })] },
    [found.at, ...slots.map((slot) => found.density[slot])],
    (u, i) => `reward ${short(found.at[i])}: ` + slots.map((slot) => `${view.names[slot]} ${short(found.density[slot][i])}`).join(", "));
  }

  const span = (s) => (s < 1e-3 ? `${short(s * 1e6)} µs` : s < 1 ? `${short(s * 1e3)} ms` : s < 120 ? `${short(s)} s` : s < 7200 ? `${short(s / 60)} min` : s < 172800 ? `${short(s / 3600)} h` : `${short(s / 86400)} d`);

  function delays(view) {
    const { edges, counts, none, wait, text } = view.data.delays;
    if (text) document.querySelector("#delays + .note").textContent = `${text} The chart shows the last 1,000 decisions; the line is wait.`;
    if (!counts.length) return nothing("delays", none ? `${none} decisions, and no reward yet.` : "No decisions yet.");
    const logs = edges.map(Math.log10);
    const line = { hooks: { draw: (u) => {
      if (wait == null) return;
      const x = u.valToPos(Math.log10(wait), "x", true), { ctx, bbox } = u;
      if (x < bbox.left || x > bbox.left + bbox.width) return;
      ctx.save();
      ctx.strokeStyle = css("--warn");
      ctx.lineWidth = 2 * devicePixelRatio;
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
      ctx.restore();
    } } };
    return place("delays", { cursor: { drag: { x: false, y: false } }, plugins: [line],
      scales: { x: { time: false, range: [logs[0] - 0.02, Math.max(logs[logs.length - 1], wait ? Math.log10(wait) : -9) + 0.05] }, y: { range: (u, low, high) => [0, high || 1] } },
      series: [{}, { stroke: css("--arm0"), fill: faint(css("--arm0"), 0.4), width: 1, points: { show: false }, paths: uPlot.paths.stepped({ align: 1, alignGaps: 1 }) }],
      axes: [axis({ values: (_, ticks) => ticks.map((v) => span(10 ** v)), size: 32 }), axis({ size: 56 })] },
    [logs, [...counts, 0]],
    (u, i) => (i < counts.length ? `${span(edges[i])} to ${span(edges[i + 1])}: ${counts[i]} rewards` : "") + `; ${none} decisions without a reward`);
  }

  return { shares, beliefs, weights, densities, delays, colour, owners, short, span, css };
})();
