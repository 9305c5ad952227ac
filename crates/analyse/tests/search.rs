//! The search for the highest rate that holds an objective, against stations whose knee is
//! known: by formula (M/M/1, M/D/1) and by requests that are served one by one.

mod stations;

use analyse::search::{
    ClientHealth, RateTrial, Search, SearchConclusion, SearchCut, SearchEnd, SearchError,
    SearchRequest, SearchStep,
};
use analyse::slo::Objective;
use stations::{Exact, Served, Service, Station};

const LIMIT_S: f64 = 1e-3;
const CAPACITY: f64 = 100_000.0;

fn objective(text: &str) -> Objective {
    text.parse().expect("an objective")
}

/// Asks the station until the search has an answer; also every rate that was tried.
fn result(
    request: SearchRequest,
    objective: &Objective,
    mut station: impl FnMut(f64, f64) -> RateTrial,
) -> (SearchConclusion, Vec<RateTrial>) {
    let search = Search::new(request).expect("a request that makes sense");
    let mut trials: Vec<RateTrial> = Vec::new();
    loop {
        match search.next(&trials) {
            SearchStep::Try { rate_ops_s, again, longer } => {
                let before = trials.iter().filter(|trial| trial.rate_ops_s == rate_ops_s).count();
                assert_eq!(again, before > 0, "{rate_ops_s}");
                assert!(before < 3, "{rate_ops_s} was tried too often for {objective}");
                assert!((1.0..=16.0).contains(&longer), "{longer}");
                assert!(rate_ops_s.is_finite() && rate_ops_s > 0.0);
                trials.push(station(rate_ops_s, longer));
            }
            SearchStep::Done(conclusion) => {
                assert_eq!(conclusion.trials, trials.len());
                return (conclusion, trials);
            }
        }
    }
}

/// By formula: response times of M/M/1 are exponential with rate `capacity - rate`.
fn mm1(share: f64) -> f64 {
    CAPACITY - (1.0 / (1.0 - share)).ln() / LIMIT_S
}

/// The mean of M/D/1 is `d (1 + u / (2 (1 - u)))` at a utilisation `u`.
fn md1_mean(limit_s: f64) -> f64 {
    let more = 2.0 * (limit_s * CAPACITY - 1.0);
    CAPACITY * more / (1.0 + more)
}

#[test]
fn the_knee_of_formulas_is_found_to_the_resolution() {
    let stations: [(&str, Exact, f64); 4] = [
        ("p99<1ms", Exact::mm1(CAPACITY), mm1(0.99)),
        ("p50<1ms", Exact::mm1(CAPACITY), mm1(0.5)),
        ("mean<30us", Exact::md1(CAPACITY), md1_mean(30e-6)),
        // Two conditions: the stricter one decides.
        ("p50<1ms,p99<1ms", Exact::mm1(CAPACITY), mm1(0.99)),
    ];
    for (text, station, knee) in stations {
        let objective = objective(text);
        for resolution in [0.05, 0.02, 0.005] {
            for hint in [None, Some(CAPACITY), Some(3_000.0), Some(40.0 * CAPACITY)] {
                let request = SearchRequest { resolution, hint, ..SearchRequest::default() };
                let (result, trials) = result(request, &objective, |rate, _| {
                    station.trial(rate, &objective, ClientHealth { busy: 0.2, late: None })
                });
                let held = result.rate_ops_s.unwrap();
                let broke = result.not_held_ops_s.unwrap();
                // What breaks may lie beyond capacity, where the latency breaks too.
                let behind = broke > CAPACITY / 0.99;
                let ended = if behind { SearchEnd::AchievedRate } else { SearchEnd::Objective };
                assert_eq!(result.end, ended, "{}", result.summary);
                assert!(held < knee && knee <= broke, "{text}: {held} {knee} {broke}");
                assert!(broke / held <= 1.0 + resolution, "{text}: {held} {broke}");
                assert!(!result.noisy && trials.len() <= 24, "{} trials", trials.len());
                // The answer was seen twice, and so was what broke.
                for end in [held, broke] {
                    let seen = trials.iter().filter(|trial| trial.rate_ops_s == end).count();
                    assert_eq!(seen, 2, "{text}");
                }
            }
        }
    }
}

#[test]
fn a_hint_spares_trials() {
    let (objective, station) = (objective("p99<1ms"), Exact::mm1(CAPACITY));
    let ask = |hint| {
        let request = SearchRequest { hint, ..SearchRequest::default() };
        let client = || ClientHealth { busy: 0.2, late: None };
        result(request, &objective, |rate, _| station.trial(rate, &objective, client())).1.len()
    };
    assert!(ask(Some(CAPACITY)) + 4 < ask(None), "{} {}", ask(Some(CAPACITY)), ask(None));
}

#[test]
fn simulated_queues_have_the_same_knee() {
    let client = || ClientHealth { busy: 0.3, late: None };
    for (text, service, knee) in [
        ("p99<1ms", Service::Exponential, mm1(0.99)),
        ("p50<100us", Service::Exponential, CAPACITY - 2f64.ln() / 100e-6),
        ("mean<30us", Service::Constant, md1_mean(30e-6)),
    ] {
        let objective = objective(text);
        let mut off: Vec<f64> = (0..20)
            .map(|seed| {
                let mut station = Served::new(Station { capacity: CAPACITY, service }, seed);
                let request = SearchRequest { hint: Some(CAPACITY), ..SearchRequest::default() };
                let (result, _) = result(request, &objective, |rate, longer| {
                    station.trial(rate, (200_000.0 * longer) as u64, &objective, client())
                });
                result.rate_ops_s.unwrap() / knee - 1.0
            })
            .collect();
        off.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
        println!("{text}: {off:.4?}");
        assert!(off[9].abs() < 0.02, "{text}: half of them within the resolution: {off:?}");
        assert!(off[19].abs() < 0.05, "{text}: {off:?}");
    }
}

#[test]
fn a_disturbance_in_one_of_twenty_trials_rarely_moves_the_knee() {
    let objective = objective("p99<1ms");
    let (mut disturbed, mut far) = (0, 0);
    for seed in 0..100 {
        let mut dice = model::random::Draws::from(seed);
        let mut hits = 0;
        let request = SearchRequest { hint: Some(CAPACITY), ..SearchRequest::default() };
        let (result, _) = result(request, &objective, |rate, _| {
            // Another process takes the machine: the trial looks like one at capacity.
            let hit = dice.unit() < 0.05;
            hits += usize::from(hit && rate < mm1(0.99));
            let seen = if hit { 0.9999 * CAPACITY } else { rate };
            let client = ClientHealth { busy: 0.2, late: None };
            let trial = Exact::mm1(CAPACITY).trial(seen, &objective, client);
            RateTrial { rate_ops_s: rate, achieved_ops_s: rate, ..trial }
        });
        disturbed += usize::from(hits > 0);
        let off = result.rate_ops_s.map_or(1.0, |rate| (rate / mm1(0.99) - 1.0).abs());
        far += usize::from(off > 0.021);
        assert!(off < 0.021 || hits > 1, "one disturbance moved it by {off}");
    }
    println!("{disturbed} of 100 searches were disturbed, {far} ended elsewhere");
    assert!(disturbed > 20 && far <= 5, "{disturbed} were disturbed, {far} ended elsewhere");
}

#[test]
fn a_client_without_headroom_is_named() {
    let objective = objective("p99<1ms");
    // The server would do 95,395 a second; the client is 95 % busy at 38,000.
    let busy_at = 40_000.0;
    let (result, trials) = result(SearchRequest::default(), &objective, |rate, _| {
        let client = ClientHealth { busy: (rate / busy_at).min(1.0), late: None };
        Exact::mm1(CAPACITY).trial(rate, &objective, client)
    });
    assert_eq!(result.end, SearchEnd::Client);
    let (held, above) = (result.rate_ops_s.unwrap(), result.not_held_ops_s.unwrap());
    assert!(held <= 0.95 * busy_at && above > 0.95 * busy_at, "{held} {above}");
    assert!(above / held <= 1.02);
    assert!(
        result.summary.contains("the client was 9") && result.summary.contains("agents"),
        "{result:?}"
    );
    assert!(trials.iter().all(|trial| trial.rate_ops_s < 3.0 * busy_at));
}

#[test]
fn a_late_client_is_named_with_its_reason_where_the_objective_does_not_hold() {
    let objective = objective("p99<1ms");
    let ask = |latency_s: f64| {
        result(
            SearchRequest { highest: Some(40e3), ..SearchRequest::default() },
            &objective,
            |rate, _| {
                let late = rate > 10_000.0;
                let seconds = if late { latency_s } else { 50e-6 };
                let trial = stations::constant(rate, seconds, 10_000, &objective);
                let words = late.then(|| "2 ms of the mean response time".to_owned());
                RateTrial { client: ClientHealth { busy: 0.4, late: words }, ..trial }
            },
        )
        .0
    };
    let slow = ask(2.1e-3);
    assert_eq!(slow.end, SearchEnd::Client);
    assert!(slow.rate_ops_s.unwrap() <= 10_000.0);
    assert!(slow.summary.contains("2 ms of the mean"), "{}", slow.summary);
    // Lateness is part of the latency: what holds with it holds.
    let fast = ask(0.5e-3);
    assert_eq!((fast.rate_ops_s, fast.end), (Some(40e3), SearchEnd::UpperBound));
}

#[test]
fn a_rate_with_a_mostly_late_client_is_limited_by_the_client() {
    let objective = objective("p99<1ms");
    let request =
        SearchRequest { lowest: Some(20.0), highest: Some(20.0), ..SearchRequest::default() };
    let mut nth = 0;
    let (result, _) = result(request, &objective, |rate, _| {
        nth += 1;
        let late = (nth != 2).then(|| "half of it".to_owned());
        let (seconds, count) = if nth == 2 { (0.5e-3, 1) } else { (2e-3, 10_000) };
        let trial = stations::constant(rate, seconds, count, &objective);
        RateTrial { client: ClientHealth { busy: 0.1, late }, ..trial }
    });
    assert_eq!((result.rate_ops_s, result.end), (None, SearchEnd::Client), "{}", result.summary);
}

#[test]
fn a_lagging_server_is_distinguished_from_a_slow_one() {
    // It drops what it cannot do at once: fast answers, but too few.
    let objective = objective("p99<1ms");
    let (result, _) = result(SearchRequest::default(), &objective, |rate, _| {
        let client = ClientHealth { busy: 0.2, late: None };
        let trial = Exact::mm1(CAPACITY).trial(1_000.0, &objective, client);
        RateTrial { rate_ops_s: rate, achieved_ops_s: rate.min(50_000.0), ..trial }
    });
    assert_eq!(result.end, SearchEnd::AchievedRate, "{}", result.summary);
    assert!(result.summary.contains("only 50,000 ops/s were answered"), "{}", result.summary);
    let (held, broke) = (result.rate_ops_s.unwrap(), result.not_held_ops_s.unwrap());
    assert!(held <= 50_000.0 / 0.99 && broke > 50_000.0 / 0.99);
}

#[test]
fn failing_answers_do_not_hold() {
    let objective = objective("p99<1ms");
    let (result, _) = result(SearchRequest::default(), &objective, |rate, _| {
        let trial = stations::constant(rate, 10e-6, 10_000, &objective);
        let failed = (rate > 30_000.0).then(|| "read: out of memory".to_owned());
        RateTrial { failed, ..trial }
    });
    assert_eq!(result.end, SearchEnd::Failures, "{}", result.summary);
    assert!(result.summary.contains("answers failed; the first: read: out of memory"));
    let (held, failed) = (result.rate_ops_s.unwrap(), result.not_held_ops_s.unwrap());
    assert!(held <= 30_000.0 && failed > 30_000.0);
}

#[test]
fn a_search_cut_short_reports_its_progress() {
    let objective = objective("p99<1ms");
    let search = Search::new(SearchRequest::default()).unwrap();
    let none = search.cut_short(&[], SearchCut::Stopped);
    assert_eq!((none.rate_ops_s, none.end, none.trials), (None, SearchEnd::Stopped, 0));
    assert!(none.summary.contains("stopped after 0 trials"), "{}", none.summary);
    let trials = [1_000.0, 2_000.0].map(|r| stations::constant(r, 10e-6, 10_000, &objective));
    let some = search.cut_short(&trials, SearchCut::Time);
    assert_eq!((some.rate_ops_s, some.end), (Some(2_000.0), SearchEnd::Time));
    assert!(some.summary.contains("its time limit"), "{}", some.summary);
}

#[test]
fn a_search_without_a_held_rate_ends() {
    // Every answer takes 5 ms, however few are asked.
    let objective = objective("p99<1ms");
    let (result, trials) = result(SearchRequest::default(), &objective, |rate, longer| {
        let count = (rate * 10.0 * longer).max(1.0) as u64;
        stations::constant(rate, 5e-3, count, &objective)
    });
    assert_eq!((result.rate_ops_s, result.end), (None, SearchEnd::Objective));
    assert_eq!(result.not_held_ops_s, Some(10.0));
    assert!(
        result.summary.starts_with("no rate held; at 10 ops/s `p99<1ms` broke"),
        "{}",
        result.summary
    );
    assert!(trials.len() < 10);
}

#[test]
fn a_search_that_always_holds_ends_at_the_upper_bound() {
    let objective = objective("p99<1ms");
    let ask = |highest| {
        let request = SearchRequest { highest, trials: 12, ..SearchRequest::default() };
        result(request, &objective, |rate, _| stations::constant(rate, 10e-6, 10_000, &objective)).0
    };
    let bounded = ask(Some(77_000.0));
    assert_eq!((bounded.rate_ops_s, bounded.end), (Some(77_000.0), SearchEnd::UpperBound));
    assert!(bounded.summary.contains("ended at its upper bound"), "{}", bounded.summary);
    let unbounded = ask(None);
    assert_eq!(unbounded.end, SearchEnd::Trials);
    assert_eq!(unbounded.rate_ops_s, Some(1_000.0 * 2f64.powi(11)));
}

#[test]
fn too_few_samples_make_a_trial_longer() {
    let objective = objective("p99<1ms");
    let request =
        SearchRequest { highest: Some(20.0), lowest: Some(20.0), ..SearchRequest::default() };
    // 100 samples in a first trial, of the 368 that p99 needs.
    let mut lengths = Vec::new();
    let (result, _) = result(request, &objective, |rate, longer| {
        lengths.push(longer);
        stations::constant(rate, 10e-6, (100.0 * longer) as u64, &objective)
    });
    assert_eq!((result.rate_ops_s, result.end), (Some(20.0), SearchEnd::UpperBound));
    assert!(lengths[1] > 3.68, "{lengths:?}");
}

#[test]
fn refuses_invalid_requests() {
    let refused = |request| Search::new(request).unwrap_err();
    let request = SearchRequest::default();
    assert_eq!(refused(SearchRequest { resolution: 0.0, ..request }), SearchError::Resolution(0.0));
    assert!(matches!(
        refused(SearchRequest { hint: Some(f64::NAN), ..request }),
        SearchError::Rate { what: "hint", .. }
    ));
    let error = refused(SearchRequest { lowest: Some(5e3), highest: Some(1e3), ..request });
    assert_eq!(error, SearchError::Bounds { lowest: 5e3, highest: 1e3 });
    assert_eq!(refused(SearchRequest { trials: 0, ..request }), SearchError::Trials(0));
}

/// A trial at this rate whose every answer took so long, and what disturbed it.
fn disturbed(rate: f64, seconds: f64, why: Option<&str>) -> RateTrial {
    let trial = stations::constant(rate, seconds, 10_000, &objective("p99<1ms"));
    RateTrial { disturbed: why.map(str::to_owned), ..trial }
}

#[test]
fn foreign_load_ends_a_search_early() {
    let objective = objective("p99<1ms");
    let why = "other programs used 80 % of the machine's CPU time";
    let request = || SearchRequest { hint: Some(200e3), ..SearchRequest::default() };
    let (none, trials) = result(request(), &objective, |rate, _| disturbed(rate, 5e-3, Some(why)));
    assert_eq!((none.end, none.rate_ops_s), (SearchEnd::Disturbed, None), "{}", none.summary);
    assert!(trials.len() <= 5, "{} trials", trials.len());
    for words in
        [why, "no rate could be judged", "every trial was disturbed", "quieten the machine"]
    {
        assert!(none.summary.contains(words), "{words}: {}", none.summary);
    }
    assert!(!none.summary.contains("no rate held"));
    // A client that is late whatever the rate is no better, and what was quiet is told.
    let mut nth = 0;
    let (late, trials) = result(request(), &objective, |rate, _| {
        nth += 1;
        let trial = disturbed(rate, 3e-3, None);
        let late = (nth > 1).then(|| "90 % of the mean response time, 2700 µs".to_owned());
        RateTrial { client: ClientHealth { busy: 0.1, late }, ..trial }
    });
    assert_eq!((late.end, late.rate_ops_s), (SearchEnd::Disturbed, None), "{}", late.summary);
    assert!(trials.len() <= 6, "{} trials", trials.len());
    assert!(late.summary.contains("the client was late: 90 %"), "{}", late.summary);
    let quiet = "of the undisturbed trials, at 100,000 ops/s `p99<1ms` broke with 3.00 ms";
    assert!(late.summary.contains(quiet), "{}", late.summary);
}

#[test]
fn a_disturbed_trial_is_distinguished_from_a_broken_objective() {
    let objective = objective("p99<1ms");
    // What holds on a busy machine holds, and what breaks on a quiet one is broken.
    let why = Some("the hypervisor gave 30 % of the CPU time away");
    let (held, _) = result(SearchRequest::default(), &objective, |rate, _| {
        let slow = rate > 10_000.0;
        disturbed(rate, if slow { 2e-3 } else { 0.5e-3 }, why.filter(|_| !slow))
    });
    assert_eq!(held.end, SearchEnd::Objective, "{}", held.summary);
    assert!(held.rate_ops_s.unwrap() <= 10_000.0);
    let request = SearchRequest { lowest: Some(100.0), ..SearchRequest::default() };
    let (broken, _) = result(request, &objective, |rate, _| disturbed(rate, 2e-3, None));
    assert_eq!((broken.end, broken.rate_ops_s), (SearchEnd::Objective, None));
    assert!(broken.summary.contains("no rate held"), "{}", broken.summary);
    // Where something held before, the gap is closed as ever, and named for what it is.
    let (gap, _) = result(SearchRequest::default(), &objective, |rate, _| {
        let slow = rate > 10_000.0;
        disturbed(rate, if slow { 2e-3 } else { 0.5e-3 }, why.filter(|_| slow))
    });
    assert_eq!(gap.end, SearchEnd::Disturbed, "{}", gap.summary);
    assert!(gap.rate_ops_s.unwrap() > 9_000.0);
    assert!(gap.summary.contains("the hypervisor gave 30 %"), "{}", gap.summary);
}
