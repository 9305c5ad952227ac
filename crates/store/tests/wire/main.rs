//! The protocols of networked stores: against a model of a server, against tables of what
//! servers say, against hostile bytes, and against the real ones.

mod cases;
mod errors;
mod greeting;
mod hostile;
mod invariants;
mod keys;
mod login;
mod model_server;
mod real;
mod ring;
mod round_trip;
