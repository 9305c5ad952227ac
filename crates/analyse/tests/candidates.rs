//! Candidates and the sources of their numbers.
#![allow(clippy::unwrap_used)]

use analyse::cost::{
    AVERAGE, CandidateError, GivenNumbers, LoadPower, Platform, RequiredNumbers, SourcedCandidate,
};

const NONE: RequiredNumbers =
    RequiredNumbers { price: false, idle_power: false, rack_units: false };

fn candidate(
    platform: Option<&Platform>,
    given: GivenNumbers,
    required: RequiredNumbers,
) -> Result<SourcedCandidate, CandidateError> {
    SourcedCandidate::new(
        ("box".to_owned(), "etc".to_owned()),
        (1e6, "a test".to_owned()),
        LoadPower::given(100.0, "a test"),
        platform.cloned(),
        &given,
        required,
    )
}

#[test]
fn given_numbers_come_before_those_of_the_platform() {
    let platform = Platform::parse(
        "box.toml",
        "name = \"box\"\nprice_usd = { value = 900, from = \"x\" }\nidle_w = { value = 40, from = \"x\" }\nrack_units = { value = 1, from = \"x\" }\n",
    )
    .unwrap();
    let all = RequiredNumbers { price: true, idle_power: true, rack_units: true };
    let one = candidate(Some(&platform), given_nothing(), all).unwrap();
    assert_eq!(one.candidate.price_usd, Some(900.0));
    assert_eq!((one.power.idle_w, one.candidate.active_w), (Some(40.0), 100.0));
    let given = GivenNumbers { price_usd: Some(1.0), idle_w: Some(50.0), ..given_nothing() };
    let one = candidate(Some(&platform), given, all).unwrap();
    assert_eq!((one.candidate.price_usd, one.power.idle_w), (Some(1.0), Some(50.0)));
    // A price that nobody asks for is left out.
    let one = candidate(Some(&platform), given, NONE).unwrap();
    assert_eq!(one.candidate.price_usd, None);
}

fn given_nothing() -> GivenNumbers {
    GivenNumbers::default()
}

#[test]
fn a_missing_number_is_named_with_its_flag() {
    let price = RequiredNumbers { price: true, ..NONE };
    let idle = RequiredNumbers { idle_power: true, ..NONE };
    let height = RequiredNumbers { rack_units: true, ..NONE };
    for (required, words) in
        [(price, "--energy-only"), (idle, "--utilisation"), (height, "--rack-rent")]
    {
        let error = candidate(None, given_nothing(), required).unwrap_err().to_string();
        assert!(error.contains(words) && error.contains("box"), "{error}");
    }
    let given = GivenNumbers { idle_w: Some(200.0), ..given_nothing() };
    let error = candidate(None, given, NONE).unwrap_err();
    assert!(matches!(error, CandidateError::IdleAboveLoad { idle_w: 200.0, .. }), "{error}");
}

/// `P = U P_a + (1 - U) P_i` of table 5.2's last row: U and P_a are averaged each on its own.
#[test]
fn the_average_of_a_machine_is_of_throughput_utilisation_and_power() {
    let row = |(rate, watts, utilisation)| {
        let power = LoadPower::given(watts, "a test");
        let given = GivenNumbers { idle_w: Some(40.0), ..given_nothing() };
        let names = ("spill on s1".to_owned(), "load".to_owned());
        let rate = (rate, "a test".to_owned());
        let mut one = SourcedCandidate::new(names, rate, power, None, &given, NONE).unwrap();
        one.candidate.utilisation = Some(utilisation);
        one
    };
    let (slow, fast) = (row((1e6, 60.0, 0.5)), row((3e6, 100.0, 0.9)));
    let required = RequiredNumbers { idle_power: true, ..NONE };
    let average = |rows: &[&SourcedCandidate]| {
        SourcedCandidate::average("s1".to_owned(), rows, required).unwrap()
    };
    let all = average(&[&slow, &fast]).unwrap().candidate;
    assert_eq!((all.name.as_str(), all.workload.as_str()), ("s1", AVERAGE));
    assert_eq!((all.throughput_ops_s, all.active_w), (2e6, 80.0));
    assert_eq!(all.utilisation, Some(0.7));
    // 0.7 of 80 W and 0.3 of 40 W, whatever the terms assume for others.
    assert!((all.watts(1.0).unwrap() - 68.0).abs() < 1e-9);
    assert_eq!(average(&[]), None);
}
