//! Studies: in order, kept, resumed.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::Value;

use crate::tool::{Place, command_output, until};

const STUDY: &str = r#"
name = "small"
question = "Does it resume?"
repeats = 2
sequence = ["load", "ycsb-a", "ycsb-c", "clear", "load", "ycsb-e"]

[store.rocksdb]
[store.lmdb]

[data]
records = 3000

[measure]
threads = 2
time = "300ms"
"#;

fn runs(place: &Place) -> Vec<Value> {
    let all = place.json(&["report", "out.sqlite", "--json"]);
    all.as_array().unwrap().clone()
}

/// How often each label was run.
fn labels(runs: &[Value]) -> BTreeMap<String, usize> {
    let mut labels = BTreeMap::new();
    for run in runs {
        *labels.entry(run["label"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    labels
}

#[test]
fn a_dry_run_lists_everything_and_does_nothing() {
    let place = Place::new();
    place.write("small.toml", STUDY);
    let text = place.ok(&["run", "small.toml", "--dry-run"]);
    assert_eq!(text.matches("rocksdb load").count(), 4, "{text}");
    assert_eq!(text.matches("lmdb ycsb-e").count(), 2, "{text}");
    assert!(text.contains("20 runs"), "{text}");
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1, "only the study itself");
}

/// The TOML examples of a page.
fn examples(page: &str) -> Vec<&str> {
    let blocks = page.split("```toml\n").skip(1);
    blocks.filter_map(|block| block.split("```").next()).collect()
}

#[test]
fn the_documented_examples_are_planned_as_they_stand() {
    let place = Place::new();
    let page = examples(include_str!("../../../../docs/studies.md"));
    place.write("cache.toml", page[1]);
    assert!(place.ok(&["run", "cache.toml", "--dry-run"]).contains("memcached etc"));
    let page = page[0];
    // The example's path is not for a test to write to.
    place.write("study.toml", &page.replace("/data/rocksdb", "rocksdb"));
    // Two stores, three repeats, five runs each.
    let set = "data.records=1M";
    let plan = place.ok(&["run", "study.toml", "--dry-run", "--set", set]);
    assert!(plan.contains("30 runs"), "{plan}");
    let head = "name = \"x\"\nsequence = [\"load\", \"ycsb-c\"]\n[store.null]\n";
    let page = examples(include_str!("../../../../docs/workloads.md"));
    let whole: Vec<&&str> = page.iter().filter(|example| example.starts_with('[')).collect();
    assert!(whole.len() >= 2, "{page:?}");
    // One of them replays a trace of this name.
    place.write("cluster26.sort.zst", "0,key:1,5,10,1,get,0\n1,key:2,5,10,1,get,0\n");
    for example in whole {
        // Of a workload file, or of a study.
        match example.starts_with("[workload]") || example.starts_with("[workload.") {
            true => {
                place.write("mine.toml", example);
                place.write("study.toml", &head.replace("ycsb-c", "mine.toml"));
            }
            false => drop(place.write("study.toml", &format!("{head}{example}"))),
        }
        place.ok(&["run", "study.toml", "--dry-run"]);
    }
}

#[test]
fn a_study_runs_to_its_report() {
    let place = Place::new();
    place.write("small.toml", STUDY);
    let text = place.ok(&["run", "small.toml", "--out", "out.sqlite", "--set", "repeats=1"]);
    assert!(text.contains("out.sqlite") && text.contains("out.html"), "{text}");
    let runs = runs(&place);
    assert_eq!(runs.len(), 10);
    for run in &runs {
        assert_eq!(run["errors"], 0, "{run}");
        assert_eq!(run["valid"], true, "{}", run["invalid_because"]);
    }
    let page = std::fs::read_to_string(place.file("out.html")).unwrap();
    assert!(page.contains("Does it resume?"));
    assert!(!place.file("out.data").exists(), "the study's own data is removed");
    place.refused(&["run", "small.toml", "--out", "out.sqlite"], &["exists already", "--resume"]);
    // As it was killed before its report: nothing is run again, and the report is there.
    std::fs::remove_file(place.file("out.html")).unwrap();
    let again = ["run", "small.toml", "--out", "out.sqlite", "--set", "repeats=1", "--resume"];
    let result = place.run(&again);
    assert_eq!(result.code, 0, "{}", result.err);
    assert!(result.err.contains("10 runs are done, 0 are left"), "{}", result.err);
    assert_eq!(self::runs(&place).len(), 10);
    assert!(place.file("out.html").exists() && !place.file("out.data").exists());
}

#[test]
fn after_kill_9_nothing_is_repeated_and_nothing_is_lost() {
    let place = Place::new();
    place.write("small.toml", STUDY);
    let args = ["run", "small.toml", "--out", "out.sqlite"];
    let another_plan = |kills| {
        if kills == 2 {
            let seed = ["--resume", "--set", "seed=9"];
            place.refused(&[&args[..], &seed].concat(), &["another plan"]);
        }
    };
    place.through_kills(&args, 3, || place.file("out.sqlite").exists(), another_plan);
    let runs = runs(&place);
    let labels = labels(&runs);
    assert_eq!(runs.len(), 20, "{labels:?}");
    for store in ["rocksdb", "lmdb"] {
        for (workload, times) in [("load", 4), ("ycsb-a", 2), ("ycsb-c", 2), ("ycsb-e", 2)] {
            assert_eq!(labels[&format!("{store} {workload}")], times, "{labels:?}");
        }
    }
    for run in &runs {
        assert_eq!(run["errors"], 0, "{}: {}", run["label"], run["failures"]);
    }
    assert!(!place.file("out.data").exists());
}

#[test]
fn ctrl_c_keeps_finished_runs_and_says_how_to_resume() {
    let place = Place::new();
    place.write("small.toml", STUDY);
    let child =
        place.start(&["run", "small.toml", "--out", "out.sqlite", "--set", "measure.time=20s"]);
    until("the first run", || {
        place.file("out.sqlite").exists()
            && place.run(&["report", "out.sqlite", "--json"]).out.contains("\"run\"")
    });
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    let result = command_output(child.wait_with_output().unwrap());
    assert_eq!(result.code, 1, "{result:#?}");
    assert!(result.err.contains("--resume"), "{}", result.err);
    assert!(result.err.contains("--set measure.time=20s --resume"), "{}", result.err);
    let kept = runs(&place).len();
    assert!((1..20).contains(&kept), "{kept}");
}

#[test]
fn the_order_of_repeats_comes_from_the_seed() {
    let place = Place::new();
    place.write("small.toml", STUDY);
    let order = |seed: &str| {
        let set = format!("seed={seed}");
        let text =
            place.ok(&["run", "small.toml", "--dry-run", "--set", &set, "--set", "repeats=4"]);
        text.lines().filter(|line| line.contains("ycsb-c")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(order("1"), order("1"));
    assert!((2..6).any(|seed| order(&seed.to_string()) != order("1")));
}

/// The study of caches where memcached and Redis are all that the PATH has.
#[test]
fn servers_that_are_not_installed_are_left_out() {
    let place = Place::new();
    let folder = place.file("bin");
    std::fs::create_dir(&folder).unwrap();
    for name in ["memcached", "redis"] {
        let Ok((path, _)) = server::launch::installed(server::launch::program(name).unwrap())
        else {
            eprintln!("SKIPPED: {name} is not installed");
            return;
        };
        std::os::unix::fs::symlink(&path, folder.join(path.file_name().unwrap())).unwrap();
    }
    let plan = |more: &[&str]| {
        let args = [&["run", "cache-servers", "--scale", "small", "--dry-run"], more].concat();
        command_output(place.command(&args).env("PATH", &folder).output().unwrap()).out
    };
    let left_out = plan(&[]).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        left_out.contains("left out: store=valkey: `valkey-server` was not found"),
        "{left_out}"
    );
    assert!(left_out.contains("redis etc") && !left_out.contains("valkey etc"), "{left_out}");
    // An executable that the study names is wanted.
    let named = plan(&["--set", "server.valkey.binary=/nowhere/valkey-server"]);
    assert!(named.contains("valkey etc") && !named.contains("left out"), "{named}");
}

/// Only its form is looked at: on a busy machine a rate may not be held, or no run be valid.
#[test]
fn the_study_of_caches_answers() {
    let place = Place::new();
    let here =
        |name: &&str| server::launch::installed(server::launch::program(name).unwrap()).is_ok();
    let installed: Vec<&str> = ["memcached", "redis", "valkey"].into_iter().filter(here).collect();
    if installed.len() < 2 {
        eprintln!("SKIPPED: of memcached, Redis and Valkey only {installed:?} is installed");
        return;
    }
    let mut args = vec!["run", "cache-servers", "--scale", "small", "--out", "out.sqlite"];
    for set in [
        "data.records=2k",
        "measure.time=400ms",
        "calibrate.time=200ms",
        "calibrate.trials=4",
        "calibrate.to=4k",
        "factors.load.levels=[\"10k\",\"100%\"]",
    ] {
        args.extend(["--set", set]);
    }
    let done = place.run(&args);
    assert!(done.code == 0 || done.code == 1, "{done:?}");
    let words = "Which server serves most while 99 of 100 requests take less than a millisecond?";
    assert!(done.out.contains(words), "{}", done.out);
    let report = place.json(&["report", "out.sqlite", "--json"]);
    let runs = report.as_array().unwrap();
    for store in installed {
        for layout in ["one-thread", "three-processes"] {
            let has = |run: &&Value| {
                let of = |key: &str| run["settings"][key].as_str();
                run["store"] == store
                    && of("factor.layout") == Some(layout)
                    && of("factor.load") == Some("10k")
            };
            let run = runs.iter().find(has).unwrap_or_else(|| panic!("{store} {layout}"));
            assert_eq!(run["hit_ratio"], 1.0, "{store} {layout}");
            assert_eq!(run["errors"], 0, "{store} {layout}");
        }
    }
}
