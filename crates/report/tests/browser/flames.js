// Uses a flame graph as a person would.
const boxOf = (frame) => frame.getBoundingClientRect();

inEachFrame(async (page, width) => {
  const graphs = [...page.document.querySelectorAll(".flames")];
  say(graphs.length === 2, `${width}: two graphs`);
  const [graph] = graphs;
  const frames = [...graph.querySelectorAll("svg.f")];
  const named = (name) => frames.find((frame) => frame.querySelector("text").textContent === name);
  const drawn = boxOf(graph.querySelector("svg.flame"));
  say(Math.abs(boxOf(frames[0]).width - drawn.width) < 1, `${width}: the process has the whole width`);
  const share = () => boxOf(named("assoc_find")).width / drawn.width;
  say(Math.abs(share() - 0.25) < 0.01, `${width}: a function has its share (${share()})`);
  say(boxOf(named("assoc_find")).bottom < boxOf(named("main")).top + 2, `${width}: callers are below`);
  const field = graph.querySelector("input");
  field.value = "TCP_send";
  field.dispatchEvent(new page.Event("input", { bubbles: true }));
  const found = graph.querySelector("output").textContent;
  say(found === "50.0 % of the time", `${width}: a search says the share, a recursion once (${found})`);
  say(graph.querySelectorAll(".hit").length === 2, `${width}: what is found is marked`);
  named("assoc_find").dispatchEvent(new page.MouseEvent("click", { bubbles: true }));
  say(share() > 0.99, `${width}: a click enlarges a function`);
  say(named("main").classList.contains("below") && boxOf(named("main")).width > 0, `${width}: its callers stay`);
  say(boxOf(named("tcp_sendmsg")).width === 0, `${width}: others go`);
  graph.querySelector("button").click();
  say(Math.abs(share() - 0.25) < 0.01, `${width}: the button shows all again`);
  say(page.document.documentElement.scrollWidth <= page.innerWidth, `${width}: the page is not wider than its window`);
});
