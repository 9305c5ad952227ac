#![forbid(unsafe_code)]
mod alias;
mod decimal;
mod fnv;
mod random;
mod error;
mod length;
mod normal;
mod size;
mod popularity;
mod text_or_table;
pub use error::SpecError;
pub use size::Size;
pub use popularity::Popularity;
