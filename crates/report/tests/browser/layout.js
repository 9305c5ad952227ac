// Looks at the page as a reader would: is it as wide as its window allows, does any text lie on
// another, can letters be read, does anything leave the window?
const FEW = 3; // faults of a kind that are told
const REST = 1; // pixels that rounding may take
const LETTERS = 4; // in a line of a text that is broken within words
const LEAST_TEXT = 7; // pixels: smaller letters of a drawing cannot be read
const named = (element) => {
  const heading = element.closest("section, figure, main")?.querySelector("h1, h2, h3")?.textContent;
  return `${element.localName}.${element.getAttribute("class") ?? ""} in “${heading ?? ""}”`;
};
const tell = (faults, what) => say(faults.length === 0, what + faults.slice(0, FEW).map((fault) => `; ${fault}`).join(""));

// The part of a box that its scrolling ancestors let through; null for none.
const seen = (page, element, box) => {
  let { left, top, right, bottom } = box;
  for (let up = element; up && up !== page.document.body; up = up.parentElement) {
    if (page.getComputedStyle(up).overflowX === "visible") continue;
    const clip = up.getBoundingClientRect();
    [left, top] = [Math.max(left, clip.left), Math.max(top, clip.top)];
    [right, bottom] = [Math.min(right, clip.right), Math.min(bottom, clip.bottom)];
  }
  return right - left > 0 && bottom - top > 0 ? { left, top, right, bottom } : null;
};

// The boxes of all texts that are seen, a line each.
const texts = (page) => {
  const found = [];
  const walker = page.document.createTreeWalker(page.document.body, page.NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!node.data.trim() || ["SCRIPT", "STYLE", "TITLE", "NOSCRIPT"].includes(element.tagName.toUpperCase())) continue;
    if (!element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    if (element.matches(".skip:not(:focus)")) continue;
    const range = page.document.createRange();
    range.selectNodeContents(node);
    // Letters of a drawing turn with it: its own box is the tighter.
    const boxes = element.closest("svg") ? [element.getBoundingClientRect()] : [...range.getClientRects()];
    for (const box of boxes) {
      const part = seen(page, element, box);
      if (part) found.push({ ...part, text: node.data.trim().slice(0, 40), element, node });
    }
  }
  return found;
};

// Boxes reach over the letters: a sixth above and below may meet that of the next line.
const overlapping = (found) => {
  const inner = found.map((box) => {
    const upright = box.bottom - box.top > 2 * (box.right - box.left);
    const [x, y] = upright ? [(box.right - box.left) / 6, 1] : [1, (box.bottom - box.top) / 6];
    return { ...box, left: box.left + x, right: box.right - x, top: box.top + y, bottom: box.bottom - y };
  });
  inner.sort((a, b) => a.top - b.top);
  const faults = [];
  inner.forEach((a, i) => {
    for (let j = i + 1; j < inner.length && inner[j].top < a.bottom; j++) {
      const b = inner[j];
      if (Math.min(a.right, b.right) > Math.max(a.left, b.left)) faults.push(`“${a.text}” and “${b.text}” in ${named(a.element)}`);
    }
  });
  return faults;
};

// Where the points stand in each column of decimals: the distance of those farthest apart.
const pointsApart = (page) => {
  const tables = [...page.document.querySelectorAll("table")];
  const columns = new Map();
  for (const after of page.document.querySelectorAll("td.num > span")) {
    if (!after.checkVisibility()) continue;
    const cell = after.parentElement;
    const key = `${tables.indexOf(cell.closest("table"))} ${cell.cellIndex}`;
    columns.set(key, [...(columns.get(key) ?? []), after]);
  }
  return [...columns.values()].map((all) => {
    const xs = all.map((after) => after.getBoundingClientRect().left);
    return { apart: Math.max(...xs) - Math.min(...xs), what: all.slice(0, FEW).map((after) => after.parentElement.textContent).join(" / "), element: all[0] };
  });
};

// Texts in more lines than words, each with a few letters: they stand in a column of letters.
const broken = (found) => {
  const lines = new Map();
  for (const { node } of found) lines.set(node, (lines.get(node) ?? 0) + 1);
  const words = (node) => node.data.trim().split(/[\s\-/.]+/).length;
  const isBroken = ([node, count]) => count > words(node) && node.data.trim().length / count < LETTERS;
  return [...lines].filter(isBroken).map(([node]) => node);
};

const checkLayout = (page, width) => {
  const root = page.document.documentElement;
  const window = root.clientWidth;
  for (const details of page.document.querySelectorAll("details")) details.open = true;

  // What may stand beside others is left to what holds it.
  const wide = [...page.document.querySelectorAll("main, main section, main h2, figure, .scroll, div.grid, .large svg")];
  const beside = (element) => element.parentElement.closest(".grid, .facts") || element.closest("section")?.parentElement.closest(".grid, .facts");
  const narrow = wide.filter((element) => element.checkVisibility() && !beside(element)).filter((element) => element.getBoundingClientRect().width < window / 2);
  tell(narrow.map((element) => `${named(element)} is ${element.getBoundingClientRect().width.toFixed(0)} px`), `${width}: nothing is narrower than half of the window`);

  const found = texts(page);
  tell(overlapping(found), `${width}: no text of ${found.length} lies on another`);

  const letters = found.filter((text) => text.element.closest("svg")).map((text) => {
    const scale = text.element.getScreenCTM().a || Math.abs(text.element.getScreenCTM().b);
    return { text: text.text, element: text.element, size: parseFloat(page.getComputedStyle(text.element).fontSize) * scale };
  });
  tell(letters.filter((one) => one.size < LEAST_TEXT).map((one) => `“${one.text}” has ${one.size.toFixed(1)} px in ${named(one.element)}`), `${width}: letters of drawings can be read`);

  tell(broken(found).map((node) => `“${node.data.slice(0, 40)}” in ${named(node.parentElement)}`), `${width}: no word is broken letter by letter`);

  const columns = pointsApart(page);
  tell(columns.filter((column) => column.apart > REST / 2).map((column) => `${column.what} in ${named(column.element)}`), `${width}: points stand under each other in ${columns.length} columns`);

  const leaving = found.filter((text) => text.left < -REST || text.right > window + REST);
  tell(leaving.map((text) => `“${text.text}” in ${named(text.element)}`), `${width}: no text leaves the window`);
  say(root.scrollWidth <= window, `${width}: no scrolling to the side (${root.scrollWidth} of ${window})`);
};

inEachFrame(checkLayout);
