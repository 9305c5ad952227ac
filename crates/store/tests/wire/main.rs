//! The protocols of networked stores, tested against a model server, tables of real answers,
//! hostile bytes and real servers.

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
