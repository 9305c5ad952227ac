//! The loop over connections, against real and faulty servers.
// Failing is what unwraps are for here.
#![allow(clippy::unwrap_used)]

mod database;
mod fake;
mod faults;
mod login;
#[path = "../../../model/tests/shared/ports.rs"]
mod ports;
mod presets;
mod support;
mod timing;
mod tls;
