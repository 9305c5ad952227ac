//! Servers of a study: starting and ending them ([`launch`]), their resource usage on this machine
//! ([`watch`]), and server latency ([`tap`]).

pub mod launch;
pub mod tap;
pub mod watch;
