//! Authentication by certificates.
// Failing is what unwraps are for here.
#![allow(clippy::unwrap_used)]

mod common;

use agents::{AgentError, CertificateFault, Credentials};
use common::*;

const NOW: i32 = 2100;
const PAST: i32 = 2001;

fn load(files: &agents::TlsFiles) -> Credentials {
    Credentials::load(files, None).unwrap()
}

fn refusal(agent: &Agent, credentials: &Credentials) -> AgentError {
    connect(&[agent], credentials).map(|_| ()).unwrap_err()
}

#[test]
fn both_sides_show_a_certificate_and_payloads_pass() {
    let ca = Authority::new("one");
    let agent = Agent::new(&load(&ca.sign("127.0.0.1", NOW, &ca)));
    let mut group = connect(&[&agent], &load(&ca.sign("coordinator", NOW, &ca))).unwrap();
    let outcomes = run_all(&mut group, &["size=3000000 fill=9"]).unwrap();
    assert_eq!(outcomes[0].len(), 3_000_008);
    assert!(outcomes[0][8..].iter().all(|byte| *byte == 9));
}

#[test]
fn an_agents_certificate_is_checked() {
    let (ca, other) = (Authority::new("one"), Authority::new("other"));
    let coordinator = load(&ca.sign("coordinator", NOW, &ca));
    for (files, expected) in [
        (ca.sign("127.0.0.1", PAST, &ca), CertificateFault::Expired),
        (other.sign("127.0.0.1", NOW, &ca), CertificateFault::NotTrusted),
        (ca.sign("elsewhere", NOW, &ca), CertificateFault::OtherName),
    ] {
        let agent = Agent::new(&load(&files));
        let address = agent.address.clone();
        let error = refusal(&agent, &coordinator);
        assert_eq!(error, AgentError::Certificate { address, fault: expected });
        assert!(error.to_string().starts_with("the certificate of agent 127.0.0.1:"), "{error}");
    }
}

#[test]
fn a_coordinators_certificate_is_checked() {
    let (ca, other) = (Authority::new("one"), Authority::new("other"));
    let agent = Agent::new(&load(&ca.sign("127.0.0.1", NOW, &ca)));
    for (files, expected) in [
        (ca.sign("coordinator", PAST, &ca), CertificateFault::Expired),
        (other.sign("coordinator", NOW, &ca), CertificateFault::NotTrusted),
    ] {
        let error = refusal(&agent, &load(&files));
        let address = agent.address.clone();
        assert_eq!(error, AgentError::OwnCertificate { address, fault: expected });
        assert!(error.to_string().contains("--agent-cert"), "{error}");
    }
    // None of them took the agent.
    connect(&[&agent], &load(&ca.sign("coordinator", NOW, &ca))).unwrap();
}

#[test]
fn plain_text_and_tls_do_not_mix() {
    let ca = Authority::new("one");
    let tls = load(&ca.sign("127.0.0.1", NOW, &ca));
    let plain_agent = Agent::new(&by_token(TOKEN));
    let error = refusal(&plain_agent, &tls);
    assert!(
        matches!(error, AgentError::NoTls { .. } | AgentError::NoAnswer { tls: true, .. }),
        "{error:?}"
    );
    let tls_agent = Agent::new(&tls);
    let error = refusal(&tls_agent, &by_token(TOKEN));
    assert!(matches!(error, AgentError::NoAnswer { tls: false, .. }), "{error:?}");
    assert!(error.to_string().contains("mutual TLS"), "{error}");
}

#[test]
fn a_token_is_required_besides_tls() {
    let ca = Authority::new("one");
    let files = ca.sign("127.0.0.1", NOW, &ca);
    let with = |text| Credentials::load(&files, Some(token(text))).unwrap();
    let agent = Agent::new(&with(TOKEN));
    let address = agent.address.clone();
    assert_eq!(
        refusal(&agent, &load(&files)),
        AgentError::TokenWanted { address: address.clone() }
    );
    assert_eq!(refusal(&agent, &with(OTHER_TOKEN)), AgentError::WrongToken { address });
    connect(&[&agent], &with(TOKEN)).unwrap();
}
