//! Candidates and the sources of their numbers.
#![allow(clippy::unwrap_used)]

use analyse::cost::{
    CandidateError, GivenNumbers, LoadPower, Platform, RequiredNumbers, SourcedCandidate,
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
