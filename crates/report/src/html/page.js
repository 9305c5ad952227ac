"use strict";
// The figures are drawn without this script. It shows the value under the pointer or the
// arrow keys, and saves a figure with the colours that are seen.
(() => {
  const tip = document.getElementById("tip");
  const drawn = new WeakMap(); // each drawing as it was before its titles were taken

  const hide = () => {
    for (const mark of document.querySelectorAll("svg .on")) mark.classList.remove("on");
    tip.hidden = true;
  };

  const show = (mark) => {
    for (const other of document.querySelectorAll("svg .on")) other.classList.remove("on");
    mark.classList.add("on");
    tip.textContent = mark.dataset.tip;
    tip.hidden = false;
    const at = mark.getBoundingClientRect();
    const bar = mark.classList.contains("bar");
    const x = (bar ? at.right : (at.left + at.right) / 2) + scrollX;
    const own = tip.getBoundingClientRect();
    const page = document.documentElement.clientWidth;
    const above = at.top - own.height - 8;
    tip.style.left = Math.max(8, Math.min(x - own.width / 2, page - own.width - 8)) + "px";
    tip.style.top = (above > 0 ? above : at.bottom + 8) + scrollY + "px";
  };

  // Distance from a point to a box; nothing inside it.
  const distance = (x, y, box) =>
    Math.hypot(Math.max(box.left - x, 0, x - box.right), Math.max(box.top - y, 0, y - box.bottom));

  const nearest = (marks, x, y) => {
    let best = null;
    let least = 48; // pixels: farther away nothing is meant
    for (const mark of marks) {
      const away = distance(x, y, mark.getBoundingClientRect());
      // Of several at the same place the last drawn is the one that is seen.
      if (away <= least) { best = mark; least = away; }
    }
    return best;
  };

  const attend = (svg) => {
    drawn.set(svg, svg.cloneNode(true));
    const marks = [...svg.querySelectorAll(".m")];
    for (const mark of marks) {
      const title = mark.querySelector("title");
      mark.dataset.tip = title.textContent;
      title.remove(); // else the browser shows a second tip
    }
    if (marks.length === 0) return;
    svg.tabIndex = 0;
    svg.setAttribute("aria-label", svg.getAttribute("aria-label") + ". Arrow keys read its values.");
    let at = -1;
    const point = (event) => {
      const mark = nearest(marks, event.clientX, event.clientY);
      if (mark) { at = marks.indexOf(mark); show(mark); } else hide();
    };
    svg.addEventListener("pointermove", point);
    svg.addEventListener("pointerdown", point);
    svg.addEventListener("pointerleave", hide);
    svg.addEventListener("blur", hide);
    svg.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (event.key === "Escape") { hide(); return; }
      if (event.key === "Home") at = 0;
      else if (event.key === "End") at = marks.length - 1;
      else if (step) at = at < 0 ? (step > 0 ? 0 : marks.length - 1) : (at + step + marks.length) % marks.length;
      else return;
      event.preventDefault();
      show(marks[at]);
    });
  };

  const KEPT = ["fill", "paint-order", "stroke", "stroke-width", "stroke-dasharray", "stroke-linejoin", "opacity",
    "font-family", "font-size", "font-weight"];
  const HEAD = 34; // room for the title above a saved figure
  const EDGE = 14;

  // The figure as a file of its own: colours resolved, title and background drawn.
  const standalone = (figure) => {
    hide();
    const shown = [...figure.querySelectorAll("svg")].find((svg) => svg.getBoundingClientRect().width > 0);
    const copy = drawn.get(shown).cloneNode(true);
    const box = shown.viewBox.baseVal;
    // Titles were taken from what is shown; elements pair up without them.
    const copies = [...copy.querySelectorAll("*")].filter((e) => e.localName !== "title");
    shown.querySelectorAll("*").forEach((element, i) => {
      const style = getComputedStyle(element);
      copies[i].setAttribute("style", KEPT.map((key) => key + ":" + style.getPropertyValue(key)).join(";"));
      copies[i].removeAttribute("class");
    });
    const space = "http://www.w3.org/2000/svg";
    const paper = document.createElementNS(space, "rect");
    const values = { x: -EDGE, y: -HEAD, width: box.width + 2 * EDGE, height: box.height + HEAD + EDGE };
    for (const [key, value] of Object.entries(values)) paper.setAttribute(key, value);
    paper.setAttribute("fill", getComputedStyle(figure).backgroundColor);
    const title = document.createElementNS(space, "text");
    const heading = figure.querySelector("h3");
    const style = getComputedStyle(heading);
    title.textContent = heading.textContent;
    title.setAttribute("x", 0);
    title.setAttribute("y", -14);
    title.setAttribute("style", `font:600 15px ${style.fontFamily};fill:${style.color}`);
    copy.prepend(paper, title);
    copy.setAttribute("viewBox", `${-EDGE} ${-HEAD} ${values.width} ${values.height}`);
    copy.setAttribute("width", values.width);
    copy.setAttribute("height", values.height);
    return { text: new XMLSerializer().serializeToString(copy), width: values.width, height: values.height };
  };

  const save = (blob, name) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  };

  const saveSvg = (figure) => {
    const { text } = standalone(figure);
    save(new Blob([text], { type: "image/svg+xml" }), figure.id + ".svg");
  };

  const savePng = (figure) => {
    const { text, width, height } = standalone(figure);
    const sharp = 2; // pixels a unit: sharp on paper too
    const image = new Image();
    image.onload = () => {
      const canvas = document.createElement("canvas");
      canvas.width = width * sharp;
      canvas.height = height * sharp;
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob((blob) => save(blob, figure.id + ".png"), "image/png");
    };
    image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(text);
  };

  for (const figure of document.querySelectorAll("figure")) {
    figure.querySelectorAll("svg").forEach(attend);
    const tools = document.createElement("div");
    tools.className = "tools";
    for (const [name, act] of [["SVG", saveSvg], ["PNG", savePng]]) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = name;
      button.title = `Save this figure as ${name}`;
      button.setAttribute("aria-label", `Save “${figure.querySelector("h3").textContent}” as ${name}`);
      button.addEventListener("click", () => act(figure));
      tools.append(button);
    }
    figure.querySelector("figcaption").append(tools);
  }
  addEventListener("scroll", hide, { passive: true });
})();
