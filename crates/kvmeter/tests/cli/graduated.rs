//! A graduated load: calibrated, measured at shares of its maximum, answered, drawn, costed, and
//! refused where it cannot be meant. Power is modelled, so that every machine has it.

use serde_json::Value;

use crate::tool::Place;

const STUDY: &str = r#"
name = "g"
repeats = 2
sequence = ["ycsb-c"]

[store.null]

[data]
records = 1000

[calibrate]
slo = "p50<1s"
time = "400ms"
to = "2k"

[measure]
threads = 1
time = "700ms"
arrivals = "poisson"

[probes]
use = ["model"]
idle = "500ms"
model = { idle_w = 40, full_w = 120 }

[factors.load]
set = "measure.rate"
levels = ["100%", "50%", "12.5%"]

[[questions]]
ask = "How does power follow load?"
graduated = "load"
"#;

fn study(place: &Place, text: &str) {
    place.write("g.toml", text);
}

fn reading(run: &Value, signal: &str) -> f64 {
    let all = run["readings"].as_array().unwrap();
    let json = all.iter().find(|reading| reading["signal"] == signal);
    json.and_then(|reading| reading["answer"]["value"].as_f64()).unwrap_or_else(|| panic!("{run}"))
}

fn trials(runs: &Value) -> Vec<&Value> {
    let all = runs.as_array().unwrap().iter();
    all.filter(|run| run["settings"]["search.for"].is_string()).collect()
}

/// Overall ops/J and proportionality of levels by their definitions.
fn by_hand(levels: &[Value]) -> (f64, f64) {
    let of = |level: &Value, key: &str| level[key].as_f64().unwrap();
    let sum = |key: &str| levels.iter().map(|level| of(level, key)).sum::<f64>();
    let peak = of(&levels[0], "power_w");
    let area: f64 = levels
        .windows(2)
        .map(|pair| {
            let width = of(&pair[0], "share") - of(&pair[1], "share");
            width * (of(&pair[0], "power_w") + of(&pair[1], "power_w")) / 2.0 / peak
        })
        .sum();
    (sum("throughput_ops_s") / sum("power_w"), 1.0 - (area - 0.5) / 0.5)
}

#[test]
fn a_graduated_load_is_calibrated_measured_and_answered() {
    let place = Place::new();
    study(&place, STUDY);
    let plan = place.ok(&["run", "g.toml", "--dry-run"]);
    assert!(plan.contains("6 runs in about") && plan.contains("1 calibration first"), "{plan}");
    let result = place.run(&["run", "g.toml", "--out", "out.sqlite"]);
    assert!(result.code == 0 || result.code == 1, "{}", result.err);
    assert!(result.err.contains("100 % is "), "{}", result.err);
    let runs = place.json(&["report", "out.sqlite", "--json"]);
    let tried = trials(&runs);
    assert!(tried.len() >= 2, "a closed loop and trials");
    let levels: Vec<&Value> = runs
        .as_array()
        .unwrap()
        .iter()
        .filter(|run| run["settings"]["factor.load"].is_string())
        .collect();
    assert_eq!(levels.len(), 3 * 2);
    assert_eq!(levels.len() + tried.len(), runs.as_array().unwrap().len());
    for run in &levels {
        let level = run["settings"]["factor.load"].as_str().unwrap();
        assert_eq!(run["settings"]["rate"], level, "the share stands, as it was asked");
        let share: f64 = level.trim_end_matches('%').parse::<f64>().unwrap() / 100.0;
        let maximum = reading(run, "calibrated.maximum");
        assert!(maximum > 0.0 && maximum <= 2000.0, "no more than it was told to try: {maximum}");
        assert_eq!(maximum, reading(levels[0], "calibrated.maximum"), "one for all levels");
        assert_eq!(run["target_rate_ops_s"].as_f64().unwrap(), share * maximum, "{level}");
    }

    if let Some(run) = levels.iter().find(|run| run["valid"] != true) {
        // Others keep this machine so busy that not even this rate can be held.
        eprintln!("skipped: {}", run["invalid_because"]);
        return;
    }
    let answers = place.json(&["report", "out.sqlite", "--answers", "--json"]);
    let study = if answers.is_array() { &answers[0] } else { &answers };
    let answer = &study["answers"][0];
    assert_eq!(answer["power"]["origin"], "modelled", "{answer}");
    let verdict = answer["verdict"].as_str().unwrap();
    assert!(verdict.contains("ops/J (modelled) over 3 levels of up to "), "{verdict}");
    let load = &answer["loads"][0];
    let figures = load["levels"].as_array().unwrap();
    let shares: Vec<f64> = figures.iter().map(|level| level["share"].as_f64().unwrap()).collect();
    assert_eq!(shares, [1.0, 0.5, 0.125, 0.0]);
    // The model's idle power is the one that it was given.
    assert_eq!(figures[3]["power_w"], 40.0);
    let (overall, proportionality) = by_hand(figures);
    let near = |key: &str, wanted: f64| {
        let json = load[key].as_f64().unwrap();
        assert!((json / wanted - 1.0).abs() < 1e-9, "{key}: {json} for {wanted}");
    };
    near("overall_ops_per_joule", overall);
    near("energy_proportionality", proportionality);
    near("idle_to_peak", 40.0 / figures[0]["power_w"].as_f64().unwrap());
    assert_eq!(load["repeats"], 2);
    let method = load["overall_interval"]["method"].as_str().unwrap();
    assert!(method.contains("Student's t, 1 degrees of freedom"), "{method}");

    let text = place.ok(&["report", "out.sqlite"]);
    for words in ["Graduated load", "energy proportionality", "modelled", "12 %", "idle"] {
        assert!(text.contains(words), "no `{words}`:\n{text}");
    }
    place.ok(&["report", "out.sqlite", "--html", "page.html"]);
    let page = std::fs::read_to_string(place.file("page.html")).unwrap();
    assert!(page.contains("Every level of the graduated load") && page.contains("modelled"));
    let args = ["report", "out.sqlite", "--markdown", "--figures", "drawn"];
    assert!(place.ok(&args).contains("### How does power follow load?"));
    let csv = std::fs::read_to_string(place.file("drawn/figure-graduated-load.csv")).unwrap();
    let svg = std::fs::read_to_string(place.file("drawn/figure-graduated-load.svg")).unwrap();
    assert!(svg.contains("<svg"));
    let watts = |x: &str| {
        let row = csv.lines().find(|row| row.split(',').nth(3) == Some(x)).unwrap();
        row.split(',').nth(5).unwrap().parse::<f64>().unwrap()
    };
    for (x, level) in ["100%", "50%", "12.5%", "0%"].iter().zip(figures) {
        assert_eq!(watts(x), level["power_w"].as_f64().unwrap(), "{csv}");
    }

    // What it costs at a quarter of its load is a quarter of the way between two levels' watts.
    let cost = |utilisation: &str| {
        let platform = "name=box,price=1000";
        let args = ["cost", "out.sqlite", "--platform", platform, "--utilisation", utilisation];
        place.json(&[&args[..], &["--target", "2k", "--json"][..]].concat())
    };
    let server = |json: &Value| json["workloads"][0]["servers"][0].clone();
    let watts = |level: usize| figures[level]["power_w"].as_f64().unwrap();
    let quarter = watts(2) + (0.25 - 0.125) / (0.5 - 0.125) * (watts(1) - watts(2));
    let json = cost("25%");
    let average = server(&json)["power_average_w"].as_f64();
    assert!(average.is_some_and(|w| (w / quarter - 1.0).abs() < 1e-9), "{json}");
    assert!(server(&json)["power_from"].as_str().unwrap().contains("graduated load"), "{json}");
}

#[test]
fn loads_of_other_work_are_noted() {
    let place = Place::new();
    let sizes = "[factors.size.levels]\nsmall = { \"data.value\" = { size = 100 } }\n\
                 large = { \"data.value\" = { size = 1000 } }\n\n[factors.load]";
    let text = STUDY.replace("[factors.load]", sizes).replace("repeats = 2", "repeats = 1");
    study(&place, &text.replace("[\"ycsb-c\"]", "[\"ycsb-a\"]"));
    let result = place.run(&["run", "g.toml", "--out", "out.sqlite"]);
    assert!(result.code == 0 || result.code == 1, "{}", result.err);
    let shown = place.run(&["cost", "out.sqlite", "--platform", "name=box,price=1000"]);
    let both = shown.out.contains("size=large") && shown.out.contains("size=small");
    if shown.code == 0 && !both {
        eprintln!("skipped: this machine is so busy that one of the loads has no valid run");
        return;
    }
    if shown.code != 0 {
        // Others keep this machine so busy that not even this rate can be held.
        let busy = ["level", "no run", "no valid run"];
        assert!(busy.iter().any(|words| shown.err.contains(words)), "{}", shown.err);
        eprintln!("skipped: {}", shown.err);
        return;
    }
    let flat = shown.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("did other work than") && flat.contains("bytes"), "{}", shown.out);
}

#[test]
fn a_killed_calibration_resumes_with_its_trials() {
    let place = Place::new();
    study(&place, &STUDY.replace("time = \"400ms\"", "time = \"1500ms\""));
    let mut child = place.start(&["run", "g.toml", "--out", "out.sqlite"]);
    let tried = || {
        let result = place.run(&["report", "out.sqlite", "--json"]);
        serde_json::from_str::<Value>(&result.out).map_or(0, |runs| trials(&runs).len())
    };
    crate::tool::until("a trial", || place.file("out.sqlite").exists() && tried() >= 2);
    child.kill().unwrap();
    child.wait().unwrap();
    let before = place.json(&["report", "out.sqlite", "--json"]);
    let ids = |runs: &Value| -> Vec<String> {
        trials(runs).iter().map(|run| run["run"].as_str().unwrap().to_owned()).collect()
    };
    let result = place.run(&["run", "g.toml", "--out", "out.sqlite", "--resume"]);
    assert!(result.code == 0 || result.code == 1, "{}", result.err);
    let after = place.json(&["report", "out.sqlite", "--json"]);
    assert!(ids(&after).starts_with(&ids(&before)), "{:?} {:?}", ids(&before), ids(&after));
    let closed = trials(&after).iter().filter(|run| run["target_rate_ops_s"].is_null()).count();
    assert_eq!(closed, 1, "it does not begin anew: {}", result.err);
}

#[test]
fn refuses_impossible_calibrations_at_their_place() {
    let place = Place::new();
    let refused = |from: &str, to: &str, words: &[&str]| {
        assert!(STUDY.contains(from), "{from}");
        study(&place, &STUDY.replace(from, to));
        let all: Vec<&str> = words.iter().copied().chain(["g.toml"]).collect();
        place.refused(&["run", "g.toml", "--dry-run"], &all);
    };
    let table = "[calibrate]\nslo = \"p50<1s\"\ntime = \"400ms\"\nto = \"2k\"\n";
    refused(table, "", &["a share of which maximum?", "g.toml:24:"]);
    refused("\"12.5%\"", "\"0%\"", &["a share of the maximum above 0", "g.toml:28:"]);
    refused("\"12.5%\"", "\"300%\"", &["up to 200%"]);
    refused("\"12.5%\"", "\"x%\"", &["`80%`", "g.toml:28:"]);
    refused("levels = [\"100%\", \"50%\", \"12.5%\"]", "levels = [\"1k\"]", &["no run has a rate"]);
    refused("p50<1s", "update.p50<1s", &["has no `update`"]);
    refused("p50<1s", "p50", &["p50"]);
    refused("to = \"2k\"", "to = \"2k\"\nfrom = \"3k\"", &["is above its highest"]);
    refused("to = \"2k\"", "most = \"2k\"", &["`most`", "g.toml:14:"]);
    refused("time = \"700ms\"", "operations = 500", &["give a time"]);
    refused("[data]", "[load]\nrate = \"50%\"\n[data]", &["of a load it is a number"]);
    refused("graduated = \"load\"", "graduated = \"lod\"", &["did you mean `load`?"]);
    refused(
        "graduated = \"load\"",
        "graduated = \"load\"\npareto = [\"power_w\", \"throughput_ops_s\"]",
        &["one question asks one thing"],
    );
}
