//! Questions of a study, answered from simulated runs whose truth is known.

// Helpers of tests panic as tests do.
#![allow(clippy::unwrap_used)]

#[allow(dead_code)]
mod synthetic;

use analyse::Verdict;
use analyse::answer::{Answer, AnswerKind, Confidence, RunWithSettings, answers};
use model::{Design, Execution, Run};
use serde_json::{Value, json};
use synthetic::{Random, reading, run};

const REPEATS: usize = 5;

/// SMT x idle at five repeats. SMT makes throughput 1.2 times and `all` 0.9 times, `none` makes latency 0.7 times,
/// and with SMT only 0.85 times. Neither changes `cpu_s_per_mop` but through throughput, and
/// `ipc` is the same everywhere.
fn runs(smt: &[&str], idle: &[&str]) -> Vec<Run> {
    let mut random = Random::new(32);
    let mut runs = Vec::new();
    for repeat in 1..=REPEATS {
        for s in smt {
            for i in idle {
                let rate =
                    1e5 * if *s == "on" { 1.2 } else { 1.0 } * if *i == "all" { 0.9 } else { 1.0 };
                let latency = match (*i, *s) {
                    ("none", "on") => 0.85e4,
                    ("none", _) => 0.7e4,
                    _ => 1e4,
                };
                let mut noise = || (0.01 * random.normal()).exp();
                let pairs = [
                    ("factor.smt", *s),
                    ("factor.idle", *i),
                    ("store", "memcached"),
                    ("workload", "etc"),
                    ("repeat", &repeat.to_string()),
                ];
                let id = format!("{s} {i} {repeat}");
                let mut run = run(&id, &pairs, rate * noise(), latency * noise(), 1);
                run.readings.push(reading("ipc", 1.5 * noise()));
                runs.push(run);
            }
        }
    }
    runs
}

fn design(questions: Value) -> Design {
    serde_json::from_value(json!({
        "factors": [
            { "name": "smt", "sets": ["knobs.smt"], "levels": ["off", "on"] },
            { "name": "idle", "sets": ["knobs.idle"], "levels": ["all", "none"] },
        ],
        "questions": questions,
    }))
    .unwrap()
}

fn execution(machine: &str) -> Execution {
    Execution {
        id: machine.to_owned(),
        study: "study".to_owned(),
        question: None,
        spec: String::new(),
        seed: 0,
        command: Vec::new(),
        version: String::new(),
        started_at: String::new(),
        finished_at: None,
        machine: model::Machine { id: machine.to_owned(), facts: Vec::new() },
        plan: Vec::new(),
        design: Design::default(),
        notes: Vec::new(),
    }
}

fn asked(questions: Value, runs: &[Run]) -> Vec<Answer> {
    let execution = execution("m");
    let situated: Vec<RunWithSettings> =
        runs.iter().map(|run| RunWithSettings::new(&execution, run)).collect();
    answers(&design(questions), &situated)
}

#[test]
fn a_main_effect_is_found_with_its_size() {
    let question =
        json!([{ "ask": "What does SMT do?", "metric": "throughput_ops_s", "factor": "smt" }]);
    let result = asked(question, &runs(&["off", "on"], &["all", "none"]));
    let [answer] = result.as_slice() else { panic!("{result:?}") };
    let AnswerKind::Effects { of, interactions, .. } = &answer.kind else { panic!("{answer:?}") };
    assert!(interactions.is_empty());
    let level = &of[0].levels[0];
    let interval = level.of.size.interval.clone().unwrap();
    assert!(interval.covers(1.2) && interval.high - interval.low < 0.06, "{interval:?}");
    assert_eq!((level.verdict, answer.confidence), (Verdict::Better, Confidence::High));
    assert_eq!(of[0].shares[0].factors, ["smt"]);
    assert!(of[0].shares[0].share > 0.6);
    assert!(
        answer
            .verdict
            .starts_with("Against SMT off, throughput is 20 % higher with SMT on (95 % +1"),
        "{}",
        answer.verdict
    );
    assert!(
        answer.verdict.ends_with("(mean of 2 combinations of idle, 20 runs)."),
        "{}",
        answer.verdict
    );
}

#[test]
fn an_interaction_is_told_and_all_comparisons_are_corrected_together() {
    let questions = json!([
        { "ask": "Both?", "metric": "latency_us.read.p50", "factors": ["smt", "idle"] },
        { "ask": "IPC?", "metric": "ipc", "factor": "smt" },
    ]);
    let result = asked(questions, &runs(&["off", "on"], &["all", "none"]));
    let AnswerKind::Effects { interactions, .. } = &result[0].kind else { panic!("{result:?}") };
    let size = &interactions[0].of.size;
    let truth = 0.85 / 0.7;
    assert!(size.interval.clone().unwrap().covers(truth), "{size:?}");
    assert_eq!(interactions[0].verdict, Verdict::Different);
    assert!(
        result[0].verdict.contains("with no idle states the effect of SMT on is 1.2"),
        "{}",
        result[0].verdict
    );
    assert_eq!(result[1].confidence, Confidence::NotShown);
    assert!(
        result[1].verdict.contains("instructions per cycle is not shown to differ"),
        "{}",
        result[1].verdict
    );
    let corrected: Vec<f64> = result.iter().flat_map(|answer| answer.kind.corrected()).collect();
    assert_eq!(corrected.len(), 4);
}

#[test]
fn a_front_names_its_cells() {
    let question =
        json!([{ "ask": "Best?", "pareto": ["throughput_ops_s", "latency_us.read.p99"] }]);
    let result = asked(question, &runs(&["off", "on"], &["all", "none"]));
    let AnswerKind::Front { fronts, .. } = &result[0].kind else { panic!("{result:?}") };
    let cells = &fronts[0].cells;
    let on: Vec<&str> =
        cells.iter().filter(|c| c.standing.on_front()).map(|c| c.title.as_str()).collect();
    assert_eq!(on, ["smt=off, idle=none", "smt=on, idle=none"]);
    let beaten = cells.iter().find(|cell| cell.title == "smt=on, idle=all").unwrap();
    assert_eq!(cells[beaten.beaten_by.unwrap()].title, "smt=on, idle=none");
    assert!(
        result[0].verdict.starts_with(
            "No other configuration beats these 2 of 4 in all of throughput and the 99th percentile"
        ),
        "{}",
        result[0].verdict
    );
    assert_eq!(result[0].confidence, Confidence::High);
}

#[test]
fn machines_are_a_factor_of_merged_files() {
    let all = runs(&["off"], &["all", "none"]);
    let (old, new) = (execution("old"), execution("new"));
    let mut faster = runs(&["off"], &["all", "none"]);
    for run in &mut faster {
        run.operations *= 2;
    }
    let situated: Vec<RunWithSettings> = all
        .iter()
        .map(|run| RunWithSettings::new(&old, run))
        .chain(faster.iter().map(|run| RunWithSettings::new(&new, run)))
        .collect();
    let question = json!([{ "ask": "Which?", "metric": "throughput_ops_s", "factor": "machine" }]);
    let result = answers(&design(question), &situated);
    assert!(
        result[0].verdict.contains("50 % lower with old (95 % -51 % to -49 %, p < 0.001)"),
        "{}",
        result[0].verdict
    );
}

#[test]
fn one_machine_says_how_to_get_a_second() {
    let question = json!([{ "ask": "Which?", "metric": "throughput_ops_s", "factor": "machine" }]);
    let result = asked(question, &runs(&["off"], &["all"]));
    let verdict = &result[0].verdict;
    assert!(verdict.starts_with("Not enough data: all runs are of one machine, m"), "{verdict}");
    assert!(verdict.contains("`kvmeter merge`"), "{verdict}");
}

/// Two rates; at the low one no idle states are best in the tail, at the high one all of them. The
/// low rate has the lower tail and power throughout.
fn by_rate() -> (Design, Vec<Run>) {
    let mut random = Random::new(7);
    let mut all = Vec::new();
    for repeat in 0..REPEATS {
        for (rate, ops, idle, latency) in [
            ("1k", 1e3, "all", 2e4),
            ("1k", 1e3, "none", 1e4),
            ("10k", 1e4, "all", 4e4),
            ("10k", 1e4, "none", 5e4),
        ] {
            let pairs = [
                ("factor.rate", rate),
                ("factor.idle", idle),
                ("store", "memcached"),
                ("workload", "etc"),
            ];
            let noise = (0.01 * random.normal()).exp();
            let mut run = run(&format!("{rate} {idle} {repeat}"), &pairs, ops, latency * noise, 1);
            let watts = if idle == "none" { 90.0 } else { 60.0 };
            run.readings.push(reading("limit.cpu", (watts + ops / 1e3) * noise));
            all.push(run);
        }
    }
    let design = serde_json::from_value(json!({
        "factors": [
            { "name": "rate", "sets": ["measure.rate"], "levels": ["1k", "10k"] },
            { "name": "idle", "sets": ["knobs.idle"], "levels": ["all", "none"] },
        ],
        "questions": [
            { "ask": "Best?", "best": "latency_us.read.p50" },
            { "ask": "Front?", "pareto": ["latency_us.read.p50", "throughput_ops_s"] },
            { "ask": "Idle?", "metric": "latency_us.read.p50", "factor": "idle" },
        ],
    }));
    (design.unwrap(), all)
}

fn answered(design: &Design, runs: &[Run]) -> Vec<Answer> {
    let execution = execution("m");
    let all: Vec<_> = runs.iter().map(|run| RunWithSettings::new(&execution, run)).collect();
    answers(design, &all)
}

#[test]
fn the_best_is_found_at_each_level_of_what_is_given() {
    let (design, runs) = by_rate();
    let result = answered(&design, &runs);
    let AnswerKind::Best { choices, metric } = &result[0].kind else { panic!("{result:?}") };
    assert_eq!(metric.name, "latency_us.read.p50");
    let found: Vec<_> = choices
        .iter()
        .map(|choice| {
            let (next, size) = choice.next.as_ref().unwrap();
            assert_eq!(size.verdict, Verdict::Better);
            (choice.given.as_str(), choice.winner.words.as_str(), next.words.as_str())
        })
        .collect();
    assert_eq!(
        found,
        [
            ("rate 1k", "no idle states", "all idle states"),
            ("rate 10k", "all idle states", "no idle states"),
        ]
    );
    let verdict = &result[0].verdict;
    let words = "No idle states at rate 1k; all idle states at rate 10k.";
    assert_eq!(verdict, words);
    let detail = &result[0].details[0];
    assert!(detail.starts_with("At rate 1k no idle states: 6."), "{detail}");
    assert!(detail.contains(" µs (95 % 6.") && detail.contains("50 % lower than with"), "{detail}");
    assert_eq!(result[0].confidence, Confidence::High);
}

/// By its median the first is best, by its mean the second.
#[test]
fn the_best_is_not_worse_than_the_second_best() {
    let (mut design, _) = by_rate();
    design.questions.truncate(1);
    design.questions[0].best = Some("throughput_ops_s".to_owned());
    let mut runs = Vec::new();
    for (idle, values) in [("all", [100.0, 101.0, 30.0]), ("none", [90.0, 91.0, 92.0])] {
        for (repeat, ops) in values.into_iter().enumerate() {
            let pairs = [
                ("factor.rate", "1k"),
                ("factor.idle", idle),
                ("store", "memcached"),
                ("workload", "etc"),
            ];
            runs.push(run(&format!("{idle} {repeat}"), &pairs, ops, 1e4, 1));
        }
    }
    let result = answered(&design, &runs);
    let AnswerKind::Best { choices, .. } = &result[0].kind else { panic!("{result:?}") };
    let (next, size) = choices[0].next.as_ref().unwrap();
    assert_eq!(
        (choices[0].winner.words.as_str(), next.words.as_str()),
        ("no idle states", "all idle states")
    );
    assert!(size.of.size.value > 1.0, "{size:?}");
}

#[test]
fn a_front_never_mixes_what_is_given() {
    let (design, runs) = by_rate();
    let result = answered(&design, &runs);
    let AnswerKind::Front { fronts, .. } = &result[1].kind else { panic!("{result:?}") };
    let given: Vec<_> = fronts.iter().map(|front| front.given.as_str()).collect();
    assert_eq!(given, ["rate 1k", "rate 10k"]);
    for front in fronts {
        assert_eq!(front.cells.len(), 2, "cells of the other rate: {front:?}");
        assert!(front.cells.iter().all(|cell| !cell.title.contains("rate")), "{front:?}");
    }
}

#[test]
fn an_effect_is_told_at_each_level_of_what_is_given() {
    let (design, runs) = by_rate();
    let details = &answered(&design, &runs)[2].details;
    let [low, high] = details.as_slice() else { panic!("{details:?}") };
    assert!(low.starts_with("At rate 1k 50 % lower with no idle states (95 %"), "{low}");
    assert!(high.starts_with("At rate 10k 25 % higher with no idle states (95 %"), "{high}");
}

#[test]
fn a_lead_that_is_not_significant_is_called_so() {
    let (design, mut runs) = by_rate();
    for run in runs.iter_mut().filter(|run| run.settings["factor.rate"] == "10k") {
        let latency = run.latencies[0].clone();
        // Both vary ninefold from repeat to repeat.
        let repeat = usize::from(run.id.bytes().last().unwrap() - b'0');
        let spread = match run.settings["factor.idle"].as_str() {
            "all" => [10, 90, 20, 80, 50][repeat],
            _ => [12, 85, 25, 70, 55][repeat],
        };
        let mut histogram = latency.histogram.histogram();
        histogram.reset();
        histogram.record_n(1_000 * spread, 100).unwrap();
        run.latencies = vec![model::RunLatency { histogram: histogram.into(), ..latency }].into();
    }
    let answer = &answered(&design, &runs)[0];
    assert!(answer.verdict.ends_with(", significantly in 1 of 2 cases."), "{}", answer.verdict);
    assert!(answer.details[1].contains(", which is not significant ("), "{:?}", answer.details);
    runs.retain(|run| run.settings["factor.rate"] == "10k");
    let only = &answered(&design, &runs)[0].verdict;
    assert!(only.contains(", which is not significant ("), "{only}");
}

#[test]
fn what_is_given_can_be_said() {
    let (mut design, runs) = by_rate();
    design.factors[0].given = Some(false);
    let result = answered(&design, &runs);
    let AnswerKind::Best { choices, .. } = &result[0].kind else { panic!("{result:?}") };
    assert_eq!(choices.len(), 1, "the rate is chosen, too");
    assert_eq!(choices[0].winner.words, "rate 1k, no idle states");
}

#[test]
fn one_configuration_is_nothing_to_choose_from() {
    let (design, mut runs) = by_rate();
    runs.retain(|run| run.settings["factor.idle"] == "all");
    let answer = &answered(&design, &runs)[0];
    assert!(answer.verdict.contains("only one configuration on one machine"), "{}", answer.verdict);
    assert_eq!(answer.confidence, Confidence::NoData);
}

#[test]
fn yes_and_no_are_said_where_they_are_known() {
    let asked_if = |yes_if: &str, metric: &str| {
        let question =
            json!([{ "ask": "Is it?", "metric": metric, "factor": "smt", "yes_if": yes_if }]);
        asked(question, &runs(&["off", "on"], &["all", "none"]))[0].verdict.clone()
    };
    for (yes_if, metric, word) in [
        ("differs", "throughput_ops_s", "Yes: against SMT off, throughput is 20 % higher"),
        ("better", "throughput_ops_s", "Yes: "),
        ("worse", "throughput_ops_s", "No: "),
        ("differs", "ipc", "No, by 5 % at most: "),
    ] {
        let verdict = asked_if(yes_if, metric);
        assert!(verdict.starts_with(word), "{yes_if} {metric}: {verdict}");
    }
    let mut few = runs(&["off", "on"], &["all"]);
    few.truncate(4);
    let wide = [1.0, 4.0, 3.0, 16.0];
    for (run, operations) in few.iter_mut().zip(wide) {
        run.operations = (1e5 * operations) as u64;
    }
    let question = json!([{
        "ask": "Is it?", "metric": "throughput_ops_s", "factor": "smt", "yes_if": "differs"
    }]);
    let verdict = &asked(question, &few)[0].verdict;
    assert!(verdict.starts_with("Neither yes nor no was shown: "), "{verdict}");
}

/// Four times as high by the geometric mean, with a spread that two repeats cannot see through.
#[test]
fn a_large_effect_of_few_repeats_is_told_with_what_would_show_it() {
    let mut few = runs(&["off", "on"], &["all"]);
    few.truncate(4);
    for (run, operations) in few.iter_mut().zip([1.0, 4.0, 3.0, 12.0]) {
        run.operations = (1e5 * operations) as u64;
    }
    let question = json!([{ "ask": "a", "metric": "throughput_ops_s", "factor": "smt" }]);
    let verdict = &asked(question, &few)[0].verdict;
    assert!(verdict.contains("4.00 times as high with SMT on"), "{verdict}");
    assert!(verdict.contains("but 2 repeats cannot rule out chance: "), "{verdict}");
    // ln 4 = 1.386; the error of the difference of two means of two is sqrt(2 * 0.603 / 2) = 0.777.
    // At n repeats it is 0.777 sqrt(2 / n), with 2 (n - 1) degrees of freedom. A power of 80 % at a
    // level of 5 %: (2.23 + 0.84) 0.449 = 1.377 at 6, (2.31 + 0.84) 0.491 = 1.547 at 5.
    assert_eq!(needed(verdict), 6, "{verdict}");
    // The level is lower where four comparisons are corrected together: Bonferroni's 1.25 %, and
    // (2.81 + 0.84) 0.366 = 1.338 at 9, (2.86 + 0.84) 0.388 = 1.439 at 8.
    let question = json!({ "ask": "a", "metric": "throughput_ops_s", "factor": "smt" });
    let verdict = &asked(json!([question, question, question, question]), &few)[0].verdict;
    assert_eq!(needed(verdict), 9, "{verdict}");
}

fn needed(verdict: &str) -> usize {
    let rest = verdict.split("rule out chance: ").nth(1).unwrap();
    rest.split(' ').next().unwrap().parse().unwrap()
}

/// SMT and idle states each change throughput, and neither changes what the other does.
#[test]
fn one_effect_of_several_factors_is_no_yes() {
    let question = json!([{
        "ask": "Together?", "metric": "throughput_ops_s", "factors": ["smt", "idle"],
        "yes_if": "differs"
    }]);
    let result = asked(question, &runs(&["off", "on"], &["all", "none"]));
    let AnswerKind::Effects { of, .. } = &result[0].kind else { panic!("{result:?}") };
    assert!(of.iter().all(|effects| effects.levels[0].verdict != Verdict::NoDifference));
    let verdict = &result[0].verdict;
    assert!(verdict.starts_with("No, by 5 % at most: "), "{verdict}");
}

#[test]
fn unanswerable_questions_say_why() {
    let questions = json!([
        { "ask": "a", "metric": "no metric!", "factor": "smt" },
        { "ask": "b", "metric": "power_w", "factor": "smt" },
        { "ask": "c", "metric": "throughput_ops_s", "factor": "turbo" },
        { "ask": "d", "metric": "throughput_ops_s" },
        { "ask": "e", "metric": "throughput_ops_s", "factor": "smt", "where": { "store": "redis" } },
        { "ask": "f", "pareto": ["throughput_ops_s", "ipc"] },
    ]);
    let result = asked(questions, &runs(&["off", "on"], &["all"]));
    for (answer, why) in result.iter().zip([
        "Not enough data: `no metric!` names no figure",
        "Not measurable here: no energy was read",
        "Not enough data: `turbo` is not a factor",
        "Not enough data: the question needs a `metric` with a `factor`",
        "Not enough data: no run meets its conditions",
        "Not enough data: no front can be drawn of `ipc`: neither more nor less of it is better",
    ]) {
        assert!(answer.verdict.starts_with(why), "{}", answer.verdict);
        let confidence = match why.starts_with("Not measurable") {
            true => Confidence::NotMeasurable,
            false => Confidence::NoData,
        };
        assert_eq!(answer.confidence, confidence);
    }
}

#[test]
fn single_runs_and_skipped_levels_have_no_verdict() {
    let once: Vec<Run> = runs(&["off", "on"], &["all"]).into_iter().take(2).collect();
    let question = json!([{ "ask": "a", "metric": "throughput_ops_s", "factor": "smt" }]);
    let result = asked(question.clone(), &once);
    assert_eq!(result[0].confidence, Confidence::NoData);
    assert!(result[0].verdict.contains("one value has no interval"), "{}", result[0].verdict);

    let mut design = design(question);
    design.skipped.push(model::design::SkippedCell {
        levels: [("smt".to_owned(), "on".to_owned())].into(),
        why: "this machine has no SMT".to_owned(),
    });
    let all = runs(&["off"], &["all"]);
    let execution = execution("m");
    let situated: Vec<RunWithSettings> =
        all.iter().map(|run| RunWithSettings::new(&execution, run)).collect();
    let result = answers(&design, &situated);
    assert!(
        result[0].verdict == "Not measurable here: this machine has no SMT.",
        "{}",
        result[0].verdict
    );
}

#[test]
fn invalid_runs_and_two_boundaries_do_not_count() {
    let mut all = runs(&["off", "on"], &["all"]);
    all[0].invalid_because.push("stolen".to_owned());
    all[1].readings.clear();
    let question = json!([{ "ask": "a", "metric": "ipc", "factor": "smt" }]);
    let result = asked(question.clone(), &all);
    assert_eq!((result[0].runs, result[0].invalid), (10, 1));
    assert_eq!(result[0].missing, [("no `ipc` was read in this run".to_owned(), 1)]);
    for run in &mut all[2..] {
        if run.settings["factor.smt"] == "on" {
            for reading in &mut run.readings {
                reading.scope = model::Scope::Wall;
            }
        }
    }
    let result = asked(question, &all);
    assert!(result[0].verdict.contains("differ in scope or origin"), "{}", result[0].verdict);
}

/// Repeats of 100 %, 50 % and 10 % of 100,000 ops/s on two stores; `redis` draws 100 W and 100 W
/// for its load, `spill` 200 W for its load alone. Each repeat draws `away` of that.
fn graduated(away: &[f64]) -> Vec<Run> {
    let mut runs = Vec::new();
    for (repeat, away) in away.iter().enumerate() {
        for (store, idle, busy) in [("redis", 100.0, 100.0), ("spill", 0.0, 200.0)] {
            for (level, share) in [("100%", 1.0), ("50%", 0.5), ("10%", 0.1)] {
                let pairs = [
                    ("factor.load", level),
                    ("store", store),
                    ("workload", "etc"),
                    ("rate", level),
                ];
                let mut run =
                    run(&format!("{store} {level} {repeat}"), &pairs, 1e5 * share, 1e4, 10);
                let rate_ops_s = 1e5 * share;
                run.pacing = model::LoopKind::Open { rate_ops_s, arrivals: "poisson".to_owned() };
                let watts = |signal: &str, value: f64, unit| model::Reading {
                    unit,
                    scope: model::Scope::Wall,
                    origin: model::Origin::Modelled,
                    ..reading(signal, value)
                };
                let drawn = (idle + busy * share) * away * 10.0;
                run.readings.push(watts("energy.wall", drawn, model::Unit::Joules));
                run.readings.push(watts("power.idle.wall", idle, model::Unit::Watts));
                runs.push(run);
            }
        }
    }
    runs
}

fn load_design() -> Design {
    serde_json::from_value(json!({
        "factors": [
            { "name": "load", "sets": ["measure.rate"], "levels": ["100%", "50%", "10%"] },
        ],
        "questions": [{ "ask": "How does power follow load?", "graduated": "load" }],
    }))
    .unwrap()
}

#[test]
fn graduated_loads_are_answered_for_each_store() {
    let runs = graduated(&[1.0, 1.0, 1.0]);
    let execution = execution("m");
    let situated: Vec<RunWithSettings> =
        runs.iter().map(|run| RunWithSettings::new(&execution, run)).collect();
    let result = answers(&load_design(), &situated);
    let AnswerKind::Graduated { loads, power, factor } = &result[0].kind else {
        panic!("{result:?}")
    };
    assert_eq!((factor.as_str(), power.unit.as_str()), ("load", "W"));
    let [redis, spill] = loads.as_slice() else { panic!("{loads:?}") };
    assert_eq!((redis.title.as_str(), spill.title.as_str()), ("store=redis", "store=spill"));
    // 160,000 ops/s over 200 + 150 + 110 + 100 W, and over 200 + 100 + 20 + 0 W.
    let near = |result: f64, expected: f64| {
        assert!((result - expected).abs() < 1e-9, "{result} {expected}")
    };
    near(redis.figures.overall_ops_per_joule, 160_000.0 / 560.0);
    near(spill.figures.overall_ops_per_joule, 500.0);
    // 100 W + 100 W x load: the area is 3/4; proportional: 1/2.
    near(redis.figures.proportionality.unwrap(), 0.5);
    near(spill.figures.proportionality.unwrap(), 1.0);
    near(redis.figures.idle_to_peak.unwrap(), 0.5);
    assert_eq!(redis.watts, [vec![200.0; 3], vec![150.0; 3], vec![110.0; 3], vec![100.0]]);
    let interval = redis.overall_interval.clone().unwrap();
    near(interval.low, interval.high);
    let words = &result[0].verdict;
    for part in [
        "store=redis: 286 ops/J (modelled) over 3 levels of up to 100,000 ops/s and the idle machine",
        "energy proportionality 0.50 of 1",
        "the idle machine draws 50 % of what the highest level draws",
    ] {
        assert!(words.contains(part), "no `{part}` in {words}");
    }
    assert_eq!(result[0].confidence, Confidence::High);
}

#[test]
fn repeats_of_a_graduated_load_say_how_sure_it_is() {
    // Loads of which a repeat draws 10 % less and more.
    let runs = graduated(&[0.9, 1.0, 1.1]);
    let execution = execution("m");
    let situated: Vec<RunWithSettings> =
        runs.iter().map(|run| RunWithSettings::new(&execution, run)).collect();
    let result = answers(&load_design(), &situated);
    let AnswerKind::Graduated { loads, .. } = &result[0].kind else { panic!("{result:?}") };
    let spill = &loads[1];
    // Each repeat alone: 160,000 / (320 x 0.9), 500, 160,000 / (320 x 1.1); Student's t of three.
    let each = [500.0 / 0.9, 500.0, 500.0 / 1.1];
    let expected = analyse::describe(&each).unwrap().mean_interval.unwrap();
    let found_interval = spill.overall_interval.clone().unwrap();
    assert_eq!(found_interval.method, expected.method);
    assert!((found_interval.low - expected.low).abs() < 1e-9, "{found_interval:?} {expected:?}");
    assert!((found_interval.high - expected.high).abs() < 1e-9);
    assert_eq!(spill.repeats, 3);
    assert_eq!(result[0].confidence, Confidence::NotShown, "{}", result[0].verdict);
    // A single repeat has the figures and no interval.
    let single: Vec<RunWithSettings> = situated[..6].to_vec();
    let result = answers(&load_design(), &single);
    let AnswerKind::Graduated { loads, .. } = &result[0].kind else { panic!("{result:?}") };
    assert!(loads[1].overall_interval.is_err());
    assert_eq!(result[0].confidence, Confidence::NoData);
}

#[test]
fn a_graduated_load_without_its_idle_machine_says_so() {
    let mut runs = graduated(&[1.0]);
    for run in &mut runs {
        run.readings.retain(|reading| reading.signal != "power.idle.wall");
    }
    let execution = execution("m");
    let situated: Vec<RunWithSettings> =
        runs.iter().map(|run| RunWithSettings::new(&execution, run)).collect();
    let result = answers(&load_design(), &situated);
    let AnswerKind::Graduated { loads, .. } = &result[0].kind else { panic!("{result:?}") };
    assert!((loads[0].figures.overall_ops_per_joule - 160_000.0 / 460.0).abs() < 1e-9);
    assert_eq!(loads[0].figures.proportionality, None);
    let words = &result[0].verdict;
    assert!(words.contains("is unknown: the power of the idle machine was not"), "{words}");
    // And where nothing measured power, there is no answer.
    for run in &mut runs {
        run.readings.clear();
    }
    let situated: Vec<RunWithSettings> =
        runs.iter().map(|run| RunWithSettings::new(&execution, run)).collect();
    let result = answers(&load_design(), &situated);
    assert!(matches!(result[0].kind, AnswerKind::Nothing(_)));
    assert!(result[0].verdict.contains("no energy was read"), "{}", result[0].verdict);
}

/// A store that forgot its data answers quickly, and no answer calls it better without saying so.
#[test]
fn an_answer_says_that_the_work_differed() {
    let questions = json!([
        { "ask": "What does SMT do?", "metric": "throughput_ops_s", "factor": "smt" },
        { "ask": "Which is best?", "pareto": ["throughput_ops_s", "latency_us.read.p99"] },
    ]);
    let mut runs = runs(&["off", "on"], &["all", "none"]);
    for result in asked(questions.clone(), &runs) {
        assert!(!result.verdict.contains("work differed"), "{}", result.verdict);
    }
    for run in &mut runs {
        run.operations = 100_000;
        run.stream.insert("asked.read".to_owned(), "100000".to_owned());
        let hits = if run.settings["factor.smt"] == "on" { 0.6 } else { 1.0 };
        run.readings.push(reading("cache.hit_ratio", hits));
    }
    for result in asked(questions, &runs) {
        assert!(result.verdict.contains("; the work differed: hit ratio "), "{}", result.verdict);
    }
}

/// Two levels that are not shown to differ have a line each; what is shown stays in the sentence.
#[test]
fn several_open_levels_have_their_own_lines() {
    let all = runs(&["off", "on", "half", "same"], &["all"]);
    let mut design = design(json!([
        { "ask": "a", "metric": "throughput_ops_s", "factor": "smt" }
    ]));
    design.factors[0].levels.extend(["half".to_owned(), "same".to_owned()]);
    let execution = execution("m");
    let situated: Vec<RunWithSettings> =
        all.iter().map(|run| RunWithSettings::new(&execution, run)).collect();
    let answer = &answers(&design, &situated)[0];
    assert!(answer.verdict.contains("20 % higher with SMT on"), "{}", answer.verdict);
    assert!(answer.verdict.contains("not shown to differ with the other 2 levels"));
    assert_eq!(answer.details.len(), 2, "{:?}", answer.details);
    for (detail, level) in answer.details.iter().zip(["SMT half", "SMT same"]) {
        assert!(detail.contains(level) && detail.contains("95 %"), "{detail}");
    }
}

/// A factor that is given and applies to one store alone does not part the stores.
#[test]
fn what_one_choice_alone_has_parts_nothing() {
    let mut all = runs(&["off"], &["all", "none"]);
    for run in &mut all {
        let lmdb = run.settings["factor.idle"] == "all";
        let store = if lmdb { "lmdb" } else { "rocksdb" };
        run.settings.insert("store".to_owned(), store.to_owned());
        run.settings.remove("factor.idle");
        if !lmdb {
            run.settings.insert("factor.rocksdb_data".to_owned(), "2M".to_owned());
        }
    }
    let mut design = design(json!([{ "ask": "Which?", "best": "throughput_ops_s" }]));
    let data = json!({ "name": "rocksdb_data", "sets": ["data.records"], "levels": ["2M"] });
    design.factors.push(serde_json::from_value(data).unwrap());
    let execution = execution("m");
    let situated: Vec<RunWithSettings> =
        all.iter().map(|run| RunWithSettings::new(&execution, run)).collect();
    let answer = &answers(&design, &situated)[0];
    let AnswerKind::Best { choices, .. } = &answer.kind else { panic!("{answer:?}") };
    assert_eq!(choices.len(), 1, "{answer:?}");
    assert!(answer.verdict.contains("than with LMDB"), "{}", answer.verdict);
    assert!(!answer.verdict.contains("rocksdb data"), "the store tells: {}", answer.verdict);
}
