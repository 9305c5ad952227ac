//! A local server of a study: started, watched and ended.

pub mod launch;
pub mod watch;
