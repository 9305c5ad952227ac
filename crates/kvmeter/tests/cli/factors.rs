//! Studies with factors: planned, run on a recorded machine's knobs, killed, resumed, held to a
//! budget, and refused where they cannot be meant. On the stores that every build has.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::Value;

use crate::tool::{Place, until};

const STUDY: &str = r#"
name = "f"
question = "What do threads do?"
repeats = 3
sequence = ["ycsb-c", "ycsb-d"]

[store.null]
[store.spill]

[data]
records = 3000

[measure]
time = "150ms"

[probes]
use = "off"

[factors.threads]
set = "measure.threads"
levels = [1, 2]

[factors.verify]
set = "store.spill.verify"
levels = ["on", "off"]
where = { store = ["spill"] }

[[checks]]
that = "latency_us.read.p50 <= latency_us.read.p99"

[[checks]]
that = "throughput_ops_s > 1e12"
when = "threads == 2 and store == 'null'"
why = "nothing is faster"

[[questions]]
ask = "What does a second thread buy?"
metric = "throughput_ops_s"
factor = "threads"

[[figures]]
id = "graph-1"
title = "Throughput by threads"
x = "threads"
y = "throughput_ops_s"
series = "store"

[scale.small]
note = "A third of the data."
set = { "data.records" = 1000, "repeats" = 1 }
"#;

fn study(place: &Place, text: &str) {
    place.write("f.toml", text);
}

fn runs(place: &Place) -> Vec<Value> {
    place.json(&["report", "out.sqlite", "--json"]).as_array().unwrap().clone()
}

/// Store, levels, workload and repeat of a run.
fn cell(run: &Value) -> (String, String, String, String) {
    let setting = |key: &str| run["settings"][key].as_str().unwrap_or("-").to_owned();
    let levels = format!("{} {}", setting("factor.threads"), setting("factor.verify"));
    (setting("store"), levels, setting("workload"), setting("repeat"))
}

/// null: 2 levels; spill: 2 x 2; each with two workloads in three repeats.
const RUNS: usize = (2 + 4) * 2 * 3;

#[test]
fn cells_match_a_manual_count() {
    let place = Place::new();
    study(&place, STUDY);
    let plan = place.json(&["run", "f.toml", "--dry-run", "--json"]);
    let plan = plan.as_array().unwrap();
    assert_eq!(plan.len(), RUNS);
    let cells: BTreeSet<_> = plan.iter().map(cell).collect();
    assert_eq!(cells.len(), RUNS, "no cell twice");
    let stores: Vec<&str> = plan
        .iter()
        .filter(|run| run["settings"]["factor.verify"].is_string())
        .map(|run| run["settings"]["store"].as_str().unwrap())
        .collect();
    assert_eq!(stores, vec!["spill"; 4 * 2 * 3], "the nested factor varies there alone");
    for run in plan {
        let settings = &run["settings"];
        assert_eq!(settings["factor.threads"], settings["threads"], "it really sets the key");
        if settings["factor.verify"].is_string() {
            assert_eq!(settings["factor.verify"], settings["store.verify"]);
        }
    }
    // Repeat by repeat, every cell in each.
    let repeats: Vec<u64> = plan.iter().map(|run| run["repeat"].as_u64().unwrap()).collect();
    assert!(repeats.is_sorted(), "{repeats:?}");
    let text = place.ok(&["run", "f.toml", "--dry-run"]);
    for words in ["every combination", "store=spill", "36 runs in about", "6 cells, 6 with"] {
        assert!(text.contains(words), "no `{words}`:\n{text}");
    }
    let order = |seed: &str| {
        let plan = place.json(&["run", "f.toml", "--dry-run", "--json", "--set", seed]);
        plan.as_array().unwrap().iter().map(cell).collect::<Vec<_>>()
    };
    assert_eq!(order("seed=7"), order("seed=7"));
    assert_ne!(order("seed=7"), order("seed=8"));
}

#[test]
fn the_documented_example_is_planned_as_it_stands() {
    let place = Place::new();
    let page = include_str!("../../../../docs/studies.md");
    let example = page.split("```toml\n").skip(1).find(|text| text.contains("[factors.")).unwrap();
    place.write("idle.toml", example.split("```").next().unwrap());
    for scale in [&[][..], &["--scale", "small"]] {
        let plan = place.ok(&[&["run", "idle.toml", "--dry-run"], scale].concat());
        assert!(plan.contains("memcached etc") && plan.contains("spill etc"), "{plan}");
    }
}

#[test]
fn a_study_with_factors_runs_and_stores_its_design() {
    let place = Place::new();
    study(&place, STUDY);
    let result = place.run(&["run", "f.toml", "--out", "out.sqlite", "--scale", "small"]);
    assert_eq!(result.code, 0, "{}", result.err);
    assert!(result.err.contains("A third of the data."), "{}", result.err);
    let runs = runs(&place);
    assert_eq!(runs.len(), RUNS / 3);
    for run in &runs {
        assert_eq!(run["settings"]["workload.records"], "1k");
        let warnings = run["warnings"].to_string();
        let two_of_null = run["settings"]["factor.threads"] == "2" && run["store"] == "null";
        assert_eq!(warnings.contains("finding: `throughput_ops_s > 1e12`"), two_of_null, "{run}");
        assert!(!warnings.contains("latency_us.read.p50"), "{warnings}");
    }
    let file = record::ResultsFile::read(place.file("out.sqlite")).unwrap();
    let design = &file.executions().unwrap()[0].design;
    assert_eq!(design.factors.len(), 2);
    assert_eq!(design.factors[1].levels, ["on", "off"]);
    assert_eq!(design.checks.len(), 2);
    assert_eq!(design.questions[0].factor.as_deref(), Some("threads"));
    assert_eq!(design.figures[0].series.as_deref(), Some("store"));
    assert_eq!(design.scale.as_ref().unwrap().set["data.records"], "1000");
}

#[test]
fn a_study_with_factors_resumes_after_kill_9() {
    let place = Place::new();
    study(&place, STUDY);
    let began = || {
        place.file("out.sqlite").exists()
            && place.run(&["report", "out.sqlite", "--json"]).out.contains("\"run\"")
    };
    place.through_kills(&["run", "f.toml", "--out", "out.sqlite"], 2, began, |_| ());
    let runs = runs(&place);
    let cells: BTreeSet<_> = runs.iter().map(cell).collect();
    assert_eq!((runs.len(), cells.len()), (RUNS, RUNS), "nothing is lost and nothing twice");
    for run in &runs {
        assert_eq!(run["errors"], 0, "{}: {}", run["label"], run["failures"]);
        // YCSB's D inserts: what runs after it must not see what it left.
        if run["workload"] == "ycsb-c" {
            assert_eq!(run["misses"], 0);
        }
    }
    assert!(!place.file("out.data").exists(), "the study's own data is removed");
}

#[test]
fn two_studies_at_once_are_refused() {
    let place = Place::new();
    study(&place, STUDY);
    let mut first =
        place.start(&["run", "f.toml", "--out", "a.sqlite", "--set", "measure.time=30s"]);
    until("the first study", || place.file("a.sqlite").exists());
    let words = ["another study runs on this machine", &format!("process {}", first.id())];
    place.refused(&["run", "f.toml", "--out", "b.sqlite"], &words);
    assert!(!place.file("b.sqlite").exists());
    // What measures nothing may go on beside it.
    place.ok(&["run", "f.toml", "--dry-run"]);
    first.kill().unwrap();
    first.wait().unwrap();
    let small = ["run", "f.toml", "--out", "b.sqlite", "--scale", "small"];
    assert_eq!(place.run(&small).code, 0, "the lock ends with its process");
}

#[test]
fn a_budget_drops_repeats_and_says_so() {
    let place = Place::new();
    let text = STUDY.replace("repeats = 3", "repeats = 200");
    study(&place, &text);
    let result = place.run(&["run", "f.toml", "--out", "out.sqlite", "--max-time", "12s"]);
    assert_eq!(result.code, 0, "{}", result.err);
    assert!(result.err.contains("of 200 repeats of every cell"), "{}", result.err);
    let mut counts: BTreeMap<_, usize> = BTreeMap::new();
    for run in runs(&place) {
        let (store, levels, workload, _) = cell(&run);
        *counts.entry((store, levels, workload)).or_default() += 1;
    }
    assert_eq!(counts.len(), RUNS / 3, "no cell is dropped: {counts:?}");
    let each: BTreeSet<usize> = counts.values().copied().collect();
    assert_eq!(each.len(), 1, "every cell has as many repeats: {counts:?}");
    assert!(each.first().is_some_and(|n| *n < 200));
    let file = record::ResultsFile::read(place.file("out.sqlite")).unwrap();
    let notes = file.executions().unwrap().remove(0).notes;
    assert!(notes[0].contains("budget of 12s") && notes[0].contains("--resume"), "{notes:?}");
    let report = place.ok(&["report", "out.sqlite"]);
    assert!(report.contains("they were dropped"), "{report}");
    // With more time it goes on where it ended; what its end said is void.
    let before = runs(&place).len();
    let more = ["run", "f.toml", "--out", "out.sqlite", "--resume", "--max-time", "6s"];
    let result = place.run(&more);
    assert_eq!(result.code, 0, "{}", result.err);
    let after = runs(&place);
    let cells: BTreeSet<_> = after.iter().map(cell).collect();
    assert!(after.len() > before, "{before} runs, then {}", after.len());
    assert_eq!(cells.len(), after.len(), "nothing twice");
    let file = record::ResultsFile::read(place.file("out.sqlite")).unwrap();
    let notes = file.executions().unwrap().remove(0).notes;
    assert!(notes.len() == 1 && notes[0].contains("budget of 6s"), "{notes:?}");
}

#[test]
fn adaptive_repeats_end_at_the_width() {
    let place = Place::new();
    // A figure that is the same in every run.
    let text = "name = \"f\"\nrepeats = 3\nsequence = [\"ycsb-c\"]\n[store.null]\n\
        [data]\nrecords = 1000\n[measure]\ntime = \"100ms\"\n[probes]\nuse = \"off\"\n\
        [factors.threads]\nset = \"measure.threads\"\nlevels = [1, 2]\n\
        [design]\nadaptive = { metric = \"threads\", width = 0.02, most = 30 }\n";
    study(&place, text);
    assert!(place.ok(&["run", "f.toml", "--dry-run"]).contains("3 to 30 repeats"));
    let result = place.run(&["run", "f.toml", "--out", "out.sqlite"]);
    assert!(result.err.contains("in 2 of 2 cells"), "{}", result.err);
    assert_eq!(runs(&place).len(), 2 * 3, "{}", result.err);
}

#[test]
fn spare_repeats_are_made_where_runs_are_invalid_and_nowhere_else() {
    let place = Place::new();
    // No client asks a thousand million times a second; a closed loop has no rate to miss.
    let text = "name = \"f\"\nrepeats = 2\nsequence = [\"ycsb-c\"]\n[store.null]\n\
        [data]\nrecords = 1000\n[measure]\ntime = \"50ms\"\n[probes]\nuse = \"off\"\n\
        [factors.load.levels]\nclosed = { \"measure.threads\" = 1 }\n\
        open = { \"measure.threads\" = 1, \"measure.rate\" = \"1G\" }\n\
        [design]\nspare_repeats = 3\n";
    study(&place, text);
    let plan = place.ok(&["run", "f.toml", "--dry-run"]);
    assert!(plan.contains("2 repeats and up to 3 more for invalid runs"), "{plan}");
    assert!(plan.contains("4 runs in"), "{plan}");
    let result = place.run(&["run", "f.toml", "--out", "out.sqlite"]);
    assert_eq!(result.code, 1, "{}", result.err);
    let words = "3 spare repeats were made, of 1 cell";
    assert!(
        result.err.contains(words) && result.err.contains("still without 2 valid"),
        "{}",
        result.err
    );
    let mut made: BTreeMap<(String, bool), u32> = BTreeMap::new();
    for run in runs(&place) {
        let load = run["settings"]["factor.load"].as_str().unwrap().to_owned();
        *made.entry((load, run["valid"].as_bool().unwrap())).or_default() += 1;
    }
    assert_eq!(made[&("open".to_owned(), false)], 5);
    // A disturbed machine may make some of these invalid too.
    let closed = |valid| made.get(&("closed".to_owned(), valid)).copied().unwrap_or(0);
    assert!(closed(true) == 2 || closed(true) + closed(false) == 5, "{made:?}");
}

#[test]
fn knobs_are_turned_block_by_block_and_levels_that_are_not_here_are_left_out() {
    let place = Place::new();
    for (path, text) in [
        ("proc/sys/kernel/random/boot_id", "boot-one"),
        ("proc/sys/kernel/randomize_va_space", "2"),
        ("sys/kernel/mm/transparent_hugepage/enabled", "always"),
    ] {
        let file = place.file("machine").join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, format!("{text}\n")).unwrap();
    }
    let text = "name = \"f\"\nrepeats = 2\nsequence = [\"ycsb-c\"]\n[store.null]\n\
        [data]\nrecords = 1000\n[measure]\ntime = \"50ms\"\n[probes]\nuse = \"off\"\n\
        [factors.aslr]\nset = \"knobs.aslr\"\nlevels = [\"off\", \"full\", \"sideways\"]\n\
        [factors.smt]\nset = \"knobs.smt\"\nlevels = [\"on\", \"off\"]\n\
        [factors.threads]\nset = \"measure.threads\"\nlevels = [1, 2, 3]\n";
    study(&place, text);
    let root = place.file("machine").display().to_string();
    let args = ["run", "f.toml", "--root", &root, "--out", "out.sqlite"];
    let plan = place.ok(&[&args[..], &["--dry-run"]].concat());
    for words in ["left out: aslr=sideways", "left out: smt=on", "as found", "changes of knobs"] {
        assert!(plan.contains(words), "no `{words}`:\n{plan}");
    }
    let output = place.run(&args);
    assert_eq!(output.code, 0, "{}", output.err);
    let runs = runs(&place);
    // Two levels of aslr, smt as it was found, three of threads, two repeats.
    assert_eq!(runs.len(), 2 * 3 * 2);
    let levels: Vec<&str> =
        runs.iter().map(|run| run["settings"]["knob.aslr"].as_str().unwrap()).collect();
    let changes = 1 + levels.windows(2).filter(|pair| pair[0] != pair[1]).count();
    assert!(changes <= 4, "once for each level in each repeat: {levels:?}");
    for run in &runs {
        let settings = &run["settings"];
        assert_eq!(settings["factor.smt"], "as found");
        assert_eq!(settings["factor.aslr"], settings["knob.aslr"]);
        assert!(settings["knob.aslr.effect"].is_string(), "{settings}");
    }
    let held = fs::read_to_string(place.file("machine").join("proc/sys/kernel/randomize_va_space"));
    assert_eq!(held.unwrap().trim(), "2", "put back");
    let file = record::ResultsFile::read(place.file("out.sqlite")).unwrap();
    assert_eq!(file.executions().unwrap()[0].design.skipped.len(), 3);
}

#[test]
fn loaded_data_is_restored_after_runs_that_changed_it() {
    let place = Place::new();
    // D inserts, so each unit wants the data as it was loaded.
    let text = STUDY.replace("[store.null]\n", "").replace("\"ycsb-c\", \"ycsb-d\"", "\"ycsb-d\"");
    let text =
        text.replace("when = \"threads == 2 and store == 'null'\"", "when = \"threads == 7\"");
    study(&place, &text);
    let result = place.run(&["run", "f.toml", "--out", "out.sqlite"]);
    assert_eq!(result.code, 0, "{}", result.err);
    let loads = result.err.matches("records first").count();
    let back = result.err.matches("restoring the loaded data").count();
    assert_eq!((loads, back), (1, 4 * 3 - 1), "{}", result.err);
    for run in runs(&place) {
        assert_eq!(run["errors"], 0, "{}", run["failures"]);
    }
    // In a directory of the user's the data stays, and no copy beside it.
    let text = text.replace("[store.spill]", "[store.spill]\npath = \"mine\"");
    study(&place, &text);
    place.ok(&["run", "f.toml", "--out", "two.sqlite", "--scale", "small"]);
    assert!(place.file("mine/data").exists() && !place.file("mine/prepared").exists());
}

#[test]
fn the_load_can_be_placed_on_cpus() {
    let place = Place::new();
    let text =
        STUDY.replace("\"measure.threads\"\nlevels = [1, 2]", "\"measure.cpus\"\nlevels = [\"0\"]");
    let text = text.replace("threads == 2 and store == 'null'", "store == 'null' and pin == 'no'");
    study(&place, &text.replace("[measure]", "[measure]\nthreads = 2"));
    let result = place.run(&["run", "f.toml", "--out", "out.sqlite", "--scale", "small"]);
    if result.err.contains("CPU 0 cannot be used") {
        eprintln!("skipped: {}", result.err);
        return;
    }
    assert_eq!(result.code, 0, "{}", result.err);
    for run in runs(&place) {
        // Both threads on the one CPU that was named.
        assert_eq!(
            (&run["settings"]["cpus"], &run["settings"]["threads"]),
            (&"0".into(), &"2".into())
        );
        assert_eq!(run["settings"]["pin"], "true");
    }
    let refused = |level: &str, words: &str| {
        study(&place, &text.replace("[\"0\"]", level));
        place.refused(&["run", "f.toml", "--dry-run"], &[words, "f.toml:21:"]);
    };
    refused("[\"0-\"]", "is not a list of CPUs");
    refused("[\"60000\"]", "CPU 60000 cannot be used");
    // A thread on CPU 0 would run there against the knob.
    if std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() > 1) {
        study(&place, &text.replace("[measure]", "[knobs]\ncpus = \"1\"\n\n[measure]"));
        let words = ["CPU 0 is not one of those that the knob `cpus` leaves: [1]", "f.toml:24:"];
        place.refused(&["run", "f.toml", "--dry-run"], &words);
    }
}

#[test]
fn refuses_invalid_designs_at_their_place() {
    let place = Place::new();
    let refused = |from: &str, to: &str, words: &[&str]| {
        assert!(STUDY.contains(from), "{from}");
        study(&place, &STUDY.replace(from, to));
        let all: Vec<&str> = words.iter().copied().chain(["f.toml"]).collect();
        place.refused(&["run", "f.toml", "--dry-run"], &all);
    };
    let spare = "[design]\nspare_repeats = 1000\n[scale.small]";
    refused("[scale.small]", spare, &["at most 100"]);
    let both = "[design]\nspare_repeats = 1\nadaptive = { metric = \"throughput_ops_s\", \
                width = 0.1, most = 9 }\n[scale.small]";
    refused("[scale.small]", both, &["adaptive repeats already continue after invalid runs"]);
    // A factor that names no setting.
    refused("measure.threads", "measure.thread", &["did you mean `threads`?", "f.toml:20:"]);
    refused("measure.threads", "mesure.threads", &["did you mean `measure`?", "f.toml:20:"]);
    refused("measure.threads", "probes.every", &["are not compared", "f.toml:20:"]);
    refused("measure.threads", "agents.hosts", &["a study for each set", "f.toml:20:"]);
    refused("measure.threads", "question", &["not a setting of store", "f.toml:20:"]);
    refused("store.spill.verify", "store.spil.verify", &["[store.spil]", "did you mean `spill`?"]);
    refused("store.spill.verify", "store.spill.verfy", &["verfy", "f.toml:25:"]);
    refused(
        "set = \"store.spill.verify\"\nlevels = [\"on\", \"off\"]",
        "set = \"measure.threads\"\nlevels = [4]",
        &["the factor `threads` sets"],
    );
    refused("set = \"measure.threads\"\n", "", &["key that the levels set"]);
    refused("[factors.threads]", "[factors.store]", &["kvmeter uses the name"]);
    // A level that is none.
    refused("levels = [1, 2]", "levels = [1, \"two\"]", &["f.toml:21:"]);
    refused("[\"on\", \"off\"]", "[\"on\", \"maybe\"]", &["maybe", "f.toml:25:"]);
    // An empty cell.
    refused("levels = [1, 2]", "levels = []", &["without a level", "f.toml:21:"]);
    refused("levels = [1, 2]", "levels = [1, 1]", &["there already"]);
    refused(
        "[scale.small]",
        "[design]\nkind = \"list\"\nlist = [{}]\n[scale.small]",
        &["empty cell"],
    );
    refused(
        "[scale.small]",
        "[design]\nexclude = [{ threads = [1, 2] }]\n[scale.small]",
        &["everything is excluded"],
    );
    refused("[scale.small]", "[design]\nexclude = [{}]\n[scale.small]", &["every cell"]);
    refused(
        "[scale.small]",
        "[design]\nexclude = [{ threads = 3 }]\n[scale.small]",
        &["no level `3`"],
    );
    refused("where = { store = [\"spill\"] }", "where = { store = [\"spil\"] }", &["`spill`?"]);
    refused("where = { store", "where = { stor", &["neither a factor nor"]);
    // A check that cannot be evaluated.
    refused("p50 <= latency", "p50 =< latency", &["at character", "f.toml:2"]);
    refused("latency_us.read.p50 <=", "latency_us.reed.p50 <=", &["did you mean `read`?"]);
    refused("that = \"throughput_ops_s > 1e12\"", "that = \"throughput > 1\"", &["throughput"]);
    refused("when = \"threads == 2", "when = \"thread == 2", &["thread"]);
    refused("metric = \"throughput_ops_s\"", "metric = \"ipcc\"", &["did you mean `ipc`?"]);
    refused("factor = \"threads\"", "factor = \"thread\"", &["did you mean `threads`?"]);
    let several = "factors = [\"threads\", \"store\"]\nyes_if = \"better\"";
    refused("factor = \"threads\"", several, &["neither better nor worse", "f.toml:"]);
    let best = "metric = \"throughput_ops_s\"\nfactor = \"threads\"";
    refused(best, "best = \"seconds\"", &["neither more nor less of it is better", "f.toml:"]);
    refused(best, "best = \"throughput_ops_s\"\nyes_if = \"better\"", &["`yes_if`", "f.toml:"]);
    refused("series = \"store\"", "series = \"stores\"", &["did you mean `store`?"]);
    refused("series = \"store\"", "published = \"x\"", &["no series `x`"]);
    study(&place, STUDY);
    place.refused(&["run", "f.toml", "--scale", "smal"], &["did you mean `small`?"]);
    place.write("published.toml", "source = 1\n");
    place.refused(&["run", "f.toml", "--dry-run"], &["published.toml of f.toml:1:10"]);
    let claims = |claim: &str| {
        let claim = format!("metric = \"power_w\", factor = \"threads\", from = 1, to = 2{claim}");
        format!("[[findings]]\nid = \"a\"\nsays = \"a\"\nclaims = [{{ {claim} }}]\n")
    };
    for claim in ["", ", at_least = nan", ", at_least = 2, at_most = 1", ", at_most = 0"] {
        place.write("published.toml", &claims(claim));
        place.refused(&["run", "f.toml", "--dry-run"], &["published.toml of f.toml", "quotients"]);
    }
    place.write("published.toml", &claims(", at_least = 1, where = { trheads = 1 }"));
    place.refused(&["run", "f.toml", "--dry-run"], &["`trheads` is neither", "published.toml"]);
    place.write("published.toml", &claims(", at_least = 1"));
    place.ok(&["run", "f.toml", "--dry-run"]);
}
