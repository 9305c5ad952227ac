//! Which runs are compared, in what, and what is refused.

mod synthetic;

use analyse::{
    CompareError, ComparedCell, Comparison, ComparisonSide, Contrast, IntervalMethod, NoInterval,
    Verdict, compare, compare_with_machines,
};
use model::{LatencyClock, LoopKind, Origin, Phase, ReadingValue, Run, RunLatency, Scope};
use synthetic::{Random, reading, run};

fn of(runs: &[Run]) -> Vec<&Run> {
    runs.iter().collect()
}

fn contrast<'a>(cell: &'a ComparedCell, name: &str) -> &'a Contrast {
    let result = cell.contrasts.iter().find(|contrast| contrast.metric.to_string() == name);
    result.unwrap_or_else(|| panic!("no {name} in {:?}", cell.contrasts))
}

fn withheld<'a>(cell: &'a ComparedCell, name: &str) -> &'a str {
    let result = cell.excluded_metrics.iter().find(|withheld| withheld.metric == name);
    &result.unwrap_or_else(|| panic!("{name} is not withheld: {:?}", cell.excluded_metrics)).reason
}

/// Three repeats of each workload, 1 % apart.
fn study(store: &str, workloads: &[&str], rate: f64) -> Vec<Run> {
    let mut runs = Vec::new();
    for workload in workloads {
        for (repeat, factor) in ["0", "1", "2"].into_iter().zip([0.99, 1.0, 1.01]) {
            let pairs = [("store", store), ("workload", workload), ("repeat", repeat)];
            let id = format!("{store} {workload} {repeat}");
            runs.push(run(&id, &pairs, rate * factor, 1e9 / (rate * factor), 20));
        }
    }
    runs
}

fn verdicts(result: &Comparison) -> Vec<Verdict> {
    result.cells.iter().flat_map(|cell| &cell.contrasts).map(|c| c.verdict).collect()
}

#[test]
fn two_stores_are_paired_by_workload() {
    let a = study("rocksdb", &["ycsb-a", "ycsb-b", "ycsb-c"], 1e5);
    let b = study("lmdb", &["ycsb-a", "ycsb-c", "ycsb-d"], 1.2e5);
    let result = compare(&of(&a), &of(&b)).unwrap();
    let named: Vec<_> =
        result.differences.iter().map(|d| (d.setting.as_str(), &d.a, &d.b)).collect();
    assert_eq!(named, [("store", &vec!["rocksdb".to_owned()], &vec!["lmdb".to_owned()])]);
    let titles: Vec<&str> = result.cells.iter().map(|cell| cell.title.as_str()).collect();
    assert_eq!(titles, ["ycsb-a", "ycsb-c"]);
    let lonely: Vec<_> =
        result.unmatched.iter().map(|l| (l.side, l.title.as_str(), l.runs)).collect();
    assert_eq!(lonely, [(ComparisonSide::A, "ycsb-b", 3), (ComparisonSide::B, "ycsb-d", 3)]);

    let cell = &result.cells[0];
    let throughput = contrast(cell, "throughput");
    assert_eq!((throughput.a, throughput.b), (1e5, 1.2e5));
    assert!((throughput.change().unwrap() - 0.2).abs() < 1e-6);
    let interval = throughput.change_interval().unwrap();
    assert!(interval.covers(0.2) && interval.low > 0.15 && interval.high < 0.25, "{interval:?}");
    assert!(matches!(interval.method, IntervalMethod::BetweenRuns { .. }));
    // More throughput is better, and so are less latency and less CPU.
    for name in ["throughput", "latency.read.mean", "latency.read.p99_9", "cpu_s_per_mop"] {
        assert_eq!(contrast(cell, name).verdict, Verdict::Better, "{name}");
    }
    let back = compare(&of(&b), &of(&a)).unwrap();
    assert!(verdicts(&back).iter().all(|verdict| *verdict == Verdict::Worse));
    assert_eq!(verdicts(&back).len(), 2 * 6);
    assert!((back.expected_by_chance() - 0.6).abs() < 1e-12);
}

#[test]
fn a_run_is_no_different_from_itself() {
    let runs = study("rocksdb", &["ycsb-a", "ycsb-b"], 1e5);
    for selection in [&runs[..], &runs[..1]] {
        let result = compare(&of(selection), &of(selection)).unwrap();
        assert!(result.differences.is_empty());
        let verdicts = verdicts(&result);
        assert!(!verdicts.is_empty());
        assert!(verdicts.iter().all(|verdict| *verdict == Verdict::NoDifference), "{verdicts:?}");
        assert_eq!(contrast(&result.cells[0], "throughput").ratio, Some(1.0));
    }
}

#[test]
fn single_runs_are_compared_by_their_series() {
    let mut random = Random::new(5);
    let mut made = |store: &str, rate: f64| {
        let mut made = run(store, &[("store", store), ("workload", "w")], rate, 1e4, 40);
        for point in &mut made.series {
            point.operations = (rate * (1.0 + 0.02 * random.normal())) as u64;
            point.p50_ns = (point.p50_ns as f64 * (1.0 + 0.02 * random.normal())) as u64;
        }
        made
    };
    let (a, b) = (made("a", 1e4), made("b", 1.2e4));
    let result = compare(&[&a], &[&b]).unwrap();
    let cell = &result.cells[0];
    let throughput = contrast(cell, "throughput");
    assert_eq!(throughput.verdict, Verdict::Better);
    let method = throughput.interval.clone().unwrap().method;
    assert!(method.to_string().contains("variation from run to run is not covered"));
    assert_eq!(contrast(cell, "latency.read.p50").verdict, Verdict::NoDifference);
    // Of the mean and the CPU the series keeps nothing.
    for name in ["latency.read.mean", "cpu_s_per_mop"] {
        let single = contrast(cell, name);
        assert_eq!(single.verdict, Verdict::NotEnoughData);
        assert_eq!(single.interval, Err(NoInterval::NoSeries));
    }
    // p99.9 of 10,000 operations is its tenth slowest; of 9,000 it would be too few.
    assert!(contrast(cell, "latency.read.p99_9").interval.is_ok());
    let (a, b) = (made("a", 9e3), made("b", 9e3));
    let result = compare(&[&a], &[&b]).unwrap();
    let sparse = contrast(&result.cells[0], "latency.read.p99_9");
    assert!(matches!(sparse.interval, Err(NoInterval::SparseSeries { .. })), "{sparse:?}");
}

#[test]
fn a_short_run_is_not_enough_data() {
    let a = run("a", &[("store", "a")], 1e4, 1e4, 9);
    let b = run("b", &[("store", "b")], 2e4, 1e4, 9);
    let result = compare(&[&a], &[&b]).unwrap();
    let throughput = contrast(&result.cells[0], "throughput");
    assert_eq!(throughput.verdict, Verdict::NotEnoughData);
    assert_eq!(throughput.interval, Err(NoInterval::ShortSeries { got: 9, needed: 10 }));
    assert!((throughput.ratio.unwrap() - 2.0).abs() < 1e-9);
}

#[test]
fn a_partial_last_second_is_not_a_slow_one() {
    let mut a = run("a", &[("store", "a")], 1e4, 1e4, 20);
    let mut last = a.series[19];
    (last.at_s, last.seconds, last.operations) = (20.1, 0.1, 3);
    a.series.push(last);
    let b = run("b", &[("store", "b")], 1.01e4, 1e4, 20);
    let result = compare(&[&a], &[&b]).unwrap();
    assert_eq!(contrast(&result.cells[0], "throughput").verdict, Verdict::Better);
}

#[test]
fn invalid_runs_are_left_out_and_counted() {
    let mut a = study("rocksdb", &["ycsb-a", "ycsb-b"], 1e5);
    let b = study("lmdb", &["ycsb-a", "ycsb-b"], 1e5);
    a[0].invalid_because.push("the client was late".to_owned());
    let result = compare(&of(&a), &of(&b)).unwrap();
    assert_eq!((result.excluded_a, result.excluded_b), (1, 0));
    assert_eq!(result.cells[0].runs_a, ["rocksdb ycsb-a 1", "rocksdb ycsb-a 2"]);
    a[1].invalid_because.push("the client was late".to_owned());
    a[2].invalid_because.push("the client was late".to_owned());
    let result = compare(&of(&a), &of(&b)).unwrap();
    assert_eq!((result.cells.len(), result.unmatched[0].invalid_on_other_side), (1, 3));
    let error = compare(&of(&a[..3]), &of(&b)).unwrap_err();
    assert!(matches!(error, CompareError::AllInvalid { side: ComparisonSide::A, count: 3, .. }));
    assert!(error.to_string().contains("the client was late"));
    assert_eq!(compare(&of(&b), &[]), Err(CompareError::Empty(ComparisonSide::B)));
}

#[test]
fn runs_that_are_not_repeats_are_refused_by_name() {
    let mut a = study("rocksdb", &["ycsb-a"], 1e5);
    for (run, cache) in a.iter_mut().zip(["1GiB", "1GiB", "2GiB"]) {
        run.settings.insert("store.cache".to_owned(), cache.to_owned());
    }
    let b = study("lmdb", &["ycsb-a"], 1e5);
    let error = compare(&of(&a), &of(&b)).unwrap_err();
    let CompareError::Mixed { side: ComparisonSide::A, setting, values, .. } = &error else {
        panic!("{error}")
    };
    assert_eq!((setting.as_str(), values.as_str()), ("store.cache", "1GiB and 2GiB"));
    let result = compare(&of(&a[..2]), &of(&b)).unwrap();
    assert_eq!(result.differences[1].setting, "store.cache");
    assert_eq!(result.differences[1].b, ["(not set)"]);
}

#[test]
fn incomparable_selections_are_refused() {
    let a = study("rocksdb", &["ycsb-a"], 1e5);
    let mut b = study("lmdb", &["ycsb-a"], 1e5);
    for run in &mut b {
        run.phase = Phase::Load;
    }
    let error = compare(&of(&a), &of(&b)).unwrap_err();
    assert!(matches!(&error, CompareError::Meaningless { setting, .. } if setting == "phase"));

    // Crossed: each value on both sides, no cell in common.
    let cross = |first: &str, second: &str| {
        [("rocksdb", first), ("lmdb", second)].map(|(store, threads)| {
            let pairs = [("store", store), ("threads", threads)];
            run(&format!("{store}{threads}"), &pairs, 1e4, 1e4, 10)
        })
    };
    let error = compare(&of(&cross("1", "2")), &of(&cross("2", "1"))).unwrap_err();
    assert_eq!(error, CompareError::NothingInCommon { settings: "`store`, `threads`".to_owned() });
}

#[test]
fn another_workload_or_machine_is_a_noted_difference() {
    let a = study("rocksdb", &["ycsb-a"], 1e5);
    let b = study("rocksdb", &["ycsb-b"], 1e5);
    let on = |run: &Run| Some(format!("machine of {}", run.settings["workload"]));
    let result = compare_with_machines(&of(&a), &of(&b), on).unwrap();
    let cautioned: Vec<_> =
        result.differences.iter().map(|d| (d.setting.as_str(), d.caution.is_some())).collect();
    assert_eq!(cautioned, [("machine", true), ("workload", true)]);
    assert_eq!(result.cells[0].settings["threads"], "1");
}

#[test]
fn other_durability_is_a_noted_difference() {
    let promise = |mut runs: Vec<Run>, survives: &str| {
        for run in &mut runs {
            run.settings.insert(Run::SURVIVES.to_owned(), survives.to_owned());
        }
        runs
    };
    let a = promise(study("lmdb", &["ycsb-a"], 1e5), "process kill");
    let b = promise(study("redb", &["ycsb-a"], 1e3), "power loss");
    let result = compare(&of(&a), &of(&b)).unwrap();
    let noted = result.differences.iter().find(|d| d.setting == Run::SURVIVES).unwrap();
    assert!(noted.caution.unwrap().contains("not comparable in that respect"));
    assert_eq!(
        (&noted.a[..], &noted.b[..]),
        (&["process kill".into()][..], &["power loss".into()][..])
    );
    // A file without it says nothing about it, and is compared as before.
    let old = study("redb", &["ycsb-a"], 1e3);
    let result = compare(&of(&a), &of(&old)).unwrap();
    let settings: Vec<&str> = result.differences.iter().map(|d| d.setting.as_str()).collect();
    assert_eq!((settings, result.cells.len()), (vec!["store"], 1));
}

fn open(runs: &mut [Run], rate: f64) {
    for run in runs {
        run.pacing = LoopKind::Open { rate_ops_s: rate, arrivals: "poisson".to_owned() };
        let service = run.latencies[0].clone();
        let response = RunLatency { clock: LatencyClock::Response, ..service.clone() };
        run.latencies = vec![service, response].into();
    }
}

#[test]
fn clocks_and_rates_are_not_mixed() {
    let closed = study("rocksdb", &["ycsb-a"], 1e5);
    let (mut slow, mut fast) = (closed.clone(), study("lmdb", &["ycsb-a"], 1e5));
    open(&mut slow, 1e4);
    open(&mut fast, 2e4);
    let result = compare(&of(&closed), &of(&fast)).unwrap();
    let cell = &result.cells[0];
    assert!(withheld(cell, "latency").contains("`pacing`"));
    assert!(withheld(cell, "throughput").contains("`pacing`"));
    let left: Vec<String> = cell.contrasts.iter().map(|c| c.metric.to_string()).collect();
    assert_eq!(left, ["cpu_s_per_mop"]);

    let result = compare(&of(&slow), &of(&fast)).unwrap();
    assert!(result.differences.iter().any(|d| d.setting == "pacing" && d.caution.is_some()));
    let cell = &result.cells[0];
    assert!(withheld(cell, "throughput").contains("target rate"));
    let analyse::ComparedMetric::Latency { clock, .. } = contrast(cell, "latency.read.p99").metric
    else {
        panic!()
    };
    assert_eq!(clock, LatencyClock::Response);
}

#[test]
fn readings_of_another_boundary_are_withheld() {
    let (mut a, mut b) = (study("rocksdb", &["w"], 1e5), study("lmdb", &["w"], 1e5));
    for run in a.iter_mut().chain(&mut b) {
        run.readings.push(reading("write_amplification", 4.0));
        run.readings.push(reading("write_amplification.device", 5.0));
        run.readings.push(reading("memory.peak", 5.0));
    }
    for run in &mut b {
        run.readings[1].scope = Scope::Machine;
    }
    let result = compare(&of(&a), &of(&b)).unwrap();
    let cell = &result.cells[0];
    assert_eq!(
        withheld(cell, "write_amplification"),
        "its scope differs between the runs: process and machine"
    );
    // Equal in every repeat: an interval of no width around 1.
    assert_eq!(contrast(cell, "write_amplification.device").verdict, Verdict::NoDifference);
    assert!(cell.contrasts.iter().all(|c| c.metric.to_string() != "memory.peak"));
}

#[test]
fn a_percentile_of_too_few_samples_has_no_verdict() {
    let (mut a, b) = (study("rocksdb", &["w"], 1e5), study("lmdb", &["w"], 2e5));
    let mut few = a[1].latencies[0].histogram.histogram();
    few.reset();
    few.record_n(1000, 3000).unwrap();
    let few = RunLatency { histogram: few.into(), ..a[1].latencies[0].clone() };
    a[1].latencies = vec![few].into();
    let result = compare(&of(&a), &of(&b)).unwrap();
    let cell = &result.cells[0];
    let p999 = contrast(cell, "latency.read.p99_9");
    assert_eq!(p999.verdict, Verdict::NotEnoughData);
    assert_eq!(
        p999.interval,
        Err(NoInterval::TooFewSamples { percentile: 99.9, got: 3000, needed: 3688 })
    );
    assert!(contrast(cell, "latency.read.p99").interval.is_ok());
}

#[test]
fn repeats_in_another_order_or_twice_change_nothing() {
    let a = study("rocksdb", &["ycsb-a", "ycsb-b"], 1e5);
    let b = study("lmdb", &["ycsb-a", "ycsb-b"], 1.1e5);
    let mut shuffled = of(&a);
    shuffled.reverse();
    shuffled.extend(of(&a));
    let (plain, other) = (compare(&of(&a), &of(&b)).unwrap(), compare(&shuffled, &of(&b)).unwrap());
    assert_eq!(verdicts(&plain), verdicts(&other));
    assert_eq!(plain.cells[0].runs_a.len(), other.cells[0].runs_a.len());
}

#[test]
fn modelled_and_measured_readings_are_not_compared() {
    let (mut a, mut b) = (study("rocksdb", &["w"], 1e5), study("lmdb", &["w"], 1e5));
    for run in a.iter_mut().chain(&mut b) {
        run.readings.push(reading("ops_per_joule", 400.0));
        run.readings.push(reading("ops_per_joule.model", 400.0));
        run.readings.push(reading("ipc", 1.5));
        run.readings.push(reading("residency.C6", 0.5));
    }
    for run in &mut b {
        let [energy, model, ipc, _] = run.readings.last_chunk_mut().unwrap();
        energy.origin = Origin::Modelled;
        model.origin = Origin::Modelled;
        ipc.answer = ReadingValue::Value(1.8);
    }
    let result = compare(&of(&a), &of(&b)).unwrap();
    let cell = &result.cells[0];
    assert_eq!(
        withheld(cell, "ops_per_joule"),
        "its origin differs between the runs: measured and modelled"
    );
    // A higher IPC is neither better nor worse: a loop that waits has a high one, too.
    assert_eq!(contrast(cell, "ipc").verdict, Verdict::Different);
    assert_eq!(contrast(cell, "residency.C6").verdict, Verdict::NoDifference);
    for run in &mut b {
        run.readings.retain(|reading| !reading.signal.starts_with("ops_per_joule"));
        let mut modelled = reading("ops_per_joule", 500.0);
        modelled.origin = Origin::Modelled;
        run.readings.push(modelled);
    }
    for run in a.iter_mut().flat_map(|run| &mut run.readings) {
        run.origin = Origin::Modelled;
    }
    let result = compare(&of(&a), &of(&b)).unwrap();
    let energy = contrast(&result.cells[0], "ops_per_joule");
    assert_eq!(energy.verdict, Verdict::Better);
    assert_eq!(energy.metric.provenance().unwrap().1, Origin::Modelled);
}

#[test]
fn all_cells_together_have_a_verdict() {
    let side = |store: &str, factor: f64| -> Vec<Run> {
        let mut runs = Vec::new();
        for (workload, rate) in [("a", 1e5), ("b", 4e5)] {
            for (i, noise) in [0.99, 1.0, 1.01].into_iter().enumerate() {
                let pairs = [("store", store), ("workload", workload)];
                let id = format!("{store} {workload} {i}");
                runs.push(run(&id, &pairs, rate * factor * noise, 1e4, 1));
            }
        }
        runs
    };
    let (a, b, c) = (side("x", 1.0), side("y", 1.3), side("z", 1.0));
    let compared = |a: &[Run], b: &[Run]| {
        compare(&a.iter().collect::<Vec<_>>(), &b.iter().collect::<Vec<_>>()).unwrap()
    };
    let result = compared(&a, &b);
    let overall = result.overall();
    let throughput = overall.iter().find(|one| one.metric == "throughput").unwrap();
    assert_eq!((throughput.cells, throughput.verdict), (2, Verdict::Better));
    assert!((throughput.ratio - 1.3).abs() < 1e-3, "{throughput:?}");
    let interval = throughput.interval.clone().unwrap();
    // Two cells of three repeats each: se = 0.01 sqrt(2 / 3) / sqrt(2), df 8, t 2.306.
    let half = 2.306 * 0.01 * (1.0_f64 / 3.0).sqrt();
    assert!(((interval.high / 1.3).ln() - half).abs() < 2e-4, "{interval:?}");
    // Latency is the same, CPU goes with the rate.
    let sentence = result.verdict();
    assert!(
        sentence.starts_with("B is better than A: better in throughput (1.300 times"),
        "{sentence}"
    );
    assert!(sentence.contains("no difference shown in latency.read.p99"), "{sentence}");
    assert!(result.workload_difference().is_none());
    let sentence = compared(&a, &c).verdict();
    assert!(sentence.starts_with("no difference between B and A is shown"), "{sentence}");
    let sentence = compared(&b, &a).verdict();
    assert!(sentence.starts_with("B is worse than A"), "{sentence}");
}

/// Three repeats of a cache at the same rate, with so many hits and operations of a kind.
fn cached(store: &str, hit_ratio: f64, reads: u64, updates: u64) -> Vec<Run> {
    let mut runs = study(store, &["w"], 1e5);
    for run in &mut runs {
        run.settings.insert("connections".to_owned(), "16".to_owned());
        run.readings.push(reading("cache.hit_ratio", hit_ratio));
        run.stream.insert("asked.read".to_owned(), reads.to_string());
        run.stream.insert("asked.update".to_owned(), updates.to_string());
    }
    runs
}

#[test]
fn sides_that_did_different_work_are_not_called_equal() {
    let small = cached("small", 0.146, 1000, 0);
    let large = cached("large", 1.0, 1000, 0);
    let result = compare(&of(&small), &of(&large)).unwrap();
    let cell = &result.cells[0];
    assert_eq!(cell.other_work.len(), 1);
    assert_eq!(cell.other_work[0].to_string(), "hit ratio 0.146 against 1");
    for name in ["throughput", "latency.read.p99", "cpu_s_per_mop"] {
        assert_eq!(contrast(cell, name).verdict, Verdict::OtherWork, "{name}");
    }
    assert_eq!(contrast(cell, "cache.hit_ratio").verdict, Verdict::Better);
    let words = result.verdict();
    assert!(words.starts_with("B and A did different work"), "{words}");
    assert!(words.contains("hit ratio 0.146 against 1"), "{words}");
    assert!(
        words.contains("no verdict on throughput") && !words.contains("no difference"),
        "{words}"
    );
    // What hits alike is compared as ever, and where all hits there is nothing to say of it.
    let result = compare(&of(&large), &of(&cached("other", 1.0, 1000, 0))).unwrap();
    assert!(result.cells[0].other_work.is_empty());
    assert_eq!(contrast(&result.cells[0], "throughput").verdict, Verdict::NoDifference);
    assert!(result.cells[0].contrasts.iter().all(|c| c.metric.to_string() != "cache.hit_ratio"));
}

#[test]
fn hit_ratios_differ_beyond_chance_only() {
    let with = |store: &str, ratio: f64, misses: u64| {
        let mut runs = cached(store, ratio, 1000, 999_000);
        for run in &mut runs {
            (run.operations, run.misses) = (1_000_000, misses);
        }
        runs
    };
    // 1,000 reads among a million operations, of one key or of a thousand.
    let result = |keys: u64| {
        let (a, b) = (with("a", 0.5, keys / 2), with("b", 0.54, keys * 46 / 100));
        compare(&of(&a), &of(&b)).unwrap().cells[0].other_work.len()
    };
    assert_eq!((result(1000), result(1_000_000)), (0, 1));
}

#[test]
fn mixes_differ_beyond_chance_only() {
    let a = cached("a", 1.0, 500_000, 500_000);
    let result = compare(&of(&a), &of(&cached("b", 1.0, 800_000, 200_000))).unwrap();
    let words: Vec<String> = result.cells[0].other_work.iter().map(ToString::to_string).collect();
    assert_eq!(words, ["share of read 0.5 against 0.8", "share of update 0.5 against 0.2"]);
    assert!(result.verdict().contains("did different work"), "{}", result.verdict());
    let result = compare(&of(&a), &of(&cached("b", 1.0, 505_000, 495_000))).unwrap();
    assert!(result.cells[0].other_work.is_empty());
}

#[test]
fn values_of_another_size_are_other_work() {
    let moved = |store: &str, bytes: f64| {
        let mut runs = cached(store, 1.0, 500, 500);
        for run in &mut runs {
            run.readings.push(reading("workload.written", bytes * 500.0));
        }
        runs
    };
    let result = compare(&of(&moved("a", 100.0)), &of(&moved("b", 1000.0))).unwrap();
    assert_eq!(result.cells[0].other_work[0].to_string(), "bytes a write 100 against 1000");
    let result = compare(&of(&moved("a", 100.0)), &of(&moved("b", 110.0))).unwrap();
    assert!(result.cells[0].other_work.is_empty());
}
