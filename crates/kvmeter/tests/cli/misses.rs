//! A modelled database behind a cache.

use serde_json::Value;

use crate::servers::Memcached;
use crate::tool::Place;

fn reading<'r>(run: &'r Value, signal: &str) -> &'r Value {
    let readings = run["readings"].as_array().unwrap();
    readings.iter().find(|reading| reading["signal"] == signal).unwrap_or(&Value::Null)
}

#[test]
fn misses_have_a_latency_of_their_own() {
    let server = Memcached::start();
    let place = Place::new();
    let url = server.url();
    // Half of the keys were never loaded.
    let args = ["bench", &url, "--workload", "tao-bench", "--records", "2k", "--hit-ratio", "0.5"];
    let more = ["--miss-latency", "20ms", "--ops", "2k", "--connections", "8", "--out", "t.sqlite"];
    let run = place.run(&[&args[..], &more, &["--json", "--quiet"]].concat()).json();
    assert_eq!((&run["errors"], &run["operations"]), (&0.into(), &2000.into()), "{run}");
    let value = |signal| reading(&run, signal)["answer"]["value"].as_f64().unwrap();
    assert!((900.0..1100.0).contains(&value("miss.count")), "{}", value("miss.count"));
    assert!((value("database.latency") - 0.02).abs() < 1e-6);
    for signal in ["miss.latency", "miss.p50", "miss.p99"] {
        assert!(value(signal) >= 0.0199, "{signal}: {}", value(signal));
        assert_eq!(reading(&run, signal)["origin"], "modelled");
    }
    assert_eq!(reading(&run, "database.latency")["origin"], "modelled");
    // The cache's answers are apart.
    let p50 = run["latency_us"]["read"]["p50"].as_f64().unwrap();
    assert!(p50 < 15_000.0, "{p50}");
    let text = place.ok(&["report", "t.sqlite"]);
    assert!(text.contains("Misses, latencies in") && text.contains("the database is modelled"));
    let none = ["--miss-latency", "none", "--ops", "1k", "--json", "--quiet"];
    let run = place.run(&[&args[..], &none].concat()).json();
    assert_eq!(reading(&run, "miss.count"), &Value::Null);
}

#[test]
fn a_database_that_cannot_be_modelled_is_refused() {
    let place = Place::new();
    let of = |more: &[&'static str]| [&["bench", "memcached://127.0.0.1:1"], more].concat();
    for (args, says) in [
        (&["--miss-latency", "lognorml:1ms,2ms"][..], "did you mean `lognormal`?"),
        (&["--miss-latency", "5 parsecs"], "--miss-latency 5 parsecs"),
        (&["--miss-latency", "-1ms"], "--miss-latency"),
        (&["--miss-latency", "2m"], "60s"),
        (&["--miss-latency", "5ms", "--multi-get", "4"], "multi_get"),
    ] {
        place.refused(&of(args), &[says]);
    }
    place.refused(&["bench", "null", "--workload", "tao-bench"], &["`miss_latency`", "`null`"]);
    let study = |more: &str| {
        format!(
            "name = \"t\"\nsequence = [\"load\", \"w\"]\n[store.memcached]\n\
             url = \"memcached://127.0.0.1:1\"\n[workloads.w]\n{more}"
        )
    };
    place.write("bad.toml", &study("miss_latency = \"5 parsecs\""));
    place.refused(&["run", "bad.toml", "--dry-run"], &["bad.toml"]);
}
