//! Platforms: price, power, height and area of machines, each value with its place in the source.
//!
//! Those of two publications are built in ([`BUILT_IN`]), with the tables that these compute from
//! them ([`published`]); others are files of the same form. A value that a source does not give is
//! absent, with the reason. The form is described in `docs/cost.md`.
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
