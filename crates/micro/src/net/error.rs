use std::io;

use thiserror::Error;

use crate::error::MicroError;

/// Errors of measuring a cell.
#[derive(Debug, Error)]
pub enum NetError {
    #[error("--{flag}: {why}")]
    InvalidSetting { flag: &'static str, why: String },
    #[error("cannot listen on {place}: {source}; name an address of this machine and a free port")]
    Listen { place: String, source: io::Error },
    #[error(
        "nothing listens on {place}: {why}; start `kvmeter micro {kind} --listen {place}` there, \
         and check that no firewall blocks it"
    )]
    Connect { place: String, kind: String, why: String },
    #[error("{place} answers, but it is not a server of `kvmeter micro`: {why}")]
    NotAServer { place: String, why: String },
    #[error("the server refuses: {0}")]
    Refused(String),
    /// The server reported it; `request`: whether by its judgement the user can mend it.
    #[error("the server's end failed: {words}")]
    Remote { words: String, request: bool },
    #[error(
        "no {what} from the other end within {seconds:.1} s; check that it still runs and can be \
         reached, or raise --timeout"
    )]
    Timeout { what: &'static str, seconds: f64 },
    #[error("the other end closed the connection while {doing}")]
    Closed { doing: &'static str },
    #[error("{doing} failed: {source}")]
    Io { doing: &'static str, source: io::Error },
    #[error("the other end sent something unexpected ({0}); use the same version on both")]
    Protocol(String),
    #[error("{0}")]
    Port(String),
    #[error("the measurement was stopped")]
    Stopped,
    #[error(transparent)]
    Fault(#[from] MicroError),
}

impl NetError {
    /// Whether the user can mend it by another setting.
    pub fn is_request(&self) -> bool {
        match self {
            NetError::InvalidSetting { .. } | NetError::Listen { .. } | NetError::Refused(_) => {
                true
            }
            NetError::Fault(fault) => fault.is_request(),
            NetError::Remote { request, .. } => *request,
            _ => false,
        }
    }

    pub(super) fn io(doing: &'static str) -> impl FnOnce(io::Error) -> NetError {
        move |source| NetError::Io { doing, source }
    }
}
