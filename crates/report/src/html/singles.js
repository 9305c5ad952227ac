"use strict";
// The table of every run: inflates the data that the page keeps, then pages, searches and sorts.
(async () => {
  const ROWS = 50;
  const place = document.getElementById("singles");
  const make = (name, attributes = {}, ...children) => {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children);
    return element;
  };
  if (typeof DecompressionStream === "undefined") {
    place.append(make("p", { class: "note" }, "This browser is too old for this table alone."));
    return;
  }
  const text = document.getElementById("singles-data").textContent;
  const bytes = Uint8Array.from(atob(text), (digit) => digit.charCodeAt(0));
  const inflated = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const data = await new Response(inflated).json();

  const count = data.cell.length;
  const numbers = new Int32Array(count);
  data.number.reduce((before, step, i) => (numbers[i] = before + step), 0);
  const said = (reasons) => (reasons || []).map((at) => data.why[at]).join("; ");
  const names = data.cells.map((name) => name.toLowerCase());
  const matches = (i, word) => {
    if (/^#\d+$/.test(word)) return numbers[i] + 1 === Number(word.slice(1));
    if (word === "invalid") return i in data.invalid;
    if (word === "warning") return i in data.warned;
    return names[data.cell[i]].includes(word)
      || (said(data.invalid[i]) + said(data.warned[i])).toLowerCase().includes(word);
  };

  let order = [...Array(count).keys()];
  let first = 0;
  let sorted = { column: null, rising: true };
  const value = (i, column) => (column < 0 ? numbers[i] : data.columns[column][i]);
  const select = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter((word) => word);
    order = [];
    for (let i = 0; i < count; i++) if (words.every((word) => matches(i, word))) order.push(i);
    const { column, rising } = sorted;
    if (column !== null) order.sort((a, b) => (rising ? 1 : -1) * (value(a, column) - value(b, column)));
    first = 0;
    draw();
  };

  const search = make("input", { type: "search", "aria-label": "Search the runs", placeholder: "name, #number, invalid, warning" });
  const shown = make("span", { role: "status", "aria-live": "polite" });
  const back = make("button", { type: "button" }, "Back");
  const next = make("button", { type: "button" }, "Next");
  const heads = make("tr");
  const rows = make("tbody");
  // As in other tables: thousands, and points under each other.
  const written = (figure) => {
    if (figure === 0) return ["–", ""];
    const [whole, decimals] = (figure < 0.001 ? "0.001" : String(figure)).split(".");
    return [(figure < 0.001 ? "< " : "") + Number(whole).toLocaleString("en"), decimals ? "." + decimals : ""];
  };
  // Of the figures themselves: there are very many, and few are seen.
  const decimals = (figure) => (figure === 0 || figure >= 0.001 ? (String(figure).split(".")[1] ?? "").length : 3);
  const widths = data.columns.map((column) => column.reduce((most, figure) => Math.max(most, decimals(figure)), 0) + 1);
  const number = (figure, width) => {
    const [whole, decimals] = written(figure);
    return make("td", { class: "num" }, whole, make("span", { style: `min-width:${(width * 0.7).toFixed(1)}em` }, decimals));
  };
  const row = (i) => {
    const invalid = i in data.invalid;
    const line = make("tr", invalid ? { class: "invalid" } : {}, make("td", {}, `#${numbers[i] + 1}`), make("td", {}, data.cells[data.cell[i]]));
    data.columns.forEach((column, nth) => line.append(number(column[i], widths[nth])));
    const why = said(data.invalid[i]) || said(data.warned[i]);
    const tone = invalid ? "bad" : i in data.warned ? "warn" : "good";
    line.append(make("td", { class: `why ${tone}` }, why || "yes"));
    return line;
  };
  const draw = () => {
    rows.replaceChildren(...order.slice(first, first + ROWS).map(row));
    const last = Math.min(first + ROWS, order.length);
    const from = order.length ? `${(first + 1).toLocaleString("en")} to ${last.toLocaleString("en")} of ` : "";
    shown.textContent = `${from}${order.length.toLocaleString("en")} runs`;
    back.disabled = first === 0;
    next.disabled = last >= order.length;
    for (const head of heads.querySelectorAll("[data-column]")) {
      const own = Number(head.dataset.column) === sorted.column;
      head.setAttribute("aria-sort", own ? (sorted.rising ? "ascending" : "descending") : "none");
    }
  };
  const head = (name, column) => {
    const button = make("button", { type: "button", title: "Sort" }, name);
    button.addEventListener("click", () => {
      sorted = { column, rising: sorted.column === column ? !sorted.rising : true };
      select();
    });
    return make("th", { scope: "col", "data-column": column, ...(column < 0 ? {} : { class: "num" }) }, button);
  };
  heads.append(head("run", -1), make("th", { scope: "col" }, "configuration"));
  data.heads.forEach((name, column) => heads.append(head(name, column)));
  heads.append(make("th", { scope: "col" }, "counts"));
  back.addEventListener("click", () => { first -= ROWS; draw(); });
  next.addEventListener("click", () => { first += ROWS; draw(); });
  search.addEventListener("input", select);
  const table = make("table", {}, make("thead", {}, heads), rows);
  place.append(
    make("div", { class: "searching" }, search, back, next, shown),
    make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Every run" }, table),
  );
  draw();
})();
