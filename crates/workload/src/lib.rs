//! Workloads: keys, values, popularity, mixes, scan lengths, presets.
//!
//! A workload is a pure function of its [`WorkloadSpec`]: operation `i` is the same in every
//! thread, so that the same seed gives the same stream whatever the thread count.
#![forbid(unsafe_code)]

mod alias;
mod decimal;
pub mod describe;
mod error;
mod fetch_latency;
pub mod fit;
mod fnv;
mod insert_positions;
mod key;
mod length;
mod mix;
mod normal;
mod operation;
mod popularity;
mod preset;
mod reuse;
mod size;
mod skew;
mod spec;
mod stream;
mod text_or_table;
pub mod trace;
mod ttl;
mod value;
mod workload;
mod ycsb;

pub use error::SpecError;
pub use fetch_latency::FetchLatency;
pub use key::{InsertOrder, KeyForm, KeySpec};
pub use mix::Mix;
pub use operation::{BLOCK, Operation};
pub use popularity::{KeyRanges, Popularity};
pub use preset::Preset;
pub use reuse::ReuseSpec;
pub use size::LengthSpec;
pub use skew::Skew;
pub use spec::{DatasetId, LONGEST_SCAN, MOST_KEYS, MOST_RECORDS, WorkloadSpec};
pub use stream::OperationStream;
pub use ttl::TtlSpec;
pub use value::{LengthSource, SizedValues, ValueMismatch, ValueSpec};
pub use workload::Workload;
pub use ycsb::{RunProperty, YcsbError, YcsbWorkload};
