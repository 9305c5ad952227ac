//! The server's side of a study: a real server started, awaited and ended
//! ([`launch`]), and what the machine knows of one that runs here ([`watch`]).

pub mod launch;
pub mod watch;
