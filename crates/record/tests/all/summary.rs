use model::{HarnessTax, LoopKind, ReadingValue, Run};
use serde_json::Value;

use crate::example;

#[test]
fn summary_has_the_documented_keys() {
    let summary = record::summary(&example::run("e", 3), &example::execution("e"));
    let histogram = example::histogram(2);
    let read = &summary["latency_us"]["read"];
    for (key, nanoseconds) in [
        ("mean", histogram.mean()),
        ("p50", histogram.value_at_quantile(0.5) as f64),
        ("p99", histogram.value_at_quantile(0.99) as f64),
        ("p99_9", histogram.value_at_quantile(0.999) as f64),
        ("max", histogram.max() as f64),
    ] {
        assert_eq!(read[key].as_f64().unwrap(), nanoseconds / 1e3, "{key}");
    }
    assert_eq!(read["count"], 1001);
    assert!(summary["latency_us"]["update"]["p99_9"].is_f64());
    // Its service time stands beside, never in its place.
    assert_eq!(summary["service_us"]["read"]["mean"], example::histogram(1).mean() / 1e3);
    assert!(summary["service_us"]["update"].is_null());

    assert_eq!(summary["throughput_ops_s"], 40_000.4);
    assert_eq!(summary["target_rate_ops_s"], 40_000.5);
    assert_eq!(summary["achieved_rate_ops_s"], 39_990.25);
    assert_eq!(summary["hit_ratio"], 0.875);
    // The other boundaries, each under its own name; the server's are of any operation.
    assert_eq!(summary["arrival_latency_us"]["read"]["mean"], example::histogram(4).mean() / 1e3);
    let server = example::histogram(5);
    assert_eq!(summary["server_latency_us"]["mean"], server.mean() / 1e3);
    assert_eq!(summary["server_latency_us"]["p99_9"], server.value_at_quantile(0.999) as f64 / 1e3);
    assert_eq!(summary["server_latency_us"]["count"], server.len());
    assert_eq!(summary["loop"], "open");
    assert_eq!(summary["cpu_s_per_mop"], 3.25);
    assert_eq!(summary["verified"], 200_001);
    assert_eq!(summary["errors"], 7);
    assert_eq!(summary["valid"], false);
    assert_eq!(summary["invalid_because"][0], "the client was 97 % busy");
    assert_eq!(summary["harness"]["ns_per_op"], 81.5);
    assert_eq!(summary["store"], "rocksdb");
    assert_eq!(summary["workload"], "ycsb-a");
    assert_eq!((&summary["run"], &summary["execution"]), (&"e-3".into(), &"e".into()));
}

#[test]
fn in_a_closed_loop_the_service_time_is_the_latency() {
    let closed = Run { pacing: LoopKind::Closed { think_s: 0.5 }, ..example::run("e", 0) };
    let summary = record::summary(&closed, &example::execution("e"));
    assert_eq!(summary["latency_us"]["read"]["mean"], example::histogram(1).mean() / 1e3);
    assert!(summary.get("service_us").is_none());
    assert_eq!(summary["think_s"], 0.5);
}

#[test]
fn without_samples_there_are_no_figures_and_no_zeros() {
    let mut run = example::run("e", 0);
    let mut latencies = run.latencies.to_vec();
    latencies[2].histogram = model::Distribution::default();
    run.latencies = latencies.into();
    let summary = record::summary(&run, &example::execution("e"));
    let read = &summary["latency_us"]["read"];
    assert_eq!(read["count"], 0);
    assert!(read["p99"].is_null() && read["mean"].is_null(), "{read}");
    let bare = record::summary(&example::bare_run("e", 0), &example::execution("e"));
    assert!(bare["latency_us"].as_object().unwrap().is_empty());
    assert!(bare["achieved_rate_ops_s"].is_null() && bare["hit_ratio"].is_null());
    assert!(bare.get("server_latency_us").is_none() && bare.get("arrival_latency_us").is_none());
    assert!(bare["cpu_s_per_mop"].is_null() && bare["harness"].is_null());
    assert_eq!((&bare["valid"], &bare["errors"]), (&true.into(), &0.into()));
}

/// The paths of every null below.
fn nulls(value: &Value, at: &str, result: &mut Vec<String>) {
    match value {
        Value::Null => result.push(at.to_owned()),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                nulls(item, &format!("{at}/{index}"), result);
            }
        }
        Value::Object(fields) => {
            for (key, field) in fields {
                nulls(field, &format!("{at}/{key}"), result);
            }
        }
        _ => {}
    }
}

#[test]
fn json_has_no_non_finite_numbers() {
    for odd in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let run = Run {
            seconds: odd,
            pacing: LoopKind::Open { rate_ops_s: odd, arrivals: "constant".to_owned() },
            tax: Some(HarnessTax {
                ns_per_op: odd,
                clock_ns: odd,
                verify_ns: Some(odd),
                busy: odd,
                measured_before_run: None,
            }),
            readings: vec![example::reading("cpu_s_per_mop", ReadingValue::Value(odd))],
            ..example::run("e", 0)
        };
        let text = record::summary(&run, &example::execution("e")).to_string();
        let back: Value = serde_json::from_str(&text).unwrap();
        let reason = &back["readings"][0]["answer"]["unavailable"]["reason"];
        assert!(reason.as_str().unwrap().contains(&odd.to_string()), "{reason}");
        let mut result = Vec::new();
        nulls(&back, "", &mut result);
        for path in ["/seconds", "/target_rate_ops_s", "/harness/ns_per_op", "/cpu_s_per_mop"] {
            assert!(result.iter().any(|null| null == path), "{path} in {result:?}");
        }
    }
}

#[test]
fn an_expected_hit_ratio_holds_only_where_it_was_measured() {
    let mut run = example::run("e", 0);
    let expect = |run: &mut Run, shares: &str| {
        run.settings.insert(model::EXPECTED_HIT_RATIO.to_owned(), shares.to_owned());
    };
    assert_eq!(run.unexpected_hit_ratio(), None, "none was expected");
    expect(&mut run, "0.8..1");
    assert_eq!(run.unexpected_hit_ratio(), None);
    expect(&mut run, "0.9..1");
    assert!(run.unexpected_hit_ratio().unwrap().contains("0.8750"));
    run.readings.retain(|reading| reading.signal != "cache.hit_ratio");
    run.phase = model::Phase::Measure;
    assert!(run.unexpected_hit_ratio().unwrap().contains("there was no read"));
    run.phase = model::Phase::Load;
    assert_eq!(run.unexpected_hit_ratio(), None, "a load reads nothing");
}
