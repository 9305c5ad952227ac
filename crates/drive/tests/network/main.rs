//! The loop over connections, against real servers and against bad ones.
// Failing is what unwraps are for here.
#![allow(clippy::unwrap_used)]

mod fake;
mod faults;
mod in_time;
mod login;
mod presets;
mod support;
mod tls;
