//! Entry point for fuzzing the parsing of messages. Not part of the interface.

use prost::Message as _;

use crate::messages::{AgentMessage, CoordinatorMessage, ToAgent, ToCoordinator};
use crate::pieces::PayloadAssembler;

/// Large enough that pieces come together, small enough that an input meets it.
const MOST: usize = 1 << 10;

/// Reads bytes as a message of either side: a parsed message survives encoding, and a payload that is
/// too large is refused.
pub fn messages(bytes: &[u8]) {
    if let Ok(message) = ToAgent::decode(bytes) {
        let written = message.encode_to_vec();
        assert_eq!(ToAgent::decode(&*written).map(|it| it.encode_to_vec()), Ok(written));
        if let Some(CoordinatorMessage::Assignment(piece)) = &message.what {
            assert_eq!(
                PayloadAssembler::default().add(piece, MOST).is_err(),
                piece.data.len() > MOST
            );
        }
    }
    if let Ok(message) = ToCoordinator::decode(bytes) {
        let written = message.encode_to_vec();
        assert_eq!(ToCoordinator::decode(&*written).map(|it| it.encode_to_vec()), Ok(written));
        if let Some(AgentMessage::Outcome(piece)) = &message.what {
            assert_eq!(
                PayloadAssembler::default().add(piece, MOST).is_err(),
                piece.data.len() > MOST
            );
        }
    }
}
