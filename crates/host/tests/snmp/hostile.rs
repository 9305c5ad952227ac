//! Agents that answer with garbage, too much, too late or not at all: the probe names the mistake
//! within its limit of time.

use std::net::UdpSocket;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use host::probe::energy::SnmpSettings;

use crate::fake::{FakeAgent, INTEGER, OID, Request, tlv};
use crate::{LIMIT, made, power_and_energy, refusal, watts, why};

/// The right answer: 42 W.
fn right(request: &Request) -> Vec<u8> {
    request.answer(&[(INTEGER, &[42])])
}

#[test]
fn lost_requests_are_sent_again() {
    let agent = FakeAgent::answering(|request| match request.repeats {
        0 | 1 => Vec::new(),
        _ => vec![right(request)],
    });
    assert_eq!(watts(&agent.settings()), 42.0);
}

#[test]
fn a_silent_agent_is_given_up_after_three_requests() {
    let agent = FakeAgent::answering(|_| Vec::new());
    let start = Instant::now();
    let (reason, remedy) = why(&agent.settings());
    assert!(reason.ends_with("did not answer 3 requests of SNMPv2c within 1.8 s"), "{reason}");
    assert!(remedy.contains("community"), "{remedy}");
    assert!(start.elapsed() < LIMIT, "{:?}", start.elapsed());
    let thrice = || agent.requests.load(Ordering::Relaxed) == 3;
    while !thrice() {
        assert!(start.elapsed() < LIMIT);
        std::thread::sleep(Duration::from_millis(1));
    }
    // Nothing listens there.
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let nowhere = SnmpSettings::of(socket.local_addr().unwrap().to_string(), &[OID]);
    drop(socket);
    assert!(why(&nowhere).0.contains("did not answer"));
    let (reason, _) = why(&SnmpSettings::of("a..b", &[OID]));
    assert!(reason.contains("a..b has no address"), "{reason}");
}

#[test]
fn answers_to_other_requests_are_refused() {
    // A right answer behind a wrong one counts when the request is repeated.
    let agent = FakeAgent::answering(|request| match request.id % 2 {
        0 => vec![right(request)],
        _ => vec![request.response(request.id ^ 1, (0, 0), &[])],
    });
    assert_eq!(watts(&agent.settings()), 42.0);
    // However many there are.
    let agent = FakeAgent::answering(|request| {
        let wrong =
            request.response(request.id - 9, (0, 0), &[(request.names[0].clone(), INTEGER, &[7])]);
        vec![wrong; 1000]
    });
    let (reason, remedy) = refusal(&agent.settings());
    assert!(reason.contains("sent what does not answer the request"), "{reason}");
    assert!(reason.contains("Request ID mismatch"), "{reason}");
    assert!(remedy.contains("other version"), "{remedy}");
}

#[test]
fn answers_from_other_addresses_are_ignored() {
    let other = UdpSocket::bind("127.0.0.1:0").unwrap();
    let agent = FakeAgent::answering(move |request| {
        let forged = request.answer(&[(INTEGER, &[7])]);
        let _ = other.send_to(&forged, request.from);
        vec![right(request)]
    });
    assert_eq!(watts(&agent.settings()), 42.0);
    let other = UdpSocket::bind("127.0.0.1:0").unwrap();
    let agent = FakeAgent::answering(move |request| {
        let _ = other.send_to(&right(request), request.from);
        Vec::new()
    });
    assert!(why(&agent.settings()).0.contains("did not answer"));
}

/// An agent that answers with what `change` makes of the right answer.
fn changing(change: impl Fn(Vec<u8>) -> Vec<u8> + Send + 'static) -> FakeAgent {
    FakeAgent::answering(move |request| vec![change(right(request))])
}

#[test]
fn every_truncated_answer_is_refused() {
    for kept in 0..60 {
        let agent = changing(move |mut answer| {
            answer.truncate(kept.min(answer.len() - 1));
            answer
        });
        let (reason, _) = refusal(&agent.settings());
        assert!(reason.contains("sent what does not answer the request"), "{kept}: {reason}");
    }
}

#[test]
fn any_changed_byte_ends_in_a_number_or_a_reason() {
    for at in 0..60 {
        for byte in [0x00, 0x7f, 0x80, 0x84, 0x88, 0xff] {
            // Some bytes of the number or the value may be any.
            let agent = changing(move |mut answer| {
                let place = at.min(answer.len() - 1);
                answer[place] = byte;
                answer
            });
            let _ = made(&agent.settings());
        }
    }
}

#[test]
fn garbage_and_absurd_lengths_are_refused() {
    let nested = |depth: usize| (0..depth).fold(Vec::new(), |inner, _| tlv(0x30, &inner));
    for garbage in [
        Vec::new(),
        b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(),
        vec![0xff; 60_000],
        vec![0x30; 60_000],
        [&[0x30, 0x84, 0xff, 0xff, 0xff, 0xff][..], &[2; 100]].concat(),
        [&[0x30, 0x88][..], &[0xff; 8], &[2; 100]].concat(),
        [&[0x30, 0xff][..], &[0xff; 200]].concat(),
        nested(10_000),
    ] {
        let start = garbage[..garbage.len().min(8)].to_vec();
        let agent = changing(move |_| garbage.clone());
        let (reason, _) = refusal(&agent.settings());
        assert!(reason.contains("sent what does not answer the request"), "{start:x?}: {reason}");
    }
    // The values are nested in place of a number.
    let agent = FakeAgent::answering(move |request| vec![request.answer(&[(0x30, &nested(5000))])]);
    let (reason, _) = refusal(&agent.settings());
    assert!(reason.contains("is of another type, which is not a power"), "{reason}");
}

#[test]
fn errors_of_agents_are_named() {
    fn failing(status: u8, index: u8) -> (String, String) {
        let agent = FakeAgent::answering(move |request| {
            let pairs: Vec<_> =
                request.names.iter().map(|name| (name.clone(), 5, &[][..])).collect();
            vec![request.response(request.id, (status, index), &pairs)]
        });
        let oids = [OID, "1.3.6.1.4.1.1.2.0"];
        refusal(&SnmpSettings::of(agent.address.to_string(), &oids))
    }
    let (reason, remedy) = failing(2, 2);
    assert!(reason.ends_with("has no object 1.3.6.1.4.1.1.2.0"), "{reason}");
    assert!(remedy.contains("the instance"), "{remedy}");
    let (reason, remedy) = failing(1, 0);
    assert!(reason.contains("the objects: error-status 1 (tooBig)"), "{reason}");
    assert!(remedy.contains("fewer objects"), "{remedy}");
    assert!(failing(5, 1).0.ends_with(&format!("{OID}: error-status 5 (genErr)")));
    // An index far behind the last object.
    assert!(failing(16, 127).0.contains("the objects: error-status 16 (authorizationError)"));
    assert!(failing(99, 1).0.contains("error-status 99"));
}

#[test]
fn values_of_other_objects_or_of_no_number_are_refused() {
    /// Name, tag and value.
    type Pair = (Vec<u8>, u8, &'static [u8]);
    fn giving(pairs: fn(&Request) -> Vec<Pair>) -> String {
        let agent = FakeAgent::answering(move |request| {
            vec![request.response(request.id, (0, 0), &pairs(request))]
        });
        refusal(&agent.settings()).0
    }
    let other = "answered for other objects than the request names";
    assert!(giving(|_| Vec::new()).contains(other));
    assert!(giving(|_| vec![(vec![0x2b, 6, 1], INTEGER, &[7])]).contains(other));
    let twice = giving(|request| vec![(request.names[0].clone(), INTEGER, &[7][..]); 5000 / 20]);
    assert!(twice.contains(other), "{twice}");
    // No type of SNMP.
    assert!(giving(|request| vec![(request.names[0].clone(), 0x1f, &[7])]).contains(other));
    let minus = giving(|request| vec![(request.names[0].clone(), INTEGER, &[0xff])]);
    assert!(minus.contains("is -1, which is not a power"), "{minus}");
    let text = giving(|request| vec![(request.names[0].clone(), 4, b"on\x1b[31m")]);
    assert!(text.contains("is `on [31m`, which is not a power"), "{text}");
    for tag in [0x80, 0x81, 0x82] {
        let agent = FakeAgent::answering(move |request| vec![request.answer(&[(tag, &[])])]);
        let (reason, _) = refusal(&agent.settings());
        assert!(reason.ends_with(&format!("has no object {OID}")), "{reason}");
    }
}

#[test]
fn an_agent_on_a_name_or_on_ipv6_is_found() {
    let agent = FakeAgent::answering(|request| vec![right(request)]);
    let named = format!("localhost:{}", agent.address.port());
    assert_eq!(watts(&SnmpSettings::of(named, &[OID])), 42.0);
    let Some(agent) = FakeAgent::at("[::1]:0", |request| vec![right(request)]) else {
        eprintln!("SKIPPED: this machine has no IPv6 address");
        return;
    };
    let (power, _) = power_and_energy(&agent.settings());
    assert_eq!(power.value(), Some(42.0));
    assert_eq!(power.source, format!("SNMP [::1]:{} at {OID}", agent.address.port()));
}
