// Draws runs of DS-TS that the library played when this page was built. Nothing here knows how the policy works:
// means, spreads, plays and rewards all come from the numbers above.
(function () {
  "use strict";
  const root = document.getElementById("forgetting");
  const data = JSON.parse(document.getElementById("forgetting-data").textContent);
  const chart = root.querySelector(".forgetting-chart");
  const bells = root.querySelector(".forgetting-bells");
  const words = root.querySelector(".forgetting-words");
  const play = root.querySelector(".forgetting-play");
  const round = root.querySelector(".forgetting-round");
  const gamma = root.querySelector(".forgetting-gamma");
  const tau = root.querySelector(".forgetting-tau");
  const LEFT = 30, RIGHT = 10, TOP = 18, HEIGHT = 300, STRIP = 34, LOW = -0.3, HIGH = 1.2, BELLS = 110;
  let timer = null;

  round.max = data.horizon;
  gamma.max = data.gammas.length - 1;
  tau.max = data.taus.length - 1;
  [gamma.value, tau.value] = data.start;
  round.value = data.horizon;

  function run() {
    return data.runs[gamma.value][tau.value];
  }

  function tag(name, attributes, text) {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const key in attributes) element.setAttribute(key, attributes[key]);
    if (text !== undefined) element.textContent = text;
    return element;
  }

  function path(points) {
    return "M" + points.map((point) => point[0].toFixed(1) + " " + point[1].toFixed(1)).join("L");
  }

  function drawChart(t) {
    const width = Math.max(chart.clientWidth, 260), floor = HEIGHT - STRIP - 22;
    const x = (s) => LEFT + (width - LEFT - RIGHT) * s / data.horizon;
    const y = (v) => TOP + (floor - TOP) * (HIGH - v) / (HIGH - LOW);
    const parts = [];
    [0, 0.5, 1].forEach((v) => {
      parts.push(tag("line", { x1: LEFT, x2: width - RIGHT, y1: y(v), y2: y(v), class: "grid" }));
      parts.push(tag("text", { x: LEFT - 5, y: y(v) + 4, "text-anchor": "end" }, String(v)));
    });
    parts.push(tag("line", { x1: x(data.change), x2: x(data.change), y1: TOP, y2: HEIGHT - 20, class: "faint" }));
    parts.push(tag("text", { x: x(data.change), y: TOP - 6, "text-anchor": "middle" }, "the environment changes"));
    data.names.forEach((name, arm) => {
      const colour = data.colours[arm], mean = run().mean[arm], sd = run().sd[arm];
      const upper = [], lower = [], middle = [];
      for (let s = 0; s <= t; s++) {
        const m = mean[s] / data.scale, d = sd[s] / data.scale;
        upper.push([x(s), y(Math.min(m + d, HIGH))]);
        lower.push([x(s), y(Math.max(m - d, LOW))]);
        middle.push([x(s), y(m)]);
      }
      parts.push(tag("path", { d: path(upper.concat(lower.reverse())) + "Z", fill: colour, "fill-opacity": 0.2 }));
      parts.push(tag("path", { d: path(middle), fill: "none", stroke: colour, "stroke-width": 2 }));
      const [before, after] = data.true[arm].map((v) => y(v / data.scale));
      parts.push(tag("path", {
        d: path([[x(0), before], [x(data.change), before], [x(data.change), after], [x(data.horizon), after]]),
        fill: "none", stroke: colour, "stroke-width": 1.2, "stroke-dasharray": "5 3",
      }));
      const at = floor + 14 + arm * STRIP / data.names.length;
      parts.push(tag("text", { x: LEFT - 8, y: at + 9, "text-anchor": "end", "font-weight": "bold" }, name));
      let strokes = "";
      for (let s = 0; s < t; s++) {
        if (Number(run().arms[s]) === arm) strokes += "M" + x(s + 0.5).toFixed(1) + " " + at + "v11";
      }
      parts.push(tag("path", { d: strokes || "M0 0", stroke: colour, "stroke-width": 1.2, fill: "none" }));
    });
    parts.push(tag("line", { x1: x(t), x2: x(t), y1: TOP, y2: HEIGHT - 20, class: "now" }));
    chart.setAttribute("height", HEIGHT);
    chart.replaceChildren(...parts);
  }

  function drawBells(t) {
    const width = Math.max(bells.clientWidth, 260), floor = BELLS - 18;
    const x = (v) => LEFT + (width - LEFT - RIGHT) * (v - LOW) / (HIGH - LOW);
    const laws = data.names.map((name, arm) => [run().mean[arm][t] / data.scale, run().sd[arm][t] / data.scale]);
    const most = Math.max(...laws.map((law) => 1 / law[1]));
    const parts = [tag("line", { x1: LEFT, x2: width - RIGHT, y1: floor, y2: floor, class: "axis" })];
    [0, 0.5, 1].forEach((v) => {
      parts.push(tag("text", { x: x(v), y: BELLS - 3, "text-anchor": "middle" }, String(v)));
    });
    laws.forEach(([mean, sd], arm) => {
      const points = [];
      for (let step = -40; step <= 40; step++) {
        const v = Math.min(Math.max(mean + sd * step / 10, LOW), HIGH), z = (v - mean) / sd;
        points.push([x(v), floor - (floor - 14) * Math.exp(-z * z / 2) / sd / most]);
      }
      points.push([points[80][0], floor], [points[0][0], floor]);
      parts.push(tag("path", { d: path(points) + "Z", fill: data.colours[arm], "fill-opacity": 0.25,
        stroke: data.colours[arm], "stroke-width": 1.6 }));
      const peak = floor - (floor - 14) / sd / most;
      parts.push(tag("text", { x: x(mean), y: peak - 3, "text-anchor": "middle", "font-weight": "bold" },
        data.names[arm]));
    });
    bells.setAttribute("height", BELLS);
    bells.replaceChildren(...parts);
  }

  function idle(arm, t) {
    const last = run().arms.lastIndexOf(String(arm), t - 1);
    return t > 0 && last >= 0 ? t - 1 - last : t;
  }

  function say(t) {
    const parts = [t === 0 ? "Before the first round." : "Round " + t + ": " + data.names[run().arms[t - 1]] +
      " was played and paid " + run().rewards[t - 1] + "."];
    data.names.forEach((name, arm) => {
      const sd = run().sd[arm][t] / data.scale, alone = idle(arm, t);
      const full = sd >= data.taus[tau.value] - 0.5 / data.scale;
      parts.push(name + ": mean " + (run().mean[arm][t] / data.scale).toFixed(2) + ", spread " + sd.toFixed(2) +
        (full ? " (tau_max)" : "") + (alone > 0 ? ", idle for " + alone + (alone === 1 ? " round." : " rounds.") : "."));
    });
    words.textContent = parts.join(" ");
  }

  function draw() {
    const t = Number(round.value);
    round.nextElementSibling.value = t;
    gamma.nextElementSibling.value = data.gammas[gamma.value];
    tau.nextElementSibling.value = data.taus[tau.value];
    gamma.setAttribute("aria-valuetext", data.gammas[gamma.value]);
    tau.setAttribute("aria-valuetext", data.taus[tau.value]);
    drawChart(t);
    drawBells(t);
    say(t);
  }

  function stop() {
    clearInterval(timer);
    timer = null;
    play.textContent = "Play";
    words.setAttribute("aria-live", "polite");
  }

  play.addEventListener("click", () => {
    if (timer !== null) return stop();
    if (Number(round.value) >= data.horizon) round.value = 0;
    play.textContent = "Pause";
    words.setAttribute("aria-live", "off"); // forty sentences a second would be no help
    timer = setInterval(() => {
      round.value = Number(round.value) + 1;
      draw();
      if (Number(round.value) >= data.horizon) stop();
    }, 25);
  });
  [round, gamma, tau].forEach((input) => input.addEventListener("input", draw));
  window.addEventListener("resize", draw);
  draw();
})();
