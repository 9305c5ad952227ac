//! The life of assignments, with agents in this process and real connections.
// Failing is what unwraps are for here.
#![allow(clippy::unwrap_used)]

mod common;

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use agents::{
    AgentError, AgentGroup, AgentLogEvent, LARGEST_ASSIGNMENT, PeerOptions, TaskProgress, serve,
};
use common::*;
use model::Address;

const SIZE: usize = 30_000_000;

#[test]
fn two_agents_begin_together_and_return_their_outcomes() {
    let credentials = by_token(TOKEN);
    let (a, b) = (Agent::new(&credentials), Agent::new(&credentials));
    let mut group = connect(&[&a, &b], &credentials).unwrap();
    for (greeting, agent) in group.infos().iter().zip([&a, &b]) {
        assert_eq!(greeting.address, agent.address);
        assert_eq!(greeting.version, env!("CARGO_PKG_VERSION"));
        assert_eq!(greeting.about, b"{\"cpus\":2}");
        assert!(!greeting.machine.is_empty());
        // One machine, one clock; not within half of the round trip to the last ns, since the two
        // clocks of each side are not read at the very same instant.
        assert!(greeting.wall_offset_s.abs() < 0.5, "{greeting:?}");
        assert!(greeting.round_trip > Duration::ZERO);
    }
    // Several assignments in one session: nothing is left of the one before.
    for round in 1..=3_u64 {
        let first = format!("run=300 operations=100 p99=70 fill={round} size={SIZE}");
        let second = format!("run=250 operations=11 p99=90 fill={} size=5", round + 10);
        prepare(&mut group, &[&first, &second]).unwrap();
        let started = group.start(Duration::ZERO, &no_stop()).unwrap();
        let mut last: Option<(TaskProgress, Vec<Option<TaskProgress>>)> = None;
        let outcomes = group
            .run(LIMIT, &mut |all, each| last = Some((all.clone(), each.to_vec())), &no_stop())
            .unwrap();

        let (all, each) = last.unwrap();
        assert_eq!((all.operations, all.live_ops_s, all.live_p99_ns), (111, 2000.0, 90));
        assert_eq!(all, TaskProgress::sum(each.iter().flatten()).unwrap());
        assert!(each.iter().flatten().all(|one| *one.newest_interval == *b"newest"), "{each:?}");
        assert_eq!(outcomes.len(), 2);
        assert_eq!((outcomes[0].len(), outcomes[1].len()), (8 + SIZE, 8 + 5));
        assert!(outcomes[0][8..].iter().all(|byte| u64::from(*byte) == round));
        assert!(outcomes[1][8..].iter().all(|byte| u64::from(*byte) == round + 10));

        // All clocks are one here: the told instants must be the coordinator's, within the bound.
        assert!(started.bound > Duration::ZERO);
        assert_eq!(started.agents.len(), 2);
        for (clock, outcome) in started.agents.iter().zip(&outcomes) {
            let told = u64::from_le_bytes(outcome[..8].try_into().unwrap());
            let meant = started.begin.duration_since(*ZERO).as_nanos() as u64;
            let off = Duration::from_nanos(told.abs_diff(meant));
            assert!(off <= started.bound, "{off:?} of {started:?}");
            assert!(clock.round_trip <= 2 * started.bound + Duration::from_nanos(1));
            assert!(clock.margin > Duration::ZERO);
        }
    }
    drop(group);
    let events = a.until_free();
    let count = |wanted: &AgentLogEvent| events.iter().filter(|event| *event == wanted).count();
    assert_eq!((count(&AgentLogEvent::Ready), count(&AgentLogEvent::Started)), (3, 3));
    assert_eq!(count(&AgentLogEvent::Done { bytes: SIZE + 8 }), 3);
    assert_eq!(a.ran.load(Ordering::SeqCst), 3);
}

#[test]
fn all_are_prepared_or_none() {
    let credentials = by_token(TOKEN);
    let (a, b) = (Agent::new(&credentials), Agent::new(&credentials));
    let mut group = connect(&[&a, &b], &credentials).unwrap();
    let error = prepare(&mut group, &["run=1", "refuse=1"]).unwrap_err();
    let words = "no server at 10.0.0.1:11211".to_owned();
    assert_eq!(error, AgentError::Failed { address: b.address.clone(), words });
    // The other was ready, and has let go.
    a.until(|event| *event == AgentLogEvent::Stopped);
    assert_eq!(
        group.start(Duration::ZERO, &no_stop()),
        Err(AgentError::OutOfOrder { asked: "the start" })
    );
    assert_eq!(
        group.run(LIMIT, &mut |_, _| {}, &no_stop()),
        Err(AgentError::OutOfOrder { asked: "the run" })
    );
    assert_eq!(
        prepare(&mut group, &["run=1"]),
        Err(AgentError::Count { agents: 2, assignments: 1 })
    );
    let huge = vec![vec![0; LARGEST_ASSIGNMENT + 1], Vec::new()];
    let error = group.prepare(huge, LIMIT, &no_stop()).unwrap_err();
    assert!(matches!(error, AgentError::TooLarge { .. }), "{error}");
    assert_eq!((a.ran.load(Ordering::SeqCst), b.ran.load(Ordering::SeqCst)), (0, 0));
    // The session is as good as before.
    assert_eq!(run_all(&mut group, &["size=1", "size=2"]).unwrap()[1].len(), 10);
}

#[test]
fn a_failing_agent_stops_the_others() {
    let credentials = by_token(TOKEN);
    let (a, b) = (Agent::new(&credentials), Agent::new(&credentials));
    let mut group = connect(&[&a, &b], &credentials).unwrap();
    for (assignment, what) in [
        ("fail=1", "the server closed the connection"),
        ("panic=1", "the work panicked: as it was"),
    ] {
        match run_all(&mut group, &["run=600000", assignment]) {
            Err(AgentError::Failed { address, words }) => {
                assert_eq!(address, b.address);
                assert!(words.contains(what), "{words}");
            }
            other => panic!("{other:?}"),
        }
        a.until(|event| *event == AgentLogEvent::Stopped);
    }
    assert!(run_all(&mut group, &["size=1", "size=1"]).is_ok());
}

#[test]
fn a_stop_ends_every_wait() {
    let credentials = by_token(TOKEN);
    let (a, b) = (Agent::new(&credentials), Agent::new(&credentials));
    let mut group = connect(&[&a, &b], &credentials).unwrap();
    let raised = AtomicBool::new(true);
    let slow = vec![b"slow=600000".to_vec(); 2];
    assert_eq!(group.prepare(slow, LIMIT, &raised), Err(AgentError::Stopped));
    prepare(&mut group, &["run=1", "run=1"]).unwrap();
    assert_eq!(group.start(Duration::ZERO, &raised), Err(AgentError::Stopped));

    prepare(&mut group, &["run=600000", "run=600000"]).unwrap();
    group.start(Duration::ZERO, &no_stop()).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let later = stop.clone();
    // Raised when the work is known to be going on.
    let mut told =
        move |_: &TaskProgress, _: &[Option<TaskProgress>]| later.store(true, Ordering::Relaxed);
    assert_eq!(group.run(LIMIT, &mut told, &stop), Err(AgentError::Stopped));
    drop(group);
    for agent in [&a, &b] {
        let events = agent.until_free();
        assert_eq!(events.iter().filter(|event| **event == AgentLogEvent::Stopped).count(), 3);
    }
}

#[test]
fn slow_agents_are_named() {
    let credentials = by_token(TOKEN);
    let (a, b) = (Agent::new(&credentials), Agent::new(&credentials));
    let mut group = connect(&[&a, &b], &credentials).unwrap();
    let limit = Duration::from_millis(300);
    let assignments = vec![b"run=1".to_vec(), b"slow=600000".to_vec()];
    assert_eq!(
        group.prepare(assignments, limit, &no_stop()),
        Err(AgentError::TooSlow { address: b.address.clone(), what: "become ready", limit })
    );
    prepare(&mut group, &["run=600000", "run=1"]).unwrap();
    group.start(Duration::ZERO, &no_stop()).unwrap();
    let limit = Duration::from_millis(900);
    assert_eq!(
        group.run(limit, &mut |_, _| {}, &no_stop()),
        Err(AgentError::TooSlow { address: a.address.clone(), what: "finish", limit })
    );
}

#[test]
fn a_busy_agent_names_its_holder() {
    let credentials = by_token(TOKEN);
    let agent = Agent::new(&credentials);
    let group = connect(&[&agent], &credentials).unwrap();
    let machine = group.infos()[0].machine.clone();
    match connect(&[&agent], &credentials).map(|_| ()) {
        Err(AgentError::Busy { address, holder }) => {
            assert_eq!(address, agent.address);
            assert!(holder.starts_with(&format!("{machine} (127.0.0.1:")), "{holder}");
            assert!(holder.contains("has used it since ") && holder.contains(" UTC ("), "{holder}");
        }
        other => panic!("{other:?}"),
    }
    // A dropped fleet has let go when the drop returns.
    drop(group);
    for _ in 0..10 {
        drop(connect(&[&agent], &credentials).unwrap());
    }
}

#[test]
fn a_task_that_ignores_the_stop_keeps_its_agent_busy() {
    let credentials = by_token(TOKEN);
    let mut options = options();
    options.timing.wind_down = Duration::from_millis(300);
    let agent = Agent::with(&credentials, options.clone());
    let addresses = [agent.address.clone()];
    let mut group = AgentGroup::connect(&addresses, &credentials, options.clone(), LIMIT).unwrap();
    prepare(&mut group, &["deaf=3000"]).unwrap();
    group.start(Duration::ZERO, &no_stop()).unwrap();
    agent.until(|event| *event == AgentLogEvent::Started);
    let limit = Duration::from_millis(500);
    let error = group.run(limit, &mut |_, _| {}, &no_stop()).unwrap_err();
    assert!(matches!(error, AgentError::TooSlow { .. }), "{error}");
    let error = prepare(&mut group, &["run=1"]).unwrap_err().to_string();
    assert!(error.contains("it did not stop in time"), "{error}");
    drop(group);
    agent.until(|event| matches!(event, AgentLogEvent::Left { .. }));
    let error = connect(&[&agent], &credentials).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("its task is still ending"), "{error}");
    agent.until_free();
    // An agent that is ended meanwhile says so.
    let mut group = AgentGroup::connect(&addresses, &credentials, options, LIMIT).unwrap();
    prepare(&mut group, &["deaf=3000"]).unwrap();
    group.start(Duration::ZERO, &no_stop()).unwrap();
    agent.until(|event| *event == AgentLogEvent::Started);
    let limit = Duration::from_millis(300);
    assert_eq!(agent.end(), Err(AgentError::StillWorking { limit }));
}

#[test]
fn an_ended_agent_is_lost_and_the_others_stop() {
    let credentials = by_token(TOKEN);
    let (a, b) = (Agent::new(&credentials), Agent::new(&credentials));
    let mut group = connect(&[&a, &b], &credentials).unwrap();
    prepare(&mut group, &["run=600000", "run=600000"]).unwrap();
    group.start(Duration::ZERO, &no_stop()).unwrap();
    let lost = b.address.clone();
    b.raise_stop();
    let error = group.run(LIMIT, &mut |_, _| {}, &no_stop()).unwrap_err();
    let expected = AgentError::Lost { address: lost, why: "the agent was stopped".to_owned() };
    assert_eq!(error, expected);
    a.until(|event| *event == AgentLogEvent::Stopped);
    // It stays lost.
    assert_eq!(prepare(&mut group, &["run=1", "run=1"]), Err(expected));
    b.end().unwrap();
}

#[test]
fn tokens_and_versions_must_be_the_same() {
    let agent = Agent::new(&by_token(TOKEN));
    let address = agent.address.clone();
    let error = connect(&[&agent], &by_token(OTHER_TOKEN)).map(|_| ()).unwrap_err();
    assert_eq!(error, AgentError::WrongToken { address: address.clone() });
    let refused = agent.until(|event| matches!(event, AgentLogEvent::Refused { .. }));
    assert!(refused.last().unwrap().to_string().ends_with("it showed a wrong token"));

    let other = PeerOptions { version: "0.0.9".to_owned(), ..options() };
    let addresses = [address.clone()];
    let error =
        AgentGroup::connect(&addresses, &by_token(TOKEN), other, LIMIT).map(|_| ()).unwrap_err();
    let (theirs, ours) = (env!("CARGO_PKG_VERSION").to_owned(), "0.0.9".to_owned());
    assert_eq!(error, AgentError::Version { address, theirs, ours });
    // None of these took it.
    connect(&[&agent], &by_token(TOKEN)).unwrap();
}

#[test]
fn wrong_addresses_are_named() {
    let credentials = by_token(TOKEN);
    let agent = Agent::new(&credentials);
    let reach = |addresses: &[Address], limit| {
        AgentGroup::connect(addresses, &credentials, options(), limit).map(|_| ()).unwrap_err()
    };
    assert_eq!(reach(&[], LIMIT), AgentError::NoAgents);
    let twice = [agent.address.clone(), agent.address.clone()];
    assert_eq!(reach(&twice, LIMIT), AgentError::Twice { address: agent.address.clone() });
    let unix = Address::Unix("/run/agent".into());
    assert_eq!(reach(std::slice::from_ref(&unix), LIMIT), AgentError::NotTcp { address: unix });

    // A port that was free a moment ago.
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let closed = local(closed);
    // The one that was reached is let go.
    let some = [agent.address.clone(), closed.clone()];
    assert_eq!(reach(&some, LIMIT), AgentError::NotListening { address: closed });
    agent.until_free();

    let nowhere = Address::Tcp { host: "no-such-host.invalid".to_owned(), port: 1 };
    assert!(matches!(reach(&[nowhere], LIMIT), AgentError::NoSuchHost { .. }));

    // The kernel takes the connection, and nobody speaks.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = local(silent.local_addr().unwrap().port());
    let limit = Duration::from_millis(300);
    let error = reach(std::slice::from_ref(&address), limit);
    assert_eq!(error, AgentError::TooSlow { address, what: "accept a session", limit });
    // Hangs up; speaks another protocol.
    for words in ["", "ERROR\r\n"] {
        let other = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = local(other.local_addr().unwrap().port());
        let server = thread::spawn(move || {
            let (mut peer, _) = other.accept().unwrap();
            std::io::Write::write_all(&mut peer, words.as_bytes()).unwrap();
        });
        let error = reach(&[address], LIMIT);
        assert!(matches!(error, AgentError::NoAnswer { tls: false, .. }), "{error}");
        server.join().unwrap();
    }
}

#[test]
fn unusable_listen_addresses_are_named() {
    let credentials = by_token(TOKEN);
    let agent = Agent::new(&credentials);
    let listen = |address: &Address| {
        let work = Arc::new(FakeTask::default());
        serve(address, &credentials, work, options(), |_| {}, &no_stop()).unwrap_err()
    };
    let address = agent.address.clone();
    assert_eq!(listen(&address), AgentError::PortInUse { address });
    let elsewhere = Address::Tcp { host: "192.0.2.1".to_owned(), port: 0 };
    let error = listen(&elsewhere).to_string();
    assert!(error.contains("--listen 192.0.2.1:0: not an address of this machine"), "{error}");
}
