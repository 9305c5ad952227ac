//! What the targets have in common: the cases and the invariants of the store crate's own tests.

#[path = "../../crates/store/tests/wire/cases.rs"]
pub mod cases;
#[path = "../../crates/store/tests/wire/invariants.rs"]
pub mod invariants;
#[path = "../../crates/store/tests/wire/model_server.rs"]
mod model_server;

use store::wire::Protocol;

/// Reads what the bytes say as a protocol's answer, and checks what holds of any.
pub fn check(protocol: Protocol, data: &[u8]) {
    if let Some(case) = cases::case(protocol, data) {
        case.check();
    }
}
