//! The server's side of a study: a real server started, awaited and ended
//! ([`launch`]), what the machine knows of one that runs here ([`watch`]), and the
//! latency of its requests from inside ([`tap`]).

pub mod launch;
pub mod tap;
pub mod watch;
