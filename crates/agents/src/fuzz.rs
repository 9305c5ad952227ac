//! A way into what reads a peer's messages, for fuzzing. Not part of the interface.

use prost::Message as _;

use crate::messages::{AgentMessage, CoordinatorMessage, ToAgent, ToCoordinator};
use crate::pieces::PayloadAssembler;

/// Large enough that pieces come together, small enough that an input meets it.
const MOST: usize = 1 << 10;

/// Reads bytes as a message of either side: what is understood is the same after it was written
/// again, and a payload is refused before it is larger than is taken.
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
