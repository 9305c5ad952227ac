use std::path::PathBuf;
use std::time::Duration;

use model::Address;
use thiserror::Error;

use crate::flags;

/// An error, its place, and a way out.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AgentError {
    // Credentials.
    #[error(
        "agents need a shared secret: give {}, {} and {} for mutual TLS, or a token in {} or the \
         variable {}",
        flags::CA,
        flags::CERT,
        flags::KEY,
        flags::TOKEN_FILE,
        flags::TOKEN_VARIABLE
    )]
    NoCredentials,
    #[error(
        "mutual TLS needs all of {}, {} and {}: {missing} is missing",
        flags::CA,
        flags::CERT,
        flags::KEY
    )]
    HalfTls { missing: &'static str },
    #[error("{flag} {}: {why}", path.display())]
    File { flag: &'static str, path: PathBuf, why: String },
    #[error("the token in {place} {why}; `openssl rand -hex 32` makes a good one")]
    Token { place: String, why: &'static str },

    // Addresses.
    #[error("{} names no agent", flags::AGENTS)]
    NoAgents,
    #[error("{} names {address} twice: name each agent once", flags::AGENTS)]
    Twice { address: Address },
    #[error("{address}: agents listen on TCP; write `HOST:PORT`")]
    NotTcp { address: Address },
    #[error("{address}: no such host: {why}")]
    NoSuchHost { address: Address, why: String },

    // Listening.
    #[error("{} {address}: the port is in use; another agent? Choose another port", flags::LISTEN)]
    PortInUse { address: Address },
    #[error("{} {address}: {why}", flags::LISTEN)]
    Listen { address: Address, why: String },
    #[error("the work did not end within {limit:?} after the stop")]
    StillWorking { limit: Duration },

    // Reaching an agent.
    #[error(
        "no agent listens at {address}: start one there with `kvmeter agent {} {address}`",
        flags::LISTEN
    )]
    NotListening { address: Address },
    #[error("agent {address} cannot be reached: {why}; check the address and the firewall")]
    Unreachable { address: Address, why: String },
    #[error("agent {address} did not {what} within {limit:?}")]
    TooSlow { address: Address, what: &'static str, limit: Duration },
    #[error("the certificate of agent {address} {fault}; {}", fault.way_out(flags::CERT))]
    Certificate { address: Address, fault: CertificateFault },
    #[error("agent {address} refuses the certificate of {}: it {fault}; {}", flags::CERT, fault.way_out(flags::CERT))]
    OwnCertificate { address: Address, fault: CertificateFault },
    #[error(
        "agent {address} does not use TLS: start it with {}, {} and {} too",
        flags::CA,
        flags::CERT,
        flags::KEY
    )]
    NoTls { address: Address },
    #[error("TLS with agent {address} failed: {why}")]
    Tls { address: Address, why: String },
    #[error(
        "agent {address} closed the connection before it answered ({why}): {}",
        match tls {
            true => "is it an agent with mutual TLS, and does it trust this certificate?",
            false => "is it an agent, and does it require mutual TLS (--agent-ca, --agent-cert, \
                      --agent-key)?",
        }
    )]
    NoAnswer { address: Address, tls: bool, why: String },
    #[error(
        "agent {address} requires a token: give {} or {}",
        flags::TOKEN_FILE,
        flags::TOKEN_VARIABLE
    )]
    TokenWanted { address: Address },
    #[error(
        "agent {address} rejects this token: {} or {} must give the same token on both sides",
        flags::TOKEN_FILE,
        flags::TOKEN_VARIABLE
    )]
    WrongToken { address: Address },
    #[error(
        "agent {address} runs version {theirs}, this is version {ours}: install the same \
             version on both machines"
    )]
    Version { address: Address, theirs: String, ours: String },
    #[error("agent {address} is busy: {holder}")]
    Busy { address: Address, holder: String },

    // At work.
    #[error("agent {address} was lost: {why}")]
    Lost { address: Address, why: String },
    #[error("agent {address}: {words}")]
    Failed { address: Address, words: String },
    #[error(
        "the start command reached agent {address} {} ms too late: the machine or the network is \
         overloaded",
        by.as_millis()
    )]
    Late { address: Address, by: Duration },
    #[error("{what} is larger than the limit of {most} bytes")]
    TooLarge { what: String, most: usize },
    #[error(
        "there are {agents} agents and {assignments} assignments: each agent needs exactly one"
    )]
    Count { agents: usize, assignments: usize },
    #[error("an agent is prepared, then started, then run: {asked} came too early")]
    OutOfOrder { asked: &'static str },
    #[error("stopped")]
    Stopped,
    #[error("the control thread could not be started: {why}")]
    Runtime { why: String },
}

/// What is wrong with a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CertificateFault {
    Expired,
    NotYetValid,
    /// Signed by another authority.
    NotTrusted,
    /// Made out to another name.
    OtherName,
    Revoked,
    /// None was shown.
    Missing,
    /// Anything else, or the other side did not say.
    Unacceptable,
}

impl CertificateFault {
    fn way_out(self, flag: &str) -> String {
        match self {
            CertificateFault::Expired => {
                format!("make a new one, give it with {flag}, and check both clocks")
            }
            CertificateFault::NotYetValid => "check the clocks of both machines".to_owned(),
            CertificateFault::NotTrusted => format!(
                "{} must hold, on each side, the authority that signed the other's certificate",
                flags::CA
            ),
            CertificateFault::OtherName => format!(
                "it must name the host as {} writes it (subjectAltName: DNS or IP)",
                flags::AGENTS
            ),
            CertificateFault::Revoked | CertificateFault::Unacceptable => {
                format!("make a new one, give it with {flag}")
            }
            CertificateFault::Missing => format!("give one with {flag}"),
        }
    }
}

impl std::fmt::Display for CertificateFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            CertificateFault::Expired => "has expired",
            CertificateFault::NotYetValid => "is not valid yet",
            CertificateFault::NotTrusted => "is signed by an authority that is not trusted",
            CertificateFault::OtherName => "was issued for another name",
            CertificateFault::Revoked => "was revoked",
            CertificateFault::Missing => "is missing",
            CertificateFault::Unacceptable => "is not acceptable",
        })
    }
}
