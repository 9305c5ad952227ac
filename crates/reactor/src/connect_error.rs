use std::io;
use std::path::PathBuf;
use std::time::Duration;

use model::Address;
use thiserror::Error;

use tls::TlsFailure;

/// Why there is no connection.
#[derive(Debug, Error)]
pub enum ConnectError {
    #[error("{address}: there is no host of that name ({why}); check the spelling")]
    NoSuchHost { address: Address, why: String },
    #[error(
        "{address}: nothing listens there (tried {tried}); is the server started, on this port?"
    )]
    Refused { address: Address, tried: String },
    #[error("{address}: {step} took longer than {limit:?}; {hint}")]
    TimedOut { address: Address, step: &'static str, limit: Duration, hint: &'static str },
    #[error("{}: there is no such socket; is the server started with this path?", path.display())]
    NoSuchSocket { path: PathBuf },
    #[error("{address}: this user may not connect to it")]
    Forbidden { address: Address },
    #[error("{address}: {why}")]
    Tls { address: Address, why: TlsFailure },
    #[error("{address}: {source}")]
    Other { address: Address, source: io::Error },
}
