"use strict";
// What scripts beside the frames of a page share: they say what they found, frame by frame.
const results = [];
const out = document.createElement("pre");
out.id = "result";
// Written at once: if the browser ends early, what was reached is seen.
const say = (good, what) => {
  results.push((good ? "ok " : "FAILED ") + what);
  out.textContent = results.join("\n");
};
const wait = (ms) => new Promise((done) => setTimeout(done, ms));
const until = async (test) => {
  for (let i = 0; i < 200 && !test(); i++) await wait(20);
  return test();
};

// Checks the page in each frame, one after the other.
const inEachFrame = async (check) => {
  // The browser writes this document down when it has loaded. A document that is being
  // written keeps its parent from that: it is closed when the checks have ended.
  const hold = document.createElement("iframe");
  document.body.append(out, hold);
  hold.contentDocument.open();
  hold.contentDocument.write("checking");
  try {
    for (const frame of document.querySelectorAll("iframe[srcdoc]")) {
      const loaded = () => frame.contentDocument.querySelector("#tip") && frame.contentDocument.readyState === "complete";
      say(await until(loaded), `${frame.width}: the page loads`);
      await check(frame.contentWindow, frame.width);
    }
  } catch (error) {
    say(false, `the checks themselves: ${error.stack}`);
  }
  say(true, "all checks ended");
  hold.contentDocument.close();
};
