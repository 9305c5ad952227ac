//! A page of each kind that kvmeter writes.

mod simulated;

use analyse::cost::{CostTerms, ServerCandidate, answer};
use cachesim::thesis;
use model::{Execution, Phase, Run};
use report::cost::{CostView, PrintedCost};
use report::{LISTED, html, simulation};
use workload::fit::Resemblance;
use workload::trace::{TraceOptions, TraceRecords};

use crate::sample;
use simulated::{outcome, point, validation};

/// Every kind with its name.
pub fn all() -> Vec<(&'static str, String)> {
    let executions = [sample::study(), sample::sweep(), sample::factorial()].concat();
    vec![
        ("a bench", html::page(&sample::study()[1..])),
        ("several servers", html::page(&sample::servers())),
        ("a profiled run", html::page(&sample::profiled())),
        ("a study", html::page(&sample::factorial())),
        ("a study without a run", html::page(&unfinished())),
        ("merged results", html::page(&executions)),
        ("many runs", html::page(&many_runs())),
        ("work units", html::page(&work_units())),
        ("simulated runs", html::page(&simulated_runs())),
        ("costs", costs()),
        ("a workload", described_workload()),
        (
            "a sweep",
            simulation::swept_page(
                Some("ways"),
                &[point("2"), point("4")],
                &[outcome(60.0, &[]), outcome(90.5, &[2e8, 3e8])],
            ),
        ),
        ("a validation", simulation::validation_page(&validation())),
        ("figures of a thesis", thesis_figures()),
    ]
}

fn unfinished() -> Vec<(Execution, Vec<Run>)> {
    let mut study = sample::factorial();
    for (execution, runs) in &mut study {
        execution.finished_at = None;
        runs.clear();
    }
    study
}

/// More than are listed one by one.
fn many_runs() -> Vec<(Execution, Vec<Run>)> {
    let mut study = sample::study();
    let (_, runs) = &mut study[0];
    let few = runs.clone();
    while runs.len() <= LISTED {
        let next = runs.len() as u32;
        runs.extend(few.iter().zip(next..).map(|(run, ordinal)| {
            let id = format!("run {ordinal}");
            Run { id, ordinal, series: Vec::new(), ..run.clone() }
        }));
    }
    study
}

/// Rounds with one device and with two.
fn work_units() -> Vec<(Execution, Vec<Run>)> {
    let (execution, runs) = sample::study().remove(0);
    let rounds =
        [("raise", 1, 1), ("unit", 1, 1), ("unit", 1, 2), ("growth", 2, 1), ("growth", 2, 2)];
    let run = &runs[1];
    let round = |(nth, (stage, devices, number)): (usize, (&str, u32, u32))| {
        let mut round = Run { id: format!("round {nth}"), ordinal: nth as u32, ..run.clone() };
        round.operations *= u64::from(devices);
        let settings = [
            ("mbwu.stage", stage.to_owned()),
            ("mbwu.devices", devices.to_string()),
            ("mbwu.threads", "8".to_owned()),
            ("mbwu.round", number.to_string()),
            ("mbwu.loads", "1,8".to_owned()),
            ("mbwu.most_rounds", "20".to_owned()),
            ("mbwu.devices_there", "2".to_owned()),
            ("mbwu.gain", "0.05".to_owned()),
        ];
        round.settings.extend(settings.map(|(key, value)| (key.to_owned(), value)));
        round
    };
    vec![(execution, rounds.into_iter().enumerate().map(round).collect())]
}

fn simulated_runs() -> Vec<(Execution, Vec<Run>)> {
    let mut study = sample::study();
    study.truncate(1);
    for run in &mut study[0].1 {
        run.phase = Phase::Simulate;
        run.latencies = Default::default();
        run.series.clear();
        for (key, value) in [("simulate.traffic", "forward"), ("simulate.policy", "on")] {
            run.settings.insert(key.to_owned(), value.to_owned());
        }
    }
    study
}

/// A log of reads and writes whose keys differ in popularity, and what is generated like it: itself.
fn described_workload() -> String {
    let line = |n: u64| {
        let draw = model::random::mix(n);
        let key = (draw >> 32) % (1 + draw % 997);
        let command = if n.is_multiple_of(9) { "\"SET\"" } else { "\"GET\"" };
        let value = if n.is_multiple_of(9) {
            format!(" \"{}\"", "v".repeat(1 + key as usize))
        } else {
            String::new()
        };
        format!("{}.{:06} [0 a:1] {command} \"user:{key}\"{value}\n", n / 500, n % 500 * 2000)
    };
    let log: String = (0..20_000).map(line).collect();
    let (stream, options) = (Box::new(std::io::Cursor::new(log)), TraceOptions::default());
    let mut records = TraceRecords::read("a log".into(), stream, &options).unwrap();
    let described = workload::describe::describe(&mut records, |_| {}).unwrap();
    let check = Resemblance::of(&described, &described);
    let words = report::workload::sentences(&described, records.timing());
    let shown = (&described, records.timing());
    report::workload::page("The workload of a log", &words, shown, Some(&check))
}

/// Servers with and without numbers as printed, whose break-even prices lie close together.
pub fn costs() -> String {
    let candidate = |name: &str, price_usd, throughput_ops_s, active_w| ServerCandidate {
        name: name.to_owned(),
        workload: "ycsb-a".to_owned(),
        price_usd: Some(price_usd),
        throughput_ops_s,
        active_w,
        utilisation: None,
        curve: None,
        rack_units: Some(1.0),
        footprint_m2: Some(0.5),
    };
    let candidates = [
        candidate("a small server", 900.0, 337e3, 52.0),
        candidate("a server of two sockets", 3000.0, 505e3, 207.0),
        candidate("another of two sockets", 3000.0, 559e3, 233.0),
        candidate("a large one", 12_000.0, 1.19e6, 1203.5),
    ];
    let terms = CostTerms {
        target_ops_s: 1e8,
        years: vec![3.0, 5.0],
        usd_per_kwh: vec![0.07, 0.25],
        pue: 1.0,
        usd_per_rack_unit_month: 20.0,
        carbon_g_per_kwh: Some(300.0),
        utilisation: 1.0,
        at_price_usd: 3000.0,
        spread: 0.2,
    };
    let printed = PrintedCost {
        workload: "ycsb-a".to_owned(),
        name: "a small server".to_owned(),
        usd_per_h: vec![(0.07, 1.08), (0.25, 3.86)],
        normalised: 1.0,
    };
    report::cost::page(&CostView {
        title: "What it costs",
        answer: &answer(&candidates, &terms).unwrap(),
        terms: &terms,
        printed: &[printed],
        headline: None,
        notes: &["Source: a sample.".to_owned()],
    })
}

fn thesis_figures() -> String {
    let machine = cachesim::SimulatedMachine::open("xeon-e5-2697-v2").unwrap();
    let plans = thesis::figures(&machine).unwrap();
    let outcomes: Vec<_> = plans
        .iter()
        .flat_map(|plan| plan.jobs())
        .zip(0..)
        .map(|(_, nth)| outcome(f64::from(nth % 7) * 14.0, &[]))
        .collect();
    simulation::thesis_page(&plans, &outcomes)
}
