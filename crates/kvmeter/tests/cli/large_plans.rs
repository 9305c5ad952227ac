//! Plans that nobody could run are refused before they are built.

use crate::tool::Place;

#[test]
fn more_runs_than_a_plan_may_have_are_refused_at_once() {
    let place = Place::new();
    let most = u32::MAX.to_string();
    for repeats in ["4000000000", "100001", &most] {
        let bench = ["bench", "null", "--repeat", repeats, "--dry-run"];
        place.refused(&bench, &[&format!("--repeat {repeats}"), "100000 runs", "100000 repeats"]);
        place.refused(&bench[..4], &["--repeat"]);
    }
    let rates = ["bench", "null", "--rate", "1k..2k/1000", "--repeat", "101", "--dry-run"];
    place.refused(&rates, &["100 repeats at most"]);
    place.write("trace.csv", "0,key,3,10,1,get,0\n");
    place.refused(
        &["bench", "null", "--trace", "trace.csv", "--repeat", "4000000000", "--time", "1s"],
        &["--repeat 4000000000"],
    );
    let study = "name = \"large\"\nrepeats = 1\nsequence = [\"ycsb-c\"]\n[store.null]\n\
                 [data]\nrecords = 10\n[measure]\ntime = \"1s\"\n";
    place.write("study.toml", study);
    place.ok(&["run", "study.toml", "--dry-run"]);
    let set = |change: &str, words: &[&str]| {
        place.refused(&["run", "study.toml", "--dry-run", "--set", change], words);
    };
    set("repeats=4000000000", &["study.toml: `repeats` of 4000000000", "100000 runs"]);
    set("repeats=4294967295", &["100000 runs"]);
    set("design.adaptive={metric=\"throughput_ops_s\",width=0.1,most=4000000000}", &["`most`"]);
    // 100,000 combinations.
    let keys =
        ["data.records", "load.threads", "load.rate", "measure.threads", "measure.operations"];
    let factor = |(at, key): (usize, &&str)| {
        format!("[factors.f{at}]\nset = \"{key}\"\nlevels = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]\n")
    };
    let factors: String = keys.iter().enumerate().map(factor).collect();
    place.write("study.toml", &format!("{study}{factors}"));
    place.refused(&["run", "study.toml", "--dry-run"], &["more than 10000 combinations"]);
}
