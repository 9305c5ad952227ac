//! `kvmeter workload describe`.

mod file;
mod results;
mod ycsb;

use std::fmt::Write;

use crate::tool::Place;

/// Reads of few keys at whole seconds, one write of each first.
fn place() -> Place {
    let mut text = String::new();
    for second in 0..60 {
        for request in 0..100 {
            let key = (request * 7 + second) % 40;
            let operation = if second == 0 { "set" } else { "get" };
            writeln!(text, "{},key:{key:03},7,{},1,{operation},60", 7 + second, 100 + key).unwrap();
        }
    }
    let place = Place::new();
    place.write("requests.csv", &text);
    place
}

#[test]
fn a_trace_is_described_in_words_and_tables() {
    let text = place().ok(&["workload", "describe", "requests.csv"]);
    assert!(text.starts_with("Reads are 98"), "{text}");
    for part in [
        "6k requests in 1 min 00 s",
        "distinct keys",
        "An LRU cache of a tenth of the items",
        "Operations",
        "Sizes and expiries",
        "Popularity",
        "Miss ratio of an LRU cache",
        "Exact: the requests of every key were followed.",
        "Over time",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn a_description_is_json_too() {
    let json = place().json(&["workload", "describe", "requests.csv", "--json", "--quiet"]);
    assert_eq!((&json["format"], &json["times"]), (&"twitter".into(), &"seconds".into()));
    assert_eq!((&json["requests"], &json["reads"]), (&6000.into(), &5900.into()));
    assert_eq!(json["duration_s"], 60.0);
    assert_eq!(json["keys"]["exact"], true);
    assert_eq!(json["miss_ratio"]["points"].as_array().unwrap().len(), 100);
    assert_eq!(json["miss_ratio"]["points"][99]["by_items"], 0.0);
    let operations = json["operations"].as_array().unwrap();
    let set = operations.iter().find(|of| of["operation"] == "set").unwrap();
    assert_eq!((&set["requests"], &set["ttl_s"]["p50"]), (&100.into(), &60.into()));
    assert_eq!(set["key_bytes"]["mean"], 7.0);
    assert_eq!(json["inter_arrival"], serde_json::Value::Null);
}

#[test]
fn what_cannot_be_described_is_a_wrong_request() {
    let place = place();
    place.write("bad.csv", "7,a,1,1,1,get,0\n7,b,1,1,1,fetch,0\n");
    place.write("empty.csv", "");
    for (args, says) in [
        (&["bad.csv"][..], "bad.csv:2"),
        (&["empty.csv"], "empty.csv"),
        (&["missing.csv"], "missing.csv"),
        (&["requests.csv", "--trace-format", "twiter"], "twitter"),
        (&["requests.csv", "--trace-sample", "2"], "--trace-sample"),
    ] {
        place.refused(&[&["workload", "describe"], args].concat(), &[says]);
    }
    let skipped = place.ok(&["workload", "describe", "bad.csv", "--trace-skip-bad", "1"]);
    assert!(skipped.contains("1 malformed record was left out."));
}
