//! The documents are checked as the code is: links, named files, the picture of the crates, prose.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used)]

mod commands;
mod layers;
mod links;
mod markdown;
mod messages;
mod named_files;
mod named_items;
mod prose;
mod signals;
mod tested_on;
mod tree;
