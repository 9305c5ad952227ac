//! A run as a trial of the search.

mod synthetic;

use analyse::search::{ClientHealth, LimitedBy, RateTrial, TrialOutcome, limit};
use analyse::slo::Objective;
use model::{LatencyClock, LoopKind, Run};
use synthetic::{Random, reading, run};

/// An open loop whose response time is its service time.
fn open(rate: f64, seconds: usize) -> Run {
    let mut run = run("memcached", &[("store", "memcached")], rate, 50_000.0, seconds);
    run.pacing = LoopKind::Open { rate_ops_s: rate, arrivals: "poisson".to_owned() };
    let mut response = run.latencies[0].clone();
    response.clock = LatencyClock::Response;
    run.latencies = vec![run.latencies[0].clone(), response].into();
    run
}

fn outcome(run: &Run, busy: f64) -> TrialOutcome {
    let objective: Objective = "p99<1ms".parse().expect("an objective");
    RateTrial::of(run, &objective, ClientHealth { busy, late: None })
        .expect("it has a rate")
        .outcome()
}

#[test]
fn random_arrivals_do_not_look_like_a_slow_server() {
    let mut random = Random::new(7);
    let mut fewer = 0;
    for _ in 0..50 {
        // 1,000 arrivals on average: 3 % more or less by chance.
        let due = (1_000.0 + 1_000f64.sqrt() * random.normal()).round();
        let mut run = open(100.0, 10);
        run.readings.push(reading("client.due", due));
        run.readings.push(reading("client.answered_in_time", due - 1.0));
        run.readings.push(reading("client.achieved_rate", due / 10.0));
        fewer += usize::from(due < 990.0);
        assert_eq!(outcome(&run, 0.2), TrialOutcome::Held, "{due}");
        let answered = run.readings.iter_mut().find(|r| r.signal == "client.answered_in_time");
        answered.expect("it was read").answer = model::ReadingValue::Value(0.97 * due);
        assert_eq!(outcome(&run, 0.2), TrialOutcome::Behind, "{due}");
    }
    assert!(fewer > 5, "else chance was not tried");
}

#[test]
fn trials_follow_from_runs() {
    let run = open(20_000.0, 10);
    assert_eq!(outcome(&run, 0.2), TrialOutcome::Held);
    assert_eq!(outcome(&run, 0.96), TrialOutcome::Client);
    let mut slow = run.clone();
    slow.readings.push(reading("client.achieved_rate", 19_000.0));
    assert_eq!(outcome(&slow, 0.2), TrialOutcome::Behind);
    let closed = Run { pacing: LoopKind::Closed { think_s: 0.0 }, ..run };
    let objective: Objective = "p99<1ms".parse().expect("an objective");
    assert_eq!(RateTrial::of(&closed, &objective, ClientHealth::default()), None);
}

/// At low rates waking a thread is most of a quick store's response time: that ends nothing.
#[test]
fn a_late_client_that_keeps_up_has_headroom() {
    let late =
        |busy| ClientHealth { busy, late: Some("60 % of the mean response time".to_owned()) };
    let run = open(20_000.0, 10);
    assert_eq!(limit(&run, &late(0.2)), None);
    assert_eq!(limit(&run, &late(0.96)), Some(LimitedBy::Client));
    let mut behind = run.clone();
    behind.readings.push(reading("client.achieved_rate", 15_000.0));
    assert_eq!(limit(&behind, &late(0.2)), Some(LimitedBy::Client));
    assert_eq!(limit(&behind, &ClientHealth::default()), Some(LimitedBy::Server));
}

#[test]
fn foreign_load_is_distinguished_from_a_slow_server() {
    let mut slow = open(20_000.0, 10);
    slow.readings.push(reading("client.achieved_rate", 15_000.0));
    // Of a response time of 50 µs.
    slow.readings.push(reading("client.lateness", 20e-6));
    let with = |pairs: &[(&str, f64)]| {
        let mut run = slow.clone();
        run.readings.extend(pairs.iter().map(|(signal, value)| reading(signal, *value)));
        outcome(&run, 0.2)
    };
    // Two CPUs for ten seconds: 4 s of the harness, and 15 s of a server here or of others.
    let full = [("machine.busy", 0.95), ("machine.neighbours", 0.75)];
    let own = [("cpu.user", 3.0), ("cpu.system", 1.0)];
    let others: Vec<_> = full.into_iter().chain(own).collect();
    assert_eq!(with(&others), TrialOutcome::Disturbed);
    let server: Vec<_> = others.iter().copied().chain([("server.cpu", 15.0)]).collect();
    assert_eq!(with(&server), TrialOutcome::Behind);
    // Whose they were is not known where the server's part could not be read.
    let mut unread = slow.clone();
    unread.readings.extend(others.iter().map(|(signal, value)| reading(signal, *value)));
    assert!(analyse::foreign_load_share(&unread).is_some());
    let reason = "its process could not be read".to_owned();
    let answer = model::ReadingValue::Unavailable { reason, remedy: None };
    unread.readings.push(model::Reading { answer, ..reading("server.cpu", 0.0) });
    assert_eq!(analyse::foreign_load_share(&unread), None);
    assert_eq!(outcome(&unread, 0.2), TrialOutcome::Behind);
    let reason = format!("10.0.0.2 {}", model::IS_ELSEWHERE);
    unread.readings.last_mut().unwrap().answer =
        model::ReadingValue::Unavailable { reason, remedy: None };
    assert!(analyse::foreign_load_share(&unread).is_some());
    assert_eq!(outcome(&unread, 0.2), TrialOutcome::Disturbed);
    // A client that was never late had its CPUs.
    let late = slow.readings.iter().position(|r| r.signal == "client.lateness").unwrap();
    let mut prompt = slow.clone();
    prompt.readings.remove(late);
    prompt.readings.push(reading("client.lateness", 1e-6));
    prompt.readings.extend(others.iter().map(|(signal, value)| reading(signal, *value)));
    assert_eq!(outcome(&prompt, 0.2), TrialOutcome::Behind);
    // Others on CPUs of their own disturb nobody.
    assert_eq!(with(&[("machine.busy", 0.5), ("machine.neighbours", 0.4)]), TrialOutcome::Behind);
    assert_eq!(with(&[("machine.steal", 0.2)]), TrialOutcome::Disturbed);
    assert_eq!(with(&[("quota.throttled", 0.9)]), TrialOutcome::Disturbed);
    assert_eq!(with(&[("quota.throttled", 0.05), ("machine.steal", 0.01)]), TrialOutcome::Behind);
    // What holds on a busy machine holds.
    let mut held = open(20_000.0, 10);
    held.readings.extend(others.iter().map(|(signal, value)| reading(signal, *value)));
    assert_eq!(outcome(&held, 0.2), TrialOutcome::Held);
}
