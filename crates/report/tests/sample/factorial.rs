//! A study with a design as it might have run: memcached under SMT, idle states and rates, with
//! a budget that left out a repeat, a knob that is not here, checks that are broken, questions
//! that can be answered and one that cannot, and published numbers beside.

use model::{
    Design, Execution, LatencyClock, Op, Origin, Reading, ReadingValue, Run, RunLatency, Scope,
    Unit,
};
use serde_json::json;

use super::{Dice, RunParameters, execution, histogram, open, run};

const REPEATS: u32 = 5;

fn design() -> Design {
    serde_json::from_value(json!({
        "factors": [
            { "name": "smt", "sets": ["knobs.smt"], "levels": ["on", "off"] },
            { "name": "idle", "sets": ["knobs.idle"], "levels": ["all", "c1", "none"] },
            { "name": "rate", "sets": ["measure.rate"], "levels": ["10k", "100k", "200k"] },
        ],
        "skipped": [{ "levels": { "idle": "c1e" }, "why": "this processor has no C1E" }],
        "checks": [
            {
                "that": "latency_us.server.p99 <= latency_us.service.p99",
                "why": "what a server needs is part of what its client waits for",
            },
            { "that": "power_w <= 120", "when": "idle == 'none'" },
            { "that": "residency.C6 == 0", "when": "idle == 'c1'" },
        ],
        "questions": [
            {
                "ask": "What do SMT and the idle states do to the tail, and together?",
                "metric": "latency_us.read.p99",
                "factors": ["smt", "idle"],
            },
            { "ask": "What does SMT cost in watts?", "metric": "power_w", "factor": "smt" },
            { "ask": "Does SMT change the mean?", "metric": "hit_ratio", "factor": "smt" },
            {
                "ask": "Which settings are worth having?",
                "pareto": ["latency_us.read.p99", "power_w"],
                "where": { "rate": "100k" },
            },
            { "ask": "What of the package's idle states?", "metric": "residency.C6", "factor": "idle" },
        ],
        "figures": [
            {
                "id": "graph-1", "title": "Client latency by rate", "kind": "bars",
                "x": "rate", "y": "latency_us.read.p99", "series": "idle", "panels": "smt",
                "published": "graph-1",
            },
            {
                "id": "graph-2", "title": "Power over the rate", "kind": "lines",
                "x": "rate", "y": "power_w", "series": "idle", "where": { "smt": "on" },
                "published": "graph-2",
            },
            { "id": "graph-3", "title": "Residency", "kind": "bars", "x": "rate", "y": "residency.C6" },
        ],
        "published": {
            "source": "A. Author, An Earlier Study, 2022",
            "series": [
                {
                    "id": "graph-1", "metric": "latency_us.read.p99", "unit": "us",
                    "at": { "smt": "on", "idle": "none" }, "read": "table 5.2",
                    "points": [{ "x": "10k", "y": 71.0 }, { "x": "100k", "y": 103.5 }],
                },
                {
                    "id": "graph-2", "metric": "power_w", "unit": "W",
                    "at": { "idle": "all" }, "read": "text of 4.3",
                    "points": [{ "x": "50k", "y": 71.0 }, { "x": "200k", "y": 96.0 }],
                },
                {
                    "id": "graph-2", "metric": "energy", "unit": "kWh",
                    "read": "table 9", "points": [{ "x": "10k", "y": 1.0 }],
                },
            ],
            "findings": [{
                "id": "f", "says": "Without idle states the tail is shorter and the power higher.",
                "where": "section 5",
            }],
        },
        "scale": {
            "name": "small",
            "note": "A twentieth of the data, 2 s windows: the order of the answers, not their size.",
            "set": { "data.records": "50k", "measure.time": "2s" },
        },
    }))
    .expect("it is a design")
}

fn reading(signal: &str, value: Option<f64>, unit: Unit, scope: Scope) -> Reading {
    Reading {
        signal: signal.to_owned(),
        answer: match value {
            Some(value) => ReadingValue::Value(value),
            None => ReadingValue::Unavailable {
                reason: "this machine is a guest: its host keeps the counters".to_owned(),
                remedy: Some("measure on the host".to_owned()),
            },
        },
        unit,
        scope,
        source: "the sample".to_owned(),
        window_s: 10.0,
        origin: Origin::Measured,
    }
}

fn one(dice: &mut Dice, ordinal: u32, at: (&str, &str, f64), repeat: u32) -> Run {
    let (smt, idle, rate) = at;
    let parameters = RunParameters {
        store: "memcached",
        version: "memcached 1.6.38",
        workload: "etc",
        phase: model::Phase::Measure,
        ops: &[(Op::Read, 1.0, 30.0)],
        kops: rate / 1e3,
        pacing: open(rate),
        repeat,
    };
    let mut run = run(&parameters, ordinal, "e3");
    let noise = 1.0 + 0.02 * dice.normal();
    // Every ninth run was disturbed.
    let noise = if ordinal % 9 == 4 { noise * 1.6 } else { noise };
    let wake = match idle {
        "none" => 1.0,
        "c1" => 1.1,
        _ => 1.35,
    };
    let crowded = if smt == "on" { 1.0 + rate / 4e5 } else { 1.0 + rate / 8e5 };
    let median = 30_000.0 * wake * crowded * noise;
    let client = histogram(dice, median, median * 40.0, 20_000);
    let server = histogram(dice, median * 0.3, median * 10.0, 20_000);
    run.latencies = vec![
        RunLatency {
            op: Op::Read.into(),
            clock: LatencyClock::Response,
            histogram: client.clone().into(),
        },
        RunLatency { op: Op::Read.into(), clock: LatencyClock::Service, histogram: client.into() },
        RunLatency {
            op: model::LatencyScope::Any,
            clock: LatencyClock::Server,
            histogram: server.into(),
        },
    ]
    .into();
    let watts = (40.0 + rate / 4e3) * if smt == "on" { 1.05 } else { 1.0 };
    let watts = watts * if idle == "none" { 1.5 } else { 1.0 } * (1.0 + 0.01 * dice.normal());
    run.readings = vec![
        reading("energy.meter", Some(watts * 10.0), Unit::Joules, Scope::Wall),
        reading("cache.hit_ratio", Some(0.81 + 0.001 * dice.normal()), Unit::Ratio, Scope::Client),
        reading("residency.C6", None, Unit::Ratio, Scope::Machine),
    ];
    run.invalid_because.clear();
    // Ninety figures over time would show nothing that is looked for here.
    run.series.clear();
    run.settings = [
        ("factor.smt", smt),
        ("factor.idle", idle),
        ("factor.rate", &format!("{}k", rate / 1e3)),
        ("knobs.smt", smt),
        ("knobs.idle", idle),
        ("store", "memcached"),
        ("workload", "etc"),
        ("repeat", &repeat.to_string()),
    ]
    .map(|(key, value)| (key.to_owned(), value.to_owned()))
    .into();
    run
}

/// One execution of 2 x 3 x 3 cells, five times; one run is invalid, and one cell lacks its last.
pub fn factorial() -> Vec<(Execution, Vec<Run>)> {
    let mut dice = Dice(77);
    let mut runs = Vec::new();
    for repeat in 1..=REPEATS {
        for smt in ["on", "off"] {
            for idle in ["all", "c1", "none"] {
                for rate in [1e4, 1e5, 2e5] {
                    runs.push(one(&mut dice, runs.len() as u32, (smt, idle, rate), repeat));
                }
            }
        }
    }
    let question = Some("What do SMT and idle states do to memcached's tail and power?");
    let mut execution = execution("e3", "memcached-power", question, &runs);
    execution.design = design();
    execution.notes = vec!["the budget of 20 min left out 1 of 90 runs".to_owned()];
    runs.pop();
    runs[7].invalid_because.push("the client was busy for 97 % of the time".to_owned());
    vec![(execution, runs)]
}
