use std::collections::BTreeSet;

use model::{HarnessTax, Op, Origin, Reading, ReadingValue, Run, RunLatency, Scope, Unit};
use proptest::prelude::*;
use record::{FilterError, RecordError, ResultsFile, RunFilter, RunSelection};

use crate::example;

#[test]
fn runs_are_read_back_whole_and_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results.sqlite");
    let (mut first, second) = (example::execution("e1"), example::execution("e2"));
    let mut file = ResultsFile::create(&path).unwrap();
    assert!(file.writable() && file.path() == path);
    file.begin(&first).unwrap();
    file.begin(&second).unwrap();
    let (open, bare) = (example::run("e1", 1), example::bare_run("e1", 0));
    let other = example::run("e2", 7);
    for run in [&other, &open, &bare] {
        file.write_run(run).unwrap();
    }
    file.finish("e1", "2026-01-02T04:00:00Z").unwrap();
    first.finished_at = Some("2026-01-02T04:00:00Z".to_owned());
    assert_eq!(file.finished_runs("e1").unwrap(), BTreeSet::from([0, 1]));
    assert_eq!(file.finished_runs("nobody").unwrap(), BTreeSet::new());
    drop(file);

    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().flatten().collect();
    assert_eq!(left.len(), 1, "one file and nothing beside it: {left:?}");
    for file in [ResultsFile::read(&path).unwrap(), ResultsFile::open(&path).unwrap()] {
        assert_eq!(file.executions().unwrap(), [first.clone(), second.clone()]);
        let runs = file.runs(&RunFilter::all()).unwrap();
        assert_eq!(runs, [bare.clone(), open.clone(), other.clone()]);
    }
}

#[test]
fn a_copy_taken_between_runs_is_complete() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results.sqlite");
    let mut file = ResultsFile::create(&path).unwrap();
    file.begin(&example::execution("e")).unwrap();
    for ordinal in 0..3 {
        file.write_run(&example::run("e", ordinal)).unwrap();
        let copy = folder.path().join("copy.sqlite");
        std::fs::copy(&path, &copy).unwrap();
        let kept = ResultsFile::read(&copy).unwrap().finished_runs("e").unwrap();
        assert_eq!(kept, (0..=ordinal).collect());
    }
}

#[test]
fn a_concurrent_reader_sees_each_run() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results.sqlite");
    let mut file = ResultsFile::create(&path).unwrap();
    file.begin(&example::execution("e")).unwrap();
    let mut reader = ResultsFile::read(&path).unwrap();
    assert!(!reader.writable());
    file.write_run(&example::run("e", 0)).unwrap();
    assert_eq!(reader.finished_runs("e").unwrap(), BTreeSet::from([0]));
    let refused = reader.write_run(&example::run("e", 1)).unwrap_err();
    assert!(matches!(refused, RecordError::ReadOnly(_)), "{refused}");
}

#[test]
fn refuses_duplicates_and_unknown_executions() {
    let folder = tempfile::tempdir().unwrap();
    let mut file = ResultsFile::create(folder.path().join("results.sqlite")).unwrap();
    let run = example::run("e", 0);
    let early = file.write_run(&run).unwrap_err();
    assert!(matches!(&early, RecordError::UnknownExecution { id, .. } if id == "e"), "{early}");
    assert!(matches!(file.finish("e", "now").unwrap_err(), RecordError::UnknownExecution { .. }));
    file.begin(&example::execution("e")).unwrap();
    let again = file.begin(&example::execution("e")).unwrap_err();
    assert!(matches!(again, RecordError::ExecutionExists { .. }), "{again}");
    file.write_run(&run).unwrap();
    let same_ordinal = Run { id: "other".to_owned(), ..run.clone() };
    let same_id = Run { ordinal: 5, ..run.clone() };
    for twice in [same_ordinal, same_id] {
        let refused = file.write_run(&twice).unwrap_err();
        assert!(matches!(refused, RecordError::RunExists { .. }), "{refused}");
    }
    assert_eq!(file.runs(&RunFilter::all()).unwrap(), [run]);
}

#[test]
fn a_refused_run_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let mut file = ResultsFile::create(folder.path().join("results.sqlite")).unwrap();
    file.begin(&example::execution("e")).unwrap();
    let mut twice = example::run("e", 0);
    twice.latencies = [&twice.latencies[..], &twice.latencies[..1]].concat().into();
    let too_many = Run { verified: u64::MAX, ..example::run("e", 0) };
    for bad in [twice, too_many] {
        let refused = file.write_run(&bad).unwrap_err();
        assert!(
            matches!(&refused, RecordError::InvalidRecord { id, .. } if *id == bad.id),
            "{refused}"
        );
    }
    file.write_run(&example::run("e", 0)).unwrap();
    assert_eq!(file.runs(&RunFilter::all()).unwrap(), [example::run("e", 0)]);
}

#[test]
fn a_stored_run_gains_its_profile_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut file = ResultsFile::create(folder.path().join("results.sqlite")).unwrap();
    file.begin(&example::execution("e")).unwrap();
    let run = example::run("e", 0);
    file.write_run(&run).unwrap();
    let profiled = Run { profile: Some(Box::new(example::profile())), ..run };
    file.write_run(&profiled).unwrap();
    assert_eq!(file.runs(&RunFilter::all()).unwrap(), std::slice::from_ref(&profiled));
    let json = record::summary(&profiled, &example::execution("e"));
    let counts = &json["profile"]["kernel_counts"];
    let waits = &counts["histograms"][0];
    assert_eq!(
        (&waits["unit"], &waits["count"], &waits["p99"]),
        (&"nanoseconds".into(), &5.into(), &4096.0.into())
    );
    assert_eq!(
        (&counts["tcp"][0]["max_send_queue_bytes"], &counts["lost"]),
        (&64.into(), &7.into())
    );
    let server = &json["profile"]["top_down"]["processes"][1];
    assert_eq!(server["shares"]["retiring"], 0.25);
    assert!(server["shares"]["backend_bound"].is_null());
    assert_eq!(server["unavailable"]["backend_bound"], "the kernel refused it; ask it");
    assert_eq!((&server["events"][0]["count"], &server["user_only"]), (&1e9.into(), &true.into()));
    assert!(file.write_run(&profiled).is_err());
    let other = Run { id: "other".to_owned(), ..profiled };
    assert!(matches!(file.write_run(&other), Err(RecordError::RunExists { .. })));
}

#[test]
fn a_reading_that_is_not_a_number_is_stored_as_unavailable() {
    let folder = tempfile::tempdir().unwrap();
    let mut file = ResultsFile::create(folder.path().join("results.sqlite")).unwrap();
    file.begin(&example::execution("e")).unwrap();
    let odd = Run {
        seconds: f64::NAN,
        readings: vec![example::reading("ratio", ReadingValue::Value(f64::NAN))],
        tax: Some(HarnessTax {
            ns_per_op: f64::NAN,
            clock_ns: 1.0,
            verify_ns: None,
            busy: 0.5,
            measured_before_run: None,
        }),
        ..example::run("e", 0)
    };
    file.write_run(&odd).unwrap();
    let run = file.runs(&RunFilter::all()).unwrap().remove(0);
    assert!(run.seconds.is_nan() && run.tax.unwrap().ns_per_op.is_nan());
    let ReadingValue::Unavailable { reason, .. } = &run.readings[0].answer else {
        panic!("a value")
    };
    assert!(reason.contains("NaN"), "{reason}");
}

#[test]
fn a_selection_reads_the_filtered_runs_with_their_executions() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results.sqlite");
    let mut file = ResultsFile::create(&path).unwrap();
    for id in ["e1", "e2", "never-ran"] {
        file.begin(&example::execution(id)).unwrap();
    }
    file.write_run(&example::run("e1", 0)).unwrap();
    file.write_run(&example::bare_run("e2", 0)).unwrap();
    let path = path.to_str().unwrap();

    let all = RunSelection::open(path).unwrap();
    assert_eq!((all.executions.len(), all.runs.len(), all.pairs().len()), (3, 2, 2));
    let lmdb = RunSelection::open(&format!("{path}?store=lmdb&valid=true&phase=load")).unwrap();
    assert_eq!(lmdb.runs, [example::bare_run("e2", 0)]);
    assert_eq!(lmdb.executions, [example::execution("e2")]);
    let invalid = RunSelection::open(&format!("{path}?execution=e1&workload=ycsb-a")).unwrap();
    assert_eq!(invalid.runs, [example::run("e1", 0)]);

    let message = RunSelection::open(&format!("{path}?stroe=lmdb")).unwrap_err().to_string();
    assert!(message.contains("did you mean `store`"), "{message}");
    let nothing = RunSelection::open(&format!("{path}?store=fjall")).unwrap_err();
    assert!(matches!(&nothing, RecordError::Filter(FilterError::NoMatch { exists, .. })
        if exists == "store: lmdb, rocksdb"));
}

fn any_reading() -> impl Strategy<Value = Reading> {
    let answer = prop_oneof![
        prop::num::f64::NORMAL.prop_map(ReadingValue::Value),
        ("[a-z ]{1,9}", prop::option::of("[a-z ]{0,9}"))
            .prop_map(|(reason, remedy)| ReadingValue::Unavailable { reason, remedy }),
    ];
    let unit = prop::sample::select(vec![
        Unit::Count,
        Unit::Bytes,
        Unit::Seconds,
        Unit::Nanoseconds,
        Unit::OpsPerSecond,
        Unit::CpuSecondsPerMillionOps,
        Unit::PerMillionOps,
        Unit::PerThousandInstructions,
        Unit::Ratio,
        Unit::Joules,
        Unit::Watts,
        Unit::Hertz,
        Unit::Celsius,
        Unit::OpsPerJoule,
        Unit::JoulesPerOp,
        Unit::JouleSeconds,
    ]);
    let scope = prop::sample::select(vec![
        Scope::Process,
        Scope::Machine,
        Scope::Cpus,
        Scope::Device,
        Scope::Store,
        Scope::Harness,
        Scope::Server,
        Scope::Client,
        Scope::Package,
        Scope::Memory,
        Scope::PackageAndMemory,
        Scope::Component,
        Scope::Accelerator,
        Scope::Node,
        Scope::Wall,
        Scope::External,
    ]);
    let origin = prop::sample::select(vec![
        Origin::Measured,
        Origin::Modelled,
        Origin::Simulated,
        Origin::Published,
    ]);
    (any::<String>(), answer, unit, scope, any::<f32>(), origin).prop_map(
        |(signal, answer, unit, scope, window, origin)| Reading {
            source: signal.chars().rev().collect(),
            signal,
            answer,
            unit,
            scope,
            window_s: if window.is_nan() { 0.0 } else { window.into() },
            origin,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn any_run_is_read_back_equal(
        settings in prop::collection::btree_map(any::<String>(), any::<String>(), 0..6),
        counters in prop::collection::vec(0..=i64::MAX as u64, 6),
        seconds in 0.0..1e9f64,
        readings in prop::collection::vec(any_reading(), 0..6),
        texts in prop::collection::vec(any::<String>(), 0..4),
        samples in prop::collection::vec(0u64..1 << 50, 0..50),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let mut file = ResultsFile::create(folder.path().join("results.sqlite")).unwrap();
        file.begin(&example::execution("e")).unwrap();
        let mut run = example::run("e", u32::MAX);
        run.stream = settings.clone();
        run.settings = settings;
        run.operations = counters[0];
        run.misses = counters[1];
        run.series[0].p50_ns = counters[2];
        run.series[0].operations = counters[3];
        run.failures[0].count = counters[4];
        run.series[0].at_s = seconds;
        run.seconds = seconds;
        run.readings = readings;
        run.warnings = texts;
        let model = run.latencies[0].clone();
        let more = Op::ALL.into_iter().skip(2).map(|op| {
            let mut latency = RunLatency { op: op.into(), ..model.clone() };
            let mut histogram = latency.histogram.histogram();
            histogram.reset();
            samples.iter().for_each(|sample| histogram.record(*sample).unwrap());
            latency.histogram = histogram.into();
            latency
        });
        run.latencies = run.latencies.iter().cloned().chain(more).collect();
        file.write_run(&run).unwrap();
        // A free text may look like `user:password@host` by chance.
        run.warnings.iter_mut().for_each(hide);
        for reading in &mut run.readings {
            hide(&mut reading.source);
        }
        prop_assert_eq!(&file.runs(&RunFilter::all()).unwrap(), &[run]);
    }
}

fn hide(text: &mut String) {
    *text = model::masked(text).into_owned();
}

/// More runs than are in memory at once, kept in another order than that of their ordinals.
#[test]
fn for_each_reads_the_runs_of_a_selection() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("many.sqlite");
    let mut file = ResultsFile::create(&path).unwrap();
    for name in ["e1", "e2"] {
        file.begin(&example::execution(name)).unwrap();
        for ordinal in (0..300).rev() {
            let mut run = match ordinal % 50 {
                0 => example::run(name, ordinal),
                _ => example::bare_run(name, ordinal),
            };
            run.id = format!("{name} {ordinal}");
            file.write_run(&run).unwrap();
        }
    }
    drop(file);
    let path = path.to_str().unwrap();
    for text in [path.to_owned(), format!("{path}?execution=e2"), format!("{path}?valid=false")] {
        let expected = RunSelection::open(&text).unwrap();
        let mut runs = Vec::new();
        RunSelection::for_each(&text, |execution, run| {
            assert_eq!(execution.id, run.execution);
            runs.push(run.clone());
            Ok::<(), RecordError>(())
        })
        .unwrap();
        assert_eq!(runs, expected.runs, "{text}");
        assert!(!runs.is_empty());
    }
    let nothing =
        RunSelection::for_each(&format!("{path}?store=fjall"), |_, _| Ok::<(), RecordError>(()));
    assert!(nothing.is_err());
}
