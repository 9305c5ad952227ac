// Uses the page as a person would; DARK says which colours were asked for.
const luminance = (color) => {
  const [r, g, b] = color.match(/[\d.]+/g).map(Number);
  return (0.2126 * r + 0.7152 * g + 0.0722 * b) / 255;
};

const shown = (figure) => [...figure.querySelectorAll("svg")].filter((svg) => svg.getBoundingClientRect().width > 0);

const hover = (page, svg, mark) => {
  const box = mark.getBoundingClientRect();
  const at = { clientX: (box.left + box.right) / 2, clientY: (box.top + box.bottom) / 2, bubbles: true };
  svg.dispatchEvent(new page.PointerEvent("pointermove", at));
};

// Presses the button and answers the file that the page would have saved.
const saved = async (page, figure, kind) => {
  let blob = null, name = null;
  const { createObjectURL } = page.URL;
  const { click } = page.HTMLAnchorElement.prototype;
  page.URL.createObjectURL = (it) => { blob = it; return createObjectURL.call(page.URL, it); };
  page.HTMLAnchorElement.prototype.click = function () { name = this.download; };
  [...figure.querySelectorAll("button")].find((button) => button.textContent === kind).click();
  await until(() => name !== null);
  page.URL.createObjectURL = createObjectURL;
  page.HTMLAnchorElement.prototype.click = click;
  return { blob, name };
};

const checkFigure = async (page, figure, width) => {
  const label = `${width} ${figure.id}`;
  const drawings = shown(figure);
  say(drawings.length === 1, `${label}: one drawing is seen`);
  const svg = drawings[0];
  const marks = [...svg.querySelectorAll(".m")];
  const boxes = marks.map((mark) => mark.getBoundingClientRect());
  say(marks.length > 0 && boxes.every((b) => b.width > 0 || b.height > 0), `${label}: every value is drawn`);
  const outer = svg.getBoundingClientRect();
  const texts = [...svg.querySelectorAll("text")].map((text) => text.getBoundingClientRect());
  say(texts.every((b) => b.left >= outer.left - 3 && b.right <= outer.right + 3), `${label}: no text leaves the figure`);
  const tip = page.document.getElementById("tip");
  const mark = marks[0];
  hover(page, svg, mark);
  const said = tip.textContent;
  say(!tip.hidden && marks.some((m) => m.dataset.tip === said) && /\d/.test(said), `${label}: hover says a value (${said})`);
  svg.dispatchEvent(new page.KeyboardEvent("keydown", { key: "End", bubbles: true }));
  say(tip.textContent === marks.at(-1).dataset.tip, `${label}: keys reach the last value`);
  svg.dispatchEvent(new page.KeyboardEvent("keydown", { key: "Escape", bubbles: true }));
  say(tip.hidden, `${label}: Escape hides it`);
};

const checkSaving = async (page, figure, width) => {
  const label = `${width} ${figure.id}`;
  const svg = await saved(page, figure, "SVG");
  const text = await svg.blob.text();
  const parsed = new DOMParser().parseFromString(text, "image/svg+xml");
  say(svg.name === figure.id + ".svg" && !parsed.querySelector("parsererror"), `${label}: saves SVG that parses`);
  say(!text.includes("var(") && /fill:\s?rgb\(/.test(text), `${label}: its colours are resolved`);
  say(parsed.querySelectorAll("title").length === shown(figure)[0].querySelectorAll(".m").length, `${label}: its values are in it`);
  const png = await saved(page, figure, "PNG");
  const bytes = new Uint8Array(await png.blob.arrayBuffer());
  say(png.name.endsWith(".png") && bytes[0] === 0x89 && bytes[1] === 0x50 && bytes.length > 4000, `${label}: saves PNG (${bytes.length} bytes)`);
};

const checkPage = async (page, width) => {
  const root = page.document.documentElement;
  say(root.scrollWidth <= root.clientWidth, `${width}: no scrolling to the side (${root.scrollWidth} of ${root.clientWidth})`);
  const background = page.getComputedStyle(page.document.body).backgroundColor;
  say(DARK === luminance(background) < 0.5, `${width}: background ${background}`);
  const ink = page.getComputedStyle(page.document.body).color;
  say(Math.abs(luminance(ink) - luminance(background)) > 0.6, `${width}: text stands out`);
  const figures = [...page.document.querySelectorAll("figure")];
  say(figures.length > 10, `${width}: ${figures.length} figures`);
  for (const figure of figures) await checkFigure(page, figure, width);
  // The exact value of a known run: RocksDB on ycsb-b.
  const svg = shown(page.document.getElementById("throughput"))[0];
  const known = [...svg.querySelectorAll(".m")].find((m) => m.dataset.tip.startsWith("ycsb-b on rocksdb"));
  hover(page, svg, known);
  const tip = page.document.getElementById("tip").textContent;
  say(tip.includes("251.7 kops/s"), `${width}: the exact value is shown (${tip})`);
  const one = (id) => figures.find((figure) => figure.id.startsWith(id));
  for (const id of ["throughput", "latency", "percentiles", "series", "figure-graph-1", "figure-graph-2"]) await checkSaving(page, one(id), width);
};

inEachFrame(checkPage);
