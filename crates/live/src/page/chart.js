// Lines over time, drawn anew with each frame; a gap stays a gap.
const SVG = "http://www.w3.org/2000/svg";
const make = (name, attributes, text) => {
  const it = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) it.setAttribute(key, value);
  if (text !== undefined) it.textContent = text;
  return it;
};

// Round values within a range: of the decades where `log`, else about four.
const ticks = (low, high, log) => {
  if (log) {
    const all = [];
    for (let e = Math.floor(Math.log10(low)); 10 ** e <= high * 1.0001; e++) {
      for (const m of high / low > 300 ? [1] : [1, 3]) {
        const at = m * 10 ** e;
        if (at >= low * 0.999 && at <= high * 1.001) all.push(at);
      }
    }
    return all;
  }
  const step = 10 ** Math.floor(Math.log10(high / 4 || 1));
  const by = [1, 2, 5, 10].map((m) => m * step).find((s) => high / s <= 5) || step * 10;
  const all = [];
  for (let at = 0; at <= high * 1.0001; at += by) all.push(at);
  return all;
};

// `lines`: [{ key, values: [number or null] }], one value for each of `points`.
const draw = (box, points, lines, { log, words }) => {
  const width = Math.max(240, Math.round(box.clientWidth) || 480);
  const height = Math.round(Math.min(240, Math.max(170, width * 0.45)));
  const known = lines.flatMap((line) => line.values).filter((v) => v !== null && (!log || v > 0));
  const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, role: "img" });
  const left = 66, right = width - 10, top = 10, bottom = height - 24;
  if (points.length < 2 || known.length === 0) {
    svg.append(make("text", { x: width / 2, y: height / 2, "text-anchor": "middle", class: "tick" }, "no value yet"));
    box.replaceChildren(svg);
    return;
  }
  const high = Math.max(...known) * (log ? 1.15 : 1.08);
  const low = log ? Math.min(...known) / 1.15 : 0;
  const from = points[0].at_ms, to = Math.max(points.at(-1).at_ms, from + 1000);
  const x = (ms) => left + ((ms - from) / (to - from)) * (right - left);
  const share = (v) => (log ? Math.log(v / low) / Math.log(high / low) : v / high);
  const y = (v) => bottom - share(v) * (bottom - top);
  points.forEach((point, at) => {
    const next = points[at + 1];
    if (!next) return;
    if (point.warming_up) {
      svg.append(make("rect", { x: x(point.at_ms), y: top, width: Math.max(0, x(next.at_ms) - x(point.at_ms)), height: bottom - top, class: "before" }));
    }
    if (next.run !== point.run) svg.append(make("line", { x1: x(next.at_ms), x2: x(next.at_ms), y1: top, y2: bottom, class: "edge" }));
  });
  for (const at of ticks(low, high, log)) {
    svg.append(make("line", { x1: left, x2: right, y1: y(at), y2: y(at), class: "grid" }));
    svg.append(make("text", { x: left - 6, y: y(at) + 4, "text-anchor": "end", class: "tick" }, words(at)));
  }
  svg.append(make("text", { x: left, y: height - 6, class: "tick" }, clock(from)));
  svg.append(make("text", { x: right, y: height - 6, "text-anchor": "end", class: "tick" }, clock(to)));
  for (const { key, values } of lines) {
    let path = "", open = false, last = null;
    values.forEach((value, at) => {
      const broken = last !== null && points[at].run !== points[last].run;
      if (value === null || (log && value <= 0)) {
        // A second without a value of its own does not break a line, ten do.
        if (last === null || points[at].at_ms - points[last].at_ms > 10_000) open = false;
        return;
      }
      path += `${open && !broken ? "L" : "M"}${x(points[at].at_ms).toFixed(1)} ${y(value).toFixed(1)}`;
      open = true;
      last = at;
    });
    if (path) svg.append(make("path", { d: path.includes("L") ? path : `${path}h.01`, class: `line s${key}` }));
  }
  box.replaceChildren(svg);
};
