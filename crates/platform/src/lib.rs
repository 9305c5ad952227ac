//! Machines as data: what one costs, draws and fills, each value with the place it stands at.
//!
//! Those of two publications are built in ([`BUILT_IN`]), with the tables that these compute from
//! them ([`published`]); others are files of the same form. What a source does not give is
//! absent, with the reason, and never guessed. The form is in `docs/cost.md`.
#![forbid(unsafe_code)]

mod built_in;
mod error;
mod given;
pub mod published;
mod read;
mod spec;

pub use built_in::{BUILT_IN, BuiltIn};
pub use error::PlatformError;
pub use given::{GivenLevels, GivenValue};
pub use spec::{Absence, LoadPoint, Platform, PlatformValue};
