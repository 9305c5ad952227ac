"use strict";
// Flame graphs: a click on a function gives it the whole width, a search marks functions and says
// which share of the time they have. Without this script the graphs and their titles are there.
(() => {
  const share = (frame, name) => parseFloat(frame.dataset[name]);
  for (const figure of document.querySelectorAll(".flames")) {
    const frames = [...figure.querySelectorAll("svg.f")];
    for (const frame of frames) {
      frame.dataset.x = frame.getAttribute("x");
      frame.dataset.w = frame.getAttribute("width");
    }
    const zoom = (to) => {
      const [from, width] = [share(to, "x"), share(to, "w")];
      for (const frame of frames) {
        const [x, w] = [share(frame, "x"), share(frame, "w")];
        const outside = x + w <= from + 1e-6 || x >= from + width - 1e-6;
        frame.style.display = outside ? "none" : "";
        const left = Math.max(0, (x - from) / width);
        const right = Math.min(1, (x + w - from) / width);
        frame.setAttribute("x", left * 100 + "%");
        frame.setAttribute("width", (right - left) * 100 + "%");
        frame.classList.toggle("below", w > width + 1e-6);
      }
    };
    const reset = figure.querySelector("button");
    const field = figure.querySelector("input");
    const found = figure.querySelector("output");
    for (const frame of frames) {
      frame.addEventListener("click", () => { zoom(frame); reset.disabled = frame === frames[0]; });
    }
    reset.addEventListener("click", () => { zoom(frames[0]); reset.disabled = true; });
    field.addEventListener("input", () => {
      const wanted = field.value.trim().toLowerCase();
      const ranges = [];
      for (const frame of frames) {
        const name = frame.querySelector("text").textContent.toLowerCase();
        const hit = wanted !== "" && name.includes(wanted);
        frame.classList.toggle("hit", hit);
        if (hit) ranges.push([share(frame, "x"), share(frame, "x") + share(frame, "w")]);
      }
      // A function within another that matches counts once.
      ranges.sort((a, b) => a[0] - b[0]);
      let [sum, end] = [0, 0];
      for (const [from, to] of ranges) {
        sum += Math.max(0, to - Math.max(from, end));
        end = Math.max(end, to);
      }
      found.textContent = wanted === "" ? "" : sum.toFixed(1) + " % of the time";
    });
    figure.classList.add("ready");
  }
})();
