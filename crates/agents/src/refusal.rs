//! How an agent refuses a coordinator, and how the coordinator reads it.
use model::Address;
use tonic::{Code, Status};

use crate::error::AgentError;

const NO_TOKEN: &str = "it showed no token";
const WRONG_TOKEN: &str = "it showed a wrong token";
const VERSION: &str = "it is of another version than ";

pub fn no_token() -> Status {
    Status::unauthenticated(NO_TOKEN)
}

pub fn wrong_token() -> Status {
    Status::unauthenticated(WRONG_TOKEN)
}

pub fn version(own: &str) -> Status {
    Status::failed_precondition(format!("{VERSION}{own}"))
}

pub fn busy(holder: &impl std::fmt::Display) -> Status {
    Status::resource_exhausted(holder.to_string())
}

/// The refusal that a status tells; None where it tells of something else.
pub fn read(address: &Address, status: &Status, own_version: &str) -> Option<AgentError> {
    let address = address.clone();
    let message = status.message();
    Some(match status.code() {
        Code::Unauthenticated if message == NO_TOKEN => AgentError::TokenWanted { address },
        Code::Unauthenticated => AgentError::WrongToken { address },
        Code::ResourceExhausted => AgentError::Busy { address, holder: message.to_owned() },
        Code::FailedPrecondition => AgentError::Version {
            address,
            theirs: message.strip_prefix(VERSION)?.to_owned(),
            ours: own_version.to_owned(),
        },
        _ => return None,
    })
}
