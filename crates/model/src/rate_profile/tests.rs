use super::{ProfileCursor, RateProfile};
use crate::random::{Draws, RandomStream};

const PROFILES: [&str; 7] = [
    "steps:10k@30s,40k@30s",
    "steps:0.5x@30s,2x@30s,0x@1m",
    "ramp:0..40k@1m,40k..10k@20s,5k@10s",
    "ramp:10k..0@7s,0@3s",
    "sine:mean=20k,amplitude=20k,period=10m",
    "burst:base=1k,peak=60k,at=30s,rise=2s,hold=10s,fall=5s",
    "burst:base=0,peak=1x,at=1s,hold=10ms",
];

fn profile(text: &str) -> RateProfile {
    RateProfile::parse(text).unwrap()
}

#[test]
fn rates_are_multiples_of_their_mean() {
    let steps = profile("steps:10k@30s,40k@30s");
    assert_eq!((steps.own_rate(), steps.seconds()), (Some(25e3), 60.0));
    assert_eq!((steps.first(), steps.peak(), steps.mean()), (0.4, 1.6, 1.0));
    let multiples = profile("steps:0.5x@30s,2x@30s");
    assert_eq!((multiples.own_rate(), multiples.mean()), (None, 1.25));
    let burst = profile("burst:base=10k,peak=50k,at=30s,rise=2s,hold=10s,fall=8s");
    assert_eq!(burst.seconds(), 80.0);
    assert!((burst.own_rate().unwrap() * 80.0 - 80.0 * 10e3 - 40e3 * 15.0).abs() < 1e-6);
    let sine = profile("sine:mean=20k,amplitude=15k,period=10m");
    assert!((sine.own_rate().unwrap() - 20e3).abs() < 1e-6 && (sine.peak() - 1.75).abs() < 1e-9);
}

#[test]
fn the_integral_of_a_sine_is_within_the_stated_error() {
    let sine = profile("sine:mean=20k,amplitude=15k,period=10m");
    for at in 0..6000 {
        let t = f64::from(at) / 10.0;
        let angle = std::f64::consts::TAU * t / 600.0;
        let exact = t + 0.75 * 600.0 / std::f64::consts::TAU * (1.0 - angle.cos());
        // Of the rate 5e-6 of the amplitude, so of the integral as much of the time.
        assert!((sine.integral(t) - exact).abs() < 5e-6 * 0.75 * 600.0, "{t}");
    }
}

#[test]
fn the_cursor_inverts_the_integral_for_hours() {
    for text in PROFILES {
        let profile = profile(text);
        let mut cursor = ProfileCursor::new(profile.clone());
        // Steps that divide nothing evenly, over at least ten hours and many passes.
        let by = profile.mean() * 0.037_123;
        let (mut k, mut before) = (0.0, -1.0);
        while before < 36_000.0 {
            let at = cursor.advance(by);
            k += 1.0;
            assert!(at >= before, "{text}: {before} {at}");
            before = at;
            let expected = k * by;
            let error = (profile.integral(at) - expected).abs();
            assert!(error < 1e-12 * expected + 1e-9, "{text}: {error} at {at}");
        }
        assert!((k * by / profile.mean() / before - 1.0).abs() < 0.01, "{text}");
    }
}

#[test]
fn a_pause_ends_before_the_next_arrival() {
    let mut cursor = ProfileCursor::new(profile("steps:0x@5s,1x@5s"));
    assert_eq!(cursor.advance(0.0), 5.0);
    assert_eq!(cursor.advance(5.0), 15.0);
    // Through several passes at once.
    assert_eq!(cursor.advance(5.0 * 1e6 + 2.0), 15.0 + 1e7 + 2.0);
}

/// Arrivals of a Poisson process, and what they are against the integral.
#[test]
fn poisson_arrivals_have_the_rate_of_every_interval_and_exponential_gaps() {
    for (text, seed) in PROFILES.into_iter().zip(1..) {
        let profile = profile(text);
        let mut cursor = ProfileCursor::new(profile.clone());
        let mut draws = Draws::from(RandomStream::new(seed, 7).at(0));
        const INTERVALS: usize = 100;
        const PASSES: f64 = 50.0;
        let rate = 400_000.0 / (PASSES * profile.seconds() * profile.mean());
        let mut counts = [0.0_f64; INTERVALS];
        let mut gaps = Vec::new();
        let mut before = 0.0;
        loop {
            let at = cursor.advance(-(-draws.unit()).ln_1p() / rate);
            if at >= PASSES * profile.seconds() {
                break;
            }
            let within = at / profile.seconds() % 1.0;
            counts[(within * INTERVALS as f64) as usize] += 1.0;
            let integral = profile.integral(at) * rate;
            gaps.push(integral - before);
            before = integral;
        }
        // Chi-square over the intervals of a pass; 5 standard deviations above its mean.
        let (mut square, mut freedom) = (0.0_f64, 0.0_f64);
        for (nth, count) in counts.iter().enumerate() {
            let edge = |n: usize| profile.seconds() * n as f64 / INTERVALS as f64;
            let of_one = profile.integral(edge(nth)) - profile.integral(edge(nth + 1));
            let expected = PASSES * rate * of_one.abs();
            if expected < 5.0 {
                assert!(*count <= 20.0, "{text}: {count} where {expected} are due");
                continue;
            }
            square += (count - expected).powi(2) / expected;
            freedom += 1.0;
        }
        assert!(square < freedom + 5.0 * (2.0 * freedom).sqrt(), "{text}: {square} of {freedom}");
        // Kolmogorov-Smirnov of the gaps in the integral against the unit exponential; 1.95 / sqrt(n)
        // is passed by chance once in 1000.
        gaps.sort_by(f64::total_cmp);
        let n = gaps.len() as f64;
        let distance = gaps
            .iter()
            .enumerate()
            .map(|(i, gap)| (1.0 - (-gap).exp() - (i as f64 + 0.5) / n).abs())
            .fold(0.0, f64::max);
        assert!(distance < 1.95 / n.sqrt(), "{text}: {distance}");
    }
}

#[test]
fn invalid_profiles_are_refused_with_the_reason() {
    for (text, words) in [
        ("steps:", "has ``; write `10k@30s`"),
        ("steps:10k", "has `10k`; write `10k@30s`"),
        ("steps:-5k@30s", "goes below zero at `-5k`"),
        ("steps:nan@30s", "has `nan` for a rate"),
        ("steps:10k@-3s", "time does not go back"),
        ("steps:10k@0s", "takes no time"),
        ("steps:10k@soon", "has `soon` for a time; write `30s`"),
        ("steps:10k@30s,2x@30s", "mixes rates and multiples at `2x`"),
        ("steps:0@30s", "has a rate of 0 all the time"),
        ("steps:2G@30s", "more than any client sends"),
        ("steps:5000x@30s", "a multiple is at most 1000x"),
        ("steps:1k..2k@9s", "only `ramp:` has slopes"),
        ("sine:mean=1k,amplitude=2k,period=1m", "goes below zero; the amplitude"),
        ("sine:mean=1k,amplitude=1k", "needs `period=`"),
        ("sine:mean=1k,amplitude=1k,periode=1m", "has no `periode`; did you mean `period`?"),
        ("sine:mean=1k,mean=1k,amplitude=1k,period=1m", "gives `mean` twice"),
        ("sine:1k", "has `1k`; write `mean=`"),
        ("burst:base=2k,peak=1k,at=1s,hold=1s", "has a peak below its base"),
        ("sines:mean=1k", "did you mean `sine`?"),
        ("day.csv", "is no profile and names no file of times and rates; known: steps, ramp"),
    ] {
        let why = RateProfile::parse(text).unwrap_err().to_string();
        assert!(why.starts_with(&format!("`{text}` ")) && why.contains(words), "{text}: {why}");
    }
}

#[test]
fn files_are_read_as_people_have_them() {
    let of = |text: &str| RateProfile::from_file("a/day.csv", text).unwrap();
    let plain = of("0,10k\n60,40k\n");
    assert_eq!((plain.own_rate(), plain.seconds()), (Some(25e3), 60.0));
    assert!(plain.name().starts_with("day.csv#") && plain.name().len() == 16, "{}", plain.name());
    let same = of("\u{feff}time,rate\r\n# of Monday\r\n1700000000,10k\r\n\r\n1700000060,40000\r\n");
    assert_eq!(same.pieces(), plain.pieces());
    assert_ne!(same.name(), plain.name());
    let jump = of("time;rate\n0;1x\n30s;1x\n30s;2x\n1m;2x");
    assert_eq!((jump.own_rate(), jump.pieces().len(), jump.mean()), (None, 2, 1.5));
}

#[test]
fn an_invalid_file_is_refused_by_name_and_line() {
    for (text, words) in [
        ("", "`day.csv` is empty; write lines `time,rate`"),
        ("time,rate\n", "`day.csv` is empty"),
        ("0,1k\n", "`day.csv` has one instant only"),
        ("0,0\n9,0\n", "has a rate of 0 all the time"),
        ("t,r\n0,1k\n20,1k\n10,1k\n", "`day.csv`, line 4: the time goes back from 20 to 10; sort"),
        ("0,1k\n5,-1\n", "`day.csv`, line 2: it goes below zero at `-1`"),
        ("0,1k\n5,-1e9\n", "line 2: it goes below zero"),
        ("0,1k\n5,NaN\n", "line 2: it has `NaN` for a rate"),
        ("0,1k\nnan,5\n", "line 2: `nan` is no time"),
        ("nan,5\n", "line 1: `nan` is no time"),
        ("0,1k\ninf,5\n", "line 2: `inf` is no time"),
        ("0,1k\n5,1k,3\n", "line 2: `5,1k,3` has 3 fields"),
        ("0,1k\n5,2x\n", "line 2: it mixes rates and multiples"),
        ("0,1k\n5,9G\n", "line 2: it has `9G`, more than any client sends"),
        ("0,1k\n1e12,1k\n", "takes 1000000000000 s; it takes from 1 ms to a year"),
        ("0,1k\ntime,rate\n", "line 2: `time` is no time"),
    ] {
        let why = RateProfile::from_file("day.csv", text).unwrap_err().to_string();
        assert!(why.contains(words), "{text:?}: {why}");
    }
}

#[test]
fn a_profile_survives_serialisation_and_an_invalid_one_is_refused() {
    for text in PROFILES {
        let given = profile(text);
        let json = serde_json::to_string(&given).unwrap();
        let back: RateProfile = serde_json::from_str(&json).unwrap();
        assert_eq!(back.name(), given.name());
        for (one, other) in back.pieces().iter().zip(given.pieces()) {
            assert!((one.to - other.to).abs() + (one.from - other.from).abs() < 1e-12);
            assert!((one.seconds - other.seconds).abs() < 1e-12);
        }
    }
    for pieces in ["", "[1,-1,2]", "[1,0,0]", "[0,1,1],[1,1,1]", "[1e99,1,1]"] {
        let json = format!(r#"{{"name":"x","own_rate":null,"pieces":[{pieces}]}}"#);
        assert!(serde_json::from_str::<RateProfile>(&json).is_err(), "{pieces}");
    }
}
