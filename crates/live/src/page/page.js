// The page shows what it is sent, and keeps the last state when the stream ends.
const MOST_POINTS = 6000;
const MOST_RUNS = 2000;
const MOST_ROWS = 200;
const byId = (id) => document.getElementById(id);
let head = null, hosts = [], points = [], runs = [], lost = false;
// The number of the host whose figures are shown; the only one where this machine measures.
let chosen = 0;
const NONE = { name: "", run: 0, runs: 0, finished: 0, label: "", stage: "begins", progress: null, ended: null, settings: {} };
const own = () => hosts[chosen] || NONE;
const isFleet = () => hosts.some((host) => host && host.name);

const element = (name, text, kind) => {
  const it = document.createElement(name);
  it.textContent = text;
  if (kind) it.className = kind;
  return it;
};

const take = (frame) => {
  if (frame.first) [hosts, points, runs] = [[], [], []];
  head = frame.head;
  for (const host of frame.hosts) hosts[host.at] = { ...(hosts[host.at] || NONE), ...host };
  points = points.concat(frame.points).slice(-MOST_POINTS);
  runs = runs.concat(frame.runs).slice(-MOST_RUNS);
};

// [title, value or null, what it is of or why there is none]
const tiles = () => {
  const now = own().progress;
  const waits = "no window is open";
  const reading = (test) => (now ? now.readings.find(test) : undefined);
  const machine = (title, test, write) => {
    const found = reading((r) => test(r) && r.value !== null) || reading(test);
    if (!found) return [title, null, now ? "not read yet" : waits];
    if (found.value === null) return [title, null, found.unavailable];
    return [title, write(found.value), `${found.signal}${found.modelled ? ", modelled" : ""}`];
  };
  const l = now && !now.warming_up ? now.latency : null;
  const why = !now ? waits : now.warming_up ? "no latencies before the window" : "after the first whole second";
  const of = (title, key) => [title, l ? latency(l[key]) : null, l ? "of the last second" : why];
  const looked = now ? now.hits + now.misses : 0;
  const open = now && now.offered_ops_s !== null;
  return [
    ["Answered", now && now.answered_ops_s !== null ? rate(now.answered_ops_s) : null, now ? "over the last second" : waits],
    ["Offered", open ? rate(now.offered_ops_s) : null, open ? "due now" : now ? "a closed loop: as fast as answers come" : waits],
    of("p50", "p50_us"), of("p99", "p99_us"), of("p99.9", "p99_9_us"), of("Maximum", "max_us"),
    ["Errors", now ? count(now.errors) : null, now ? "in the window" : waits],
    ["Hit ratio", looked ? percent(now.hits / looked) : null, looked ? "in the window" : now ? "no key was read yet" : waits],
    machine("CPU of kvmeter", (r) => r.signal === "cpu.kvmeter", (v) => `${three(v)} CPUs`),
    machine("Power", (r) => r.unit === "W" || r.signal.startsWith("energy."), (v) => `${three(v)} W`),
    machine("IPC", (r) => r.signal === "ipc", three),
  ];
};

const showTiles = () => {
  byId("tiles").replaceChildren(...tiles().map(([title, value, words]) => {
    const div = document.createElement("div");
    const dd = element("dd", value === null ? "unavailable" : value, value === null ? "none" : "");
    dd.append(element("small", words || ""));
    div.append(element("dt", title), dd);
    return div;
  }));
};

// `2 of 4`, and spare runs beyond the plan.
const numbered = (host) => {
  const run = host.runs ? `${Math.min(host.run, host.runs)} of ${host.runs}` : `${host.run}`;
  return host.runs && host.run > host.runs ? `${run} (${host.run - host.runs} spare)` : run;
};

const doing = () => {
  if (isFleet()) {
    const ended = hosts.filter((host) => host.ended).length;
    return `${hosts.length} ${hosts.length === 1 ? "host" : "hosts"}: ${hosts.length - ended} at work, ${ended} ended; ${count(head.finished)} runs are done`;
  }
  const { run, label, stage } = own();
  return run ? `run ${numbered(own())}: ${label} – ${stage}` : `${label} ${stage}`;
};

const status = () => {
  if (head.ended) return `${head.ended} at ${clock(head.changed_at_ms)}; this is the last state`;
  if (lost) return `no connection: kvmeter has ended or was killed. This is the state of ${clock(head.changed_at_ms)}; ${doing()}`;
  return doing();
};

// The share that is done, in percent, of this stage, or of the runs of all hosts; with its words.
const progress = () => {
  if (head.ended) return [null, []];
  if (isFleet()) {
    const planned = hosts.reduce((sum, host) => sum + host.runs, 0);
    const ended = hosts.reduce((sum, host) => sum + Math.min(host.finished, host.runs), 0);
    const left = Math.max(...hosts.map((host) => (host.progress ? host.progress.left_s || 0 : 0)));
    return [planned ? (100 * ended) / planned : null, left ? [`${time(left)} left`] : []];
  }
  const now = own().progress;
  if (!now) return [null, []];
  const done = now.done === null ? null : 100 * now.done;
  const words = done === null ? [] : [`${Math.round(done)} % of this stage`];
  if (now.run_left_s !== null) words.push(`${time(now.run_left_s)} left in this run`);
  if (now.left_s !== null && now.left_s > (now.run_left_s || 0)) words.push(`${time(now.left_s)} in all`);
  return [done, words];
};

const showPlan = () => {
  byId("title").textContent = head.name;
  document.title = `${head.name} – kvmeter live`;
  byId("link").className = `dot ${head.ended ? "" : lost ? "lost" : "live"}`;
  const words = status();
  // A reader of screens hears changes only.
  if (byId("status").textContent !== words) byId("status").textContent = words;
  const [done, left] = progress();
  byId("done").style.width = `${done || 0}%`;
  if (done === null) byId("bar").removeAttribute("aria-valuenow");
  else byId("bar").setAttribute("aria-valuenow", Math.round(done));
  byId("left").textContent = [...left, `kvmeter ${head.command} ${head.version}`].join(", ");
};

// A row for each host; the buttons choose whose figures are shown below.
const showHosts = () => {
  byId("fleet").hidden = !isFleet();
  if (!isFleet()) return;
  byId("chosen").textContent = own().name;
  const box = byId("hosts");
  while (box.children.length < hosts.length) {
    const at = box.children.length;
    const [row, button] = [document.createElement("tr"), element("button", "")];
    button.type = "button";
    button.addEventListener("click", () => {
      chosen = at;
      show();
    });
    row.append(element("td", ""), element("td", ""), element("td", ""), element("td", "", "num"), element("td", "", "num"), element("td", "", "num"));
    row.children[0].append(button);
    box.append(row);
  }
  hosts.forEach((host, at) => {
    const [name, run, stage, answered, p99, left] = box.children[at].children;
    const now = host.progress;
    const l = now && !now.warming_up ? now.latency : null;
    name.firstChild.textContent = host.name;
    name.firstChild.setAttribute("aria-pressed", String(at === chosen));
    run.textContent = host.run ? `${numbered(host)} ${host.label}` : host.label || "–";
    stage.textContent = host.ended || host.stage;
    answered.textContent = now && now.answered_ops_s !== null ? rate(now.answered_ops_s) : "–";
    p99.textContent = l ? latency(l.p99_us) : "–";
    left.textContent = now && now.left_s !== null ? time(now.left_s) : "–";
  });
};

const pairs = (box, rows) => {
  box.replaceChildren(...rows.map(([key, value, note]) => {
    const div = document.createElement("div");
    const dd = element("dd", value);
    if (note) dd.append(" ", element("small", note));
    div.append(element("dt", key), dd);
    return div;
  }));
};

const showMachine = () => {
  const rows = (own().progress ? own().progress.readings : []).map((r) => [
    r.signal,
    r.value === null ? "unavailable:" : r.unit === "share" ? percent(r.value) : `${three(r.value)} ${r.unit}`,
    r.value === null ? r.unavailable : r.source + (r.modelled ? ", modelled" : ""),
  ]);
  pairs(byId("readings"), rows.length ? rows : [["readings", "come while a window is open", ""]]);
  const settings = Object.entries(own().settings);
  const knob = ([key]) => key.startsWith("knob.");
  pairs(byId("settings"), [...settings.filter(knob), ...settings.filter((one) => !knob(one))].map(([k, v]) => [k, v, ""]));
};

const showRuns = () => {
  byId("no-runs").hidden = runs.length > 0;
  byId("runs-table").hidden = runs.length === 0;
  if (runs.length > MOST_ROWS || head.finished > runs.length) {
    byId("no-runs").hidden = false;
    byId("no-runs").textContent = `The last ${Math.min(MOST_ROWS, runs.length)} of ${head.finished}.`;
  }
  byId("runs").replaceChildren(...runs.slice(-MOST_ROWS).reverse().map((run) => {
    const row = document.createElement("tr");
    if (!run.valid) row.className = "invalid";
    row.append(
      element("td", `${run.host ? `${run.host}: ` : ""}${run.run} ${run.label}`),
      element("td", rate(run.rate_ops_s), "num"),
      element("td", run.p99_us === null ? "–" : latency(run.p99_us), "num"),
      element("td", run.hit_ratio === null ? "–" : percent(run.hit_ratio), "num"),
      element("td", count(run.errors), "num"),
      element("td", time(run.seconds), "num"),
      element("td", run.valid ? "yes" : `no: ${(run.invalid_because || []).join("; ")}`, run.valid ? "" : "why"),
    );
    return row;
  }));
};

const keys = (box, names) => {
  box.replaceChildren(...names.map(([key, name]) => {
    const span = document.createElement("span");
    span.append(element("b", "", `k${key}`), name);
    return span;
  }));
};

const showCurves = () => {
  const shown = points.filter((p) => p.host === chosen).slice(-600);
  const of = (pick) => shown.map(pick);
  draw(byId("rate"), shown, [
    { key: 1, values: of((p) => p.offered) }, { key: 0, values: of((p) => p.answered) },
  ], { log: false, words: (v) => (v === 0 ? "0" : rate(v).replace("ops/s", "")) });
  const lines = [["p50_us", 2], ["p99_us", 0], ["p99_9_us", 1]];
  draw(byId("latency"), shown, lines.map(([name, key]) => ({ key, values: of((p) => (p.latency ? p.latency[name] : null)) })), { log: true, words: latency });
};

const show = () => {
  if (!head) return;
  showPlan();
  showHosts();
  showTiles();
  showMachine();
  showRuns();
  showCurves();
};

keys(byId("rate-keys"), [[0, "answered"], [1, "offered"]]);
keys(byId("latency-keys"), [[2, "p50"], [0, "p99"], [1, "p99.9"]]);
take(JSON.parse(byId("state").textContent));
show();
new ResizeObserver(() => showCurves()).observe(byId("rate"));

const connect = () => {
  const events = new EventSource("/events");
  events.onmessage = (event) => {
    lost = false;
    take(JSON.parse(event.data));
    if (head.ended) events.close();
    show();
  };
  events.onerror = () => {
    if (head.ended) return;
    lost = true;
    show();
    // After a refusal the browser does not try again by itself, as it does after a break.
    if (events.readyState === EventSource.CLOSED) setTimeout(connect, 10_000);
  };
};
if (!head.ended) connect();
