//! Relations that must hold in a run.

#[expect(dead_code, reason = "nothing is drawn here")]
mod synthetic;

use analyse::check::{CheckExpression, CheckResult, judge};
use model::Run;
use model::design::CheckSpec;
use proptest::prelude::*;
use synthetic::{reading, run};

/// At 1000 ops/s, about 50 us, on a machine with one idle state read.
fn a_run() -> Run {
    let pairs = [
        ("store", "memcached"),
        ("factor.idle", "c1"),
        ("factor.rate", "10k"),
        ("store.memory", "64MiB"),
    ];
    let mut run = run("memcached", &pairs, 1_000.0, 50_000.0, 3);
    run.readings.extend([reading("residency.C6", 0.0), reading("ipc", 0.8)]);
    run.readings.push(reading("residency.C6-SKX", 0.5));
    run
}

fn holds(text: &str) -> Result<bool, String> {
    text.parse::<CheckExpression>().expect(text).holds(&a_run())
}

#[test]
fn relations_evaluate_as_written() {
    for text in [
        "ipc > 0.5",
        "ipc >= 80%",
        "residency.C6 = 0",
        "residency.C6 == 0 and not ipc < 0.8",
        "idle == 'c1'",
        "factor.idle == \"c1\" && store != 'redis'",
        "rate == 10k",
        "rate * 2 == 20_000",
        "store.memory == 64Mi",
        "latency_us.p50 < latency_us.p99",
        "latency_us.p50 ≤ 2 * latency_us.read.mean + 1",
        "abs(0 - ipc) == ipc",
        "max(ipc, 0.9, 0.1) == 0.9 and min(ipc, 2) == ipc",
        "(ipc > 2 or ipc < 1) and -ipc < 0",
        "`residency.C6-SKX` == 0.5",
        "ipc - 0.3 - 0.3 < 0.3",
        "1 / ipc / 2 < 0.7",
        "not not ipc > 0",
        "throughput_ops_s > 1e2",
    ] {
        assert_eq!(holds(text), Ok(true), "{text}");
        assert_eq!(holds(&format!("not ({text})")), Ok(false), "not {text}");
    }
}

#[test]
fn missing_values_are_unknown_unless_the_rest_decides() {
    assert!(holds("mpki.llc < 1").unwrap_err().contains("mpki.llc"));
    assert!(holds("mpki.llc < 1 and ipc > 0").is_err());
    assert_eq!(holds("mpki.llc < 1 and ipc > 1"), Ok(false));
    assert_eq!(holds("ipc > 0 or mpki.llc < 1"), Ok(true));
    assert!(holds("idle > 3").unwrap_err().contains("`c1` is not a number"));
    assert!(holds("ipc / residency.C6 > 1").unwrap_err().contains("zero"));
}

#[test]
fn parse_errors_name_the_position() {
    for (text, at, words) in [
        ("", 1, "missing"),
        ("ipc", 1, "not a relation"),
        ("ipc >", 6, "missing at the end"),
        ("ipc > 0.5 0.6", 11, "should end here"),
        ("ipc ~ 1", 5, "is unexpected"),
        ("(ipc > 1", 9, "`)` is missing"),
        ("ipc > 'a'", 1, "no order"),
        ("1 < 2", 1, "two constants"),
        ("1 == 'a'", 1, "never equal"),
        ("0 < ipc < 1", 9, "one comparison at a time"),
        ("ipc and ipc > 1", 1, "this is a value"),
        ("ipc > 1 or idle", 12, "this is a value"),
        ("(ipc > 1) + 1 > 2", 1, "not a number"),
        ("(ipc > 1) == (ipc > 2)", 1, "not a value"),
        ("'a' + 1 > ipc", 1, "a text is not a number"),
        ("sqrt(ipc) > 1", 1, "no function `sqrt`"),
        ("abs(ipc, 1) > 1", 1, "takes one value"),
        ("max(ipc) > 1", 1, "two values"),
        ("idle == 'c1", 9, "closing"),
        ("rate > 5ms", 8, "`ms` after a number"),
        ("é > 1", 1, "is unexpected"),
        ("latency_us.reed.p99 > 1", 1, "did you mean `read`?"),
        ("1.2.3 < ipc", 1, "not a number"),
    ] {
        let error = text.parse::<CheckExpression>().unwrap_err();
        assert_eq!(error.at, at, "{text}: {error}");
        assert!(error.to_string().contains(words), "{text}: {error}");
    }
    let deep = format!("{}ipc > 1{}", "(".repeat(1000), ")".repeat(1000));
    assert!(deep.parse::<CheckExpression>().unwrap_err().what.contains("too deeply"));
}

#[test]
fn checks_apply_by_condition_and_report_breaches() {
    let check = |that: &str, when: Option<&str>| CheckSpec {
        that: that.to_owned(),
        when: when.map(str::to_owned),
        why: Some("C1 is all that is left".to_owned()),
    };
    let ruling = |check: &CheckSpec| judge(check, &a_run()).expect("it can be read").result;
    assert_eq!(ruling(&check("residency.C6 == 0", Some("idle == 'c1'"))), CheckResult::Holds);
    assert_eq!(
        ruling(&check("residency.C6 > 0", Some("idle == 'all'"))),
        CheckResult::NotApplicable
    );
    assert!(matches!(ruling(&check("mpki.llc > 0", None)), CheckResult::Unknown(_)));
    assert!(matches!(ruling(&check("ipc > 0", Some("mpki.llc > 0"))), CheckResult::Unknown(_)));

    let broken = check("residency.C6 > 0", Some("idle == 'c1'"));
    let judged = judge(&broken, &a_run()).unwrap();
    assert_eq!(judged.result, CheckResult::Broken);
    let finding = judged.finding(&broken).unwrap();
    assert!(finding.contains("residency.C6 is 0"), "{finding}");
    assert!(finding.contains("C1 is all that is left"), "{finding}");
    assert_eq!(judge(&check("ipc > 0", None), &a_run()).unwrap().finding(&broken), None);
    assert!(judge(&check("ipc >", None), &a_run()).is_err());
    assert!(judge(&check("ipc > 0", Some("ipc")), &a_run()).is_err());
}

#[test]
fn names_are_listed_once() {
    let relation: CheckExpression = "a.b > 1 and max(c, a.b) < -d or not e == 'x'".parse().unwrap();
    assert_eq!(relation.names(), ["a.b", "c", "d", "e"]);
}

proptest! {
    #[test]
    fn no_text_panics_the_parser(text in "[a-z0-9 .<>=!&|()'\"+*/,%-]{0,40}|\\PC{0,20}") {
        if let Ok(relation) = text.parse::<CheckExpression>() {
            let _ = relation.holds(&a_run());
        }
    }

    #[test]
    fn comparisons_agree_with_the_language(a in -1e6_f64..1e6, b in -1e6_f64..1e6) {
        let text = format!("{:.3} + 0 * ipc < {:.3}", a.abs(), b.abs());
        let (a, b): (f64, f64) = (format!("{:.3}", a.abs()).parse().unwrap(), format!("{:.3}", b.abs()).parse().unwrap());
        prop_assert_eq!(holds(&text), Ok(a < b));
    }
}
