//! A gate for CI: `compare --fail-on`, its exit codes and output; exports for services; the scripts
//! that CI runs.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::tool::{CommandOutput, Place};

const NULL: &str = "r.sqlite?store=null";
const LMDB: &str = "r.sqlite?store=lmdb";
const SLOWER: &str = "throughput_ops_s < -30%";
const LATER: &str = "latency_us.read.p50 > 30%";

/// A place with repeats of null, and of LMDB, which is slower by much more than runs vary. Another
/// program may take the machine while they are made, so that they prove nothing: more tries.
fn measured() -> Place {
    let proves = |place: &Place| {
        let worse = gated(place, NULL, LMDB, &["--fail-on", LATER]);
        let better = gated(place, LMDB, NULL, &["--fail-on", LATER]);
        worse.out.contains("2 of 2 judgements are a proven") && better.code == 0
    };
    (0..8).map(|_| measured_once()).find(proves).unwrap_or_else(measured_once)
}

fn measured_once() -> Place {
    let place = Place::new();
    for (store, repeats, out) in
        [("null", "5", "r.sqlite"), ("lmdb:db", "5", "r.sqlite"), ("null", "1", "single.sqlite")]
    {
        let args = ["bench", store, "--records", "1k", "--time", "200ms", "--probes", "off"];
        // A run that another program starved is invalid; then it proves nothing.
        let done =
            place.run(&[&args[..], &["--repeat", repeats, "--out", out, "--quiet"]].concat());
        assert!(done.code == 0 || done.out.contains("INVALID"), "{done:?}");
    }
    place
}

fn gated(place: &Place, a: &str, b: &str, more: &[&str]) -> CommandOutput {
    place.run(&[&["compare", a, b, "--fail-on", SLOWER][..], more].concat())
}

#[test]
fn each_answer_has_its_exit_code_and_a_sentence() {
    let place = measured();
    let worse = gated(&place, NULL, LMDB, &["--fail-on", LATER]);
    assert_eq!(worse.code, 1, "{worse:?}");
    assert!(worse.out.contains("The gate fails: 2 of 2 judgements are a proven"), "{worse:?}");
    let sentence = "failed: throughput_ops_s of ycsb-c is -";
    assert!(worse.out.contains(sentence), "{worse:?}");
    assert!(worse.out.contains("(99 % interval -"), "{worse:?}");
    assert!(worse.out.contains("5 and 5 runs), which is proven to be < -30%"), "{worse:?}");

    let better = gated(&place, LMDB, NULL, &["--fail-on", LATER, "--confidence", "95%"]);
    assert_eq!(better.code, 0, "{better:?}");
    assert!(better.out.contains("The gate passes: 2 of 2 judgements hold."), "{better:?}");
    assert!(better.out.contains("(95 % interval +"), "{better:?}");
    assert!(better.out.contains("proven not to be < -30%."), "{better:?}");

    let single = gated(&place, NULL, "single.sqlite", &[]);
    assert_eq!(single.code, 3, "{single:?}");
    assert!(single.out.contains("the data do not suffice for 1 of 1"), "{single:?}");
    assert!(single.out.contains("repeat each side 5 times or more"), "{single:?}");
    // Without a condition a comparison is no gate.
    assert!(!place.ok(&["compare", NULL, LMDB]).contains("gate"));
}

#[test]
fn json_and_markdown_have_the_verdicts() {
    let place = measured();
    let json = gated(&place, NULL, LMDB, &["--json"]);
    assert_eq!(json.code, 1);
    let gate = &json.json()["gate"];
    assert_eq!((&gate["outcome"], &gate["exit_code"]), (&"failed".into(), &1.into()), "{gate}");
    assert_eq!(gate["confidence"], 0.99);
    let judgement = &gate["judgements"][0];
    assert_eq!(judgement["verdict"], "regression", "{judgement}");
    assert_eq!(judgement["metric"], "throughput_ops_s");
    assert_eq!(judgement["condition"], SLOWER);
    assert!(judgement["ratio_high"].as_f64().unwrap() < 0.7, "{judgement}");
    assert!(place.json(&["compare", NULL, LMDB, "--json"]).get("gate").is_none());

    let markdown = gated(&place, NULL, LMDB, &["--markdown"]);
    assert_eq!(markdown.code, 1);
    let place_of = |text: &str| {
        markdown.out.find(text).unwrap_or_else(|| panic!("no `{text}`:\n{}", markdown.out))
    };
    // A pull request shows the beginning: the verdicts, their table, then the rest.
    assert_eq!(place_of("**The gate fails"), 0);
    let order = ["- failed: ", "| cell | condition |", "<details>", "latency.read.p99"];
    let order = order.map(place_of);
    assert!(order.is_sorted(), "{order:?}:\n{}", markdown.out);
    assert!(markdown.out.trim_end().ends_with("</details>"), "{}", markdown.out);
}

#[test]
fn a_wrong_condition_is_refused_before_a_file_is_read() {
    let place = Place::new();
    let refused = |condition: &str, words: &[&str]| {
        place.refused(&["compare", "no.sqlite", "none.sqlite", "--fail-on", condition], words);
    };
    refused("throughput_ops_s", &["--fail-on", "at character 17", "`>` or `<`"]);
    refused("latency_us.raed.p99 > 5%", &["at character 1", "did you mean `read`?"]);
    refused(" throughput_op_s < -5%", &["at character 2", "did you mean `throughput_ops_s`?"]);
    refused("ops_per_jule < -5%", &["did you mean `ops_per_joule`?"]);
    refused("throughput_ops_s < 3%", &["at character 20", "write `< -3%`"]);
    refused("throughput_ops_s < -3", &["at character 20", "write `-3%`"]);
    let known = ["compare", "no.sqlite", "none.sqlite", "--fail-on", SLOWER];
    place.refused(&known, &["no.sqlite"]);
    place.refused(&[&known[..], &["--confidence", "101%"]].concat(), &["--confidence", "99%"]);
    place.refused(&["compare", "a", "b", "--confidence", "95%"], &["--fail-on"]);
}

#[test]
fn a_metric_that_the_results_lack_is_refused() {
    let place = measured();
    let lacks = ["compare", NULL, LMDB, "--fail-on", "latency_us.scan.p99 > 5%"];
    place.refused(&lacks, &["latency_us.scan.p99 > 5%", "no service latency of scan"]);
}

#[test]
fn services_get_one_value_of_each_metric_and_cell() {
    let place = measured();
    let bencher = place.json(&["export", "r.sqlite", "--format", "bencher"]);
    let of_null = &bencher["ycsb-c on null"];
    for metric in ["throughput_ops_s", "latency_us.read.p99", "cpu_s_per_mop"] {
        let bounds = ["lower_value", "value", "upper_value"];
        let bounds = bounds.map(|key| of_null[metric][key].as_f64().unwrap_or(f64::NAN));
        assert!(bounds.is_sorted() && bounds[0] > 0.0, "{metric}: {bounds:?} in {bencher}");
    }
    assert_eq!(bencher.as_object().unwrap().len(), 2, "load phases are left out: {bencher}");
    let single = place.json(&["export", "single.sqlite", "--format", "bencher"]);
    let of_single = single["ycsb-c on null"]["cpu_s_per_mop"].as_object().unwrap();
    assert!(of_single.contains_key("value") && !of_single.contains_key("lower_value"), "{single}");

    let names = |format: &str| -> Vec<String> {
        let entries = place.json(&["export", "r.sqlite", "--format", format]);
        let entries = entries.as_array().unwrap().clone();
        let named = entries.iter().map(|entry| {
            assert!(entry["value"].as_f64().unwrap() > 0.0 && entry["unit"].is_string());
            assert!(entry["range"].as_str().unwrap().starts_with("95 % "), "{entry}");
            entry["name"].as_str().unwrap().to_owned()
        });
        named.collect()
    };
    let bigger = names("github-bigger-is-better");
    assert_eq!(bigger, ["ycsb-c on null: throughput_ops_s", "ycsb-c on lmdb: throughput_ops_s"]);
    let smaller = names("github-smaller-is-better");
    assert!(smaller.contains(&"ycsb-c on lmdb: latency_us.read.p99".to_owned()), "{smaller:?}");
    assert!(!smaller.iter().any(|name| name.contains("throughput")), "{smaller:?}");
    let table = ["export", "r.sqlite", "--format", "bencher", "--table", "runs"];
    place.refused(&table, &["--format bencher", "leave out --table"]);
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn the_script_runs_a_study_gates_and_writes_the_summary() {
    let place = Place::new();
    place.write(
        "ab.toml",
        "name = \"ab\"\nrepeats = 4\nsequence = [\"load\", \"ycsb-c\"]\n\
         [store.null]\n[store.lmdb]\n[data]\nrecords = \"1k\"\n[measure]\ntime = \"200ms\"\n\
         [probes]\nuse = \"off\"\n",
    );
    let script = |a: &str, b: &str, settings: &[(&str, &str)]| {
        // The same isolation as for the command itself.
        let kvmeter = place.command(&[]);
        let mut command = Command::new(root().join("scripts/ci-gate"));
        command.args([a, b]).current_dir(place.path()).stdin(Stdio::null());
        for (name, value) in kvmeter.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.env("KVMETER", env!("CARGO_BIN_EXE_kvmeter")).envs(settings.iter().copied());
        command.output().unwrap()
    };
    let (null, lmdb) = ("ab.sqlite?store=null", "ab.sqlite?store=lmdb");
    let conditions = ("FAIL_ON", "throughput_ops_s < -30%\n\n  latency_us.read.p50 > 30%\n");
    let (study, results) = (("STUDY", "ab.toml"), ("RESULTS", "ab.sqlite"));
    let summary = ("SUMMARY", "summary.md");
    let failed = script(null, lmdb, &[study, results, conditions, summary]);
    assert_eq!(failed.status.code(), Some(1), "{failed:?}");
    let text = std::fs::read_to_string(place.file("summary.md")).unwrap();
    assert!(text.starts_with("**The gate fails: 2 of 2 judgements"), "{text}");
    let passed = script(lmdb, null, &[conditions]);
    assert_eq!(passed.status.code(), Some(0), "{passed:?}");
    assert!(String::from_utf8_lossy(&passed.stdout).contains("The gate passes"), "{passed:?}");
    // The same runs on both sides.
    assert_eq!(script(null, null, &[conditions]).status.code(), Some(3));
    let lenient = script(null, null, &[conditions, ("UNDECIDED", "pass")]);
    assert_eq!(lenient.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&lenient.stderr).contains("the data do not suffice"));
    assert_eq!(script(null, lmdb, &[]).status.code(), Some(2), "no condition");
    assert_eq!(script(null, lmdb, &[conditions, ("STUDY", "none.toml")]).status.code(), Some(2));
}

/// What the action's steps use is among its inputs, and what it passes on is a setting of the
/// script.
#[test]
fn the_action_names_inputs_that_it_has_and_settings_that_the_script_has() {
    let action = std::fs::read_to_string(root().join("action.yml")).unwrap();
    let script = std::fs::read_to_string(root().join("scripts/ci-gate")).unwrap();
    let (inputs, steps) = action.split_once("\noutputs:").unwrap();
    let mut used = 0;
    for part in steps.split("${{ inputs.").skip(1) {
        let name = part.split(' ').next().unwrap();
        assert!(inputs.contains(&format!("\n  {name}:\n")), "{name}");
        used += 1;
    }
    assert!(used >= 11, "{used}");
    for setting in ["KVMETER", "STUDY", "RUN_ARGS", "RESULTS", "FAIL_ON", "CONFIDENCE", "UNDECIDED"]
    {
        assert!(steps.contains(&format!(" {setting}: ${{{{ ")), "{setting} in action.yml");
        assert!(script.contains(&format!("${{{setting}:-")), "{setting} in scripts/ci-gate");
    }
    assert!(script.contains("${SUMMARY:-}") && steps.contains("SUMMARY=$GITHUB_STEP_SUMMARY"));
}

#[test]
fn a_reader_that_stops_early_does_not_hide_a_regression() {
    let place = measured();
    let mut command = place.command(&["compare", NULL, LMDB, "--fail-on", SLOWER, "--json"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(1));
}

/// Half of the keys that are read are missing from the seventh result on: a step without noise.
#[test]
fn a_history_shows_where_a_metric_changed() {
    const SECOND_PART: usize = 7;
    let place = Place::new();
    let metric = ["--metric", "hit_ratio", "--across", "workload.is"];
    for at in 0..12 {
        if at == SECOND_PART {
            // Results of one second stand as their files are named, which is changed below.
            std::thread::sleep(Duration::from_millis(1100));
        }
        let (ratio, out) = (if at < 6 { "1" } else { "0.5" }, format!("{at:02}.sqlite"));
        let args = ["bench", "spill:db", "--records", "100", "--ops", "200", "--hit-ratio", ratio];
        let args = [&args[..], &["--probes", "off", "--out", &out, "--quiet"]].concat();
        // An invalid run is left out, and another one stands beside it.
        assert!((0..5).any(|_| place.run(&args).code == 0), "{args:?}");
    }
    let files: Vec<String> = (0..12).map(|at| format!("{at:02}.sqlite")).collect();
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let page = ["--html", "page.html", "--json"];
    let object = place.json(&[&["history"][..], &files, &metric, &page].concat());
    let series = object["series"].as_array().unwrap();
    assert_eq!(series.len(), 1, "{object}");
    let results = series[0]["results"].as_array().unwrap();
    let times: Vec<&str> = results.iter().filter_map(|one| one["started_at"].as_str()).collect();
    assert!(times.len() == 12 && times.is_sorted(), "{times:?}");
    let changes = series[0]["changes"].as_array().unwrap();
    assert_eq!(changes.len(), 1, "{object}");
    let change = &changes[0];
    assert_eq!((&change["result"], &change["file"]), (&6.into(), &"06.sqlite".into()), "{change}");
    assert_eq!((&change["worse"], &change["before"]), (&true.into(), &1.0.into()), "{change}");
    assert!(change["after"].as_f64().unwrap() < 0.6, "{change}");
    assert!(change["p"].as_f64().unwrap() <= 0.01, "{change}");
    let page = std::fs::read_to_string(place.file("page.html")).unwrap();
    assert!(page.contains("<svg") && page.contains("(worse), with the result of"), "{page}");

    // The same whatever the order of the files, but for results of one second.
    let others = [&files[SECOND_PART..], &files[..SECOND_PART]].concat();
    let again = place.json(&[&["history", "--json"][..], &others, &metric].concat());
    assert_eq!(again["series"][0]["changes"][0]["before"], 1.0, "{again}");
    let text = place.ok(&[&["history"][..], &files[..7], &metric].concat());
    assert!(text.contains("fewer than 10 results"), "{text}");
    // Without --across they are two series, in which nothing changed.
    let apart = place.json(&[&["history", "--json"][..], &files, &metric[..2]].concat());
    assert_eq!(apart["series"].as_array().unwrap().len(), 2, "{apart}");
    let typo = ["history", "00.sqlite", "--metric", "throughput_ops"];
    place.refused(&typo, &["did you mean `throughput_ops_s`"]);
    place.refused(&["history", "00.sqlite", "--metric", "energy.total"], &["no valid run has"]);
    let across = ["history", "00.sqlite", "--across", "workload.iss"];
    place.refused(&across, &["no run has the setting", "did you mean `workload.is`"]);
    place.refused(&["history", "none.sqlite"], &["none.sqlite"]);
}
