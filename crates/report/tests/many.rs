//! A study of very many runs: its page and its tables grow with its cells, and open at once.

// Helpers of tests panic as tests do.
#![allow(clippy::unwrap_used)]

mod chromium;
#[allow(dead_code, unused_imports)]
mod sample;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use model::design::{PublishedFigures, Question};
use record::{ReadExtent, ResultsFile, RunSelection};
use report::Style;

/// What a release build does in seconds; without optimisation a part of it.
const RUNS: u32 = if cfg!(debug_assertions) { 1_500 } else { 100_000 };
/// What the page of 100,000 runs may be, in bytes.
const LARGEST_PAGE: usize = 5_000_000;
/// What the page of so many runs may have more for each of them.
const EACH: usize = 40;

/// A results file of so many runs: repeats of those of a sample, each with its own throughput.
fn results(path: &Path, runs: u32) {
    let mut models = sample::factorial();
    let (execution, own) = &mut models[0];
    execution.plan.clear();
    // Runs of a few milliseconds: a hundred samples each.
    let short = |latency: &model::RunLatency| {
        let mut few = hdrhistogram::Histogram::<u64>::new(3).unwrap();
        for share in 1..=100 {
            few.record(latency.histogram.value_at_percentile(f64::from(share))).unwrap();
        }
        model::RunLatency { histogram: few.into(), ..latency.clone() }
    };
    own.iter_mut().for_each(|run| run.latencies = run.latencies.iter().map(short).collect());
    let mut file = ResultsFile::create(path).unwrap();
    file.begin(execution).unwrap();
    own.iter().for_each(|run| file.write_run(run).unwrap());
    let models = own.len() as u32;
    drop(file);
    let sql = rusqlite::Connection::open(path).unwrap();
    let times = format!(
        "WITH RECURSIVE times (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM times WHERE n < {})",
        runs / models - 1
    );
    let more = |table: &str, columns: &str, key: &str| {
        format!(
            "{times} INSERT INTO {table} (run_key, {columns})
             SELECT run_key + n * {models}, {columns} FROM times, {table} WHERE {key};"
        )
    };
    sql.execute_batch("PRAGMA synchronous = OFF; BEGIN").unwrap();
    sql.execute_batch(&format!(
        "{times} INSERT INTO run (key, id, execution_key, ordinal, label, phase, store_version,
           threads, loop, think_s, rate_ops_s, arrivals, started_at, seconds, operations,
           verified, misses)
         SELECT key + n * {models}, id || '-' || n, execution_key, ordinal + n * {models}, label,
           phase, store_version, threads, loop, think_s, rate_ops_s, arrivals, started_at,
           seconds, operations + (n * 7919) % 997, verified, misses FROM times, run;"
    ))
    .unwrap();
    for (table, columns) in [
        ("remark", "kind, position, text"),
        ("failure", "position, kind, count, first"),
        ("harness", "ns_per_op, clock_ns, verify_ns, busy"),
        ("stream", "name, value"),
        (
            "latency",
            "position, operation, clock, count, mean_us, min_us, p50_us, p90_us, p95_us, p99_us,
             p99_9_us, p99_99_us, max_us, histogram",
        ),
        (
            "series",
            "position, at_s, seconds, operation, operations, p50_ns, p99_ns, p99_9_ns, max_ns",
        ),
        (
            "reading",
            "position, signal, value, unavailable, remedy, unit, scope, source, window_s, origin",
        ),
    ] {
        // A long run's second series is what a short one has of it.
        let key = if table == "series" { "position < 2" } else { "true" };
        sql.execute_batch(&more(table, columns, key)).unwrap();
    }
    sql.execute_batch(&format!(
        "{times} INSERT INTO setting (run_key, key, value)
         SELECT run_key + n * {models}, key, CASE key WHEN 'repeat' THEN n ELSE value END
         FROM times, setting; COMMIT"
    ))
    .unwrap();
}

fn opened(path: &Path) -> RunSelection {
    RunSelection::overview(path.to_str().unwrap(), report::LISTED, report::overview).unwrap()
}

/// What an overview reads beside what is always shown.
fn overview_of(design: model::Design) -> (BTreeSet<String>, bool) {
    let (mut execution, _) = sample::factorial().swap_remove(0);
    execution.design = design;
    match report::overview(&[execution]) {
        ReadExtent::Overview { signals, distributions, .. } => (signals, distributions),
        ReadExtent::Whole => unreachable!("an overview"),
    }
}

#[test]
fn an_overview_reads_what_a_design_asks_about() {
    let metric = |name: &str| Some(name.to_owned());
    let question = |question| model::Design { questions: vec![question], ..Default::default() };
    let best = Question { best: metric("usd_per_gop"), ..Default::default() };
    let claim = serde_json::json!({
        "metric": "residency.C6", "factor": "idle", "from": "on", "to": "off",
    });
    let finding = serde_json::json!({ "id": "deep", "says": "", "claims": [claim] });
    let finding = serde_json::from_value(finding).unwrap();
    let published = PublishedFigures { findings: vec![finding], ..Default::default() };
    let found = model::Design { published: Some(published), ..question(best) };
    let (signals, distributions) = overview_of(found);
    assert!(signals.contains("usd_per_gop") && signals.contains("residency.C6"));
    assert!(!distributions);

    let tail = Question { metric: metric("latency_us.p99_5"), ..Default::default() };
    assert!(overview_of(question(tail)).1, "a percentile that no run keeps");
    let common = Question { metric: metric("latency_us.p99_9"), ..Default::default() };
    assert!(!overview_of(question(common)).1);
}

/// Repeats whose distributions are added up while they are read give the page of whole ones.
#[test]
fn added_up_repeats_give_the_same_page() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.sqlite");
    results(&path, 400);
    let sql = rusqlite::Connection::open(&path).unwrap();
    let invalid = "INSERT INTO remark (run_key, kind, position, text)
                   SELECT key, 'invalid', 0, 'busy' FROM run WHERE key % 7 = 3";
    sql.execute_batch(invalid).unwrap();
    let whole = |executions: &[model::Execution]| match report::overview(executions) {
        ReadExtent::Overview { signals, reasons, .. } => {
            ReadExtent::Overview { signals, reasons, distributions: true }
        }
        whole => whole,
    };
    let text = path.to_str().unwrap();
    let whole = RunSelection::overview(text, report::LISTED, whole).unwrap();
    let of_whole = report::html::page(&whole.by_execution());
    assert!(of_whole == page(&path));
}

fn page(path: &Path) -> String {
    report::html::page(&opened(path).by_execution())
}

#[test]
fn a_page_grows_with_cells_and_opens_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let (half, whole) = (folder.path().join("half.sqlite"), folder.path().join("whole.sqlite"));
    results(&half, RUNS / 2);
    results(&whole, RUNS);
    let (smaller, page) = (page(&half), page(&whole));
    let each = page.len().saturating_sub(smaller.len()) / (RUNS as usize / 2);
    assert!(each <= EACH, "{each} bytes a run");
    let of_all = page.len() + (100_000 - RUNS as usize) * EACH;
    assert!(of_all <= LARGEST_PAGE, "{} bytes of {RUNS} runs", page.len());

    let selection = opened(&whole);
    let pairs = selection.pairs();
    let studies = report::study::studies(&selection.executions, &pairs);
    let mut text = report::terminal::runs(&pairs, &Style::default());
    text += &report::markdown::runs(&pairs);
    for study in &studies {
        text += &report::terminal::study(study, &Style::default());
        text += &report::markdown::study(study, None);
    }
    assert!(text.len() < 200_000, "{} bytes of text", text.len());
    assert!(text.contains("Throughput by configuration"), "{text}");
    let unavailable = studies[0].answers.iter().find(|a| a.verdict.contains("residency.C6"));
    assert!(
        unavailable.is_some_and(|answer| answer.verdict.contains("a guest")),
        "{unavailable:?}"
    );
    if !cfg!(debug_assertions) {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        let kib: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
        assert!(kib < 700_000, "the pages, the tables and both files took {kib} KiB");
    }

    in_a_browser(&page, folder.path());
}

/// The runs are there to be seen, searched and sorted, within two seconds of opening the page.
fn in_a_browser(page: &str, folder: &Path) {
    let checks = r##"<pre id="result"></pre><script>(async () => {
      const say = (good, what) => { document.getElementById("result").textContent += (good ? "ok " : "FAILED ") + what + "\n"; };
      // What is written keeps the browser from ending before this has.
      const hold = document.createElement("iframe");
      document.body.append(hold);
      hold.contentDocument.open();
      const until = async (test) => { for (let i = 0; i < 400 && !test(); i++) await new Promise((done) => setTimeout(done, 10)); return test(); };
      const rows = () => [...document.querySelectorAll("#singles tbody tr")];
      const status = () => document.querySelector("#singles [role=status]").textContent;
      const there = await until(() => rows().length === 50);
      const took = performance.now();
      say(there && took < 2000 * SLOWER, `all runs are there after ${took.toFixed(0)} ms`);
      const search = document.querySelector("#singles input");
      const type = (text) => { search.value = text; search.dispatchEvent(new Event("input")); };
      say(status() === `1 to 50 of ${COUNT} runs`, status());
      type("#711");
      say(rows().length === 1 && rows()[0].firstChild.textContent === "#711", `one run: ${status()}`);
      type("invalid");
      say(rows().length > 0 && rows().every((row) => row.className === "invalid"), `invalid: ${status()}`);
      type("nothing is called that");
      say(rows().length === 0 && status() === "0 runs", status());
      type("");
      const column = document.querySelector("#singles th.num button");
      column.click(); column.click();
      const values = rows().map((row) => Number(row.children[2].textContent.replace(/,/g, "")));
      say(values.every((value, i) => i === 0 || values[i - 1] >= value), `sorted: ${values.slice(0, 3)}`);
      [...document.querySelectorAll("#singles button")].find((button) => button.textContent === "Next").click();
      say(status() === `51 to 100 of ${COUNT} runs`, status());
      say(document.documentElement.scrollWidth <= document.documentElement.clientWidth, "no scrolling to the side");
      say(true, "all checks ended");
      hold.contentDocument.close();
    })();</script></body>"##;
    let count = page.matches("class=\"tiles\"").count();
    assert_eq!(count, 1);
    // A debug build of this test says nothing of the browser; a busy machine does.
    let checks = checks
        .replace("COUNT", &format!("\"{}\"", thousands(runs_of(page))))
        .replace("SLOWER", "1");
    let file = folder.join("page.html");
    fs::write(&file, page.replace("</body>", &checks)).unwrap();
    let (dom, log) = chromium::dump(&file, false, folder);
    let console: Vec<&str> = log.lines().filter(|line| line.contains("CONSOLE")).collect();
    assert!(console.is_empty(), "the console says: {console:#?}");
    let result = dom
        .split_once("<pre id=\"result\">")
        .and_then(|(_, rest)| rest.split_once("</pre>"))
        .map(|(result, _)| result.trim())
        .unwrap_or_default();
    let failed: Vec<&str> = result.lines().filter(|line| !line.starts_with("ok ")).collect();
    assert!(failed.is_empty(), "{failed:#?}");
    assert!(result.ends_with("ok all checks ended"), "only these checks ran:\n{result}");
}

/// How many runs the page says that it has.
fn runs_of(page: &str) -> usize {
    let (_, rest) = page.split_once("<dt>runs</dt><dd class=\"\">").unwrap();
    rest.split_once("</dd>").unwrap().0.parse().unwrap()
}

fn thousands(count: usize) -> String {
    let text = count.to_string();
    let (head, tail) = text.split_at(text.len().saturating_sub(3));
    if head.is_empty() { tail.to_owned() } else { format!("{head},{tail}") }
}
