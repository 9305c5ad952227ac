//! The shared vocabulary of kvmeter: operations, quantities as people write
//! them, readings with their provenance, and the machine that was measured.
//! No I/O, no dependency on a sibling crate.
#![forbid(unsafe_code)]

mod address;
mod bucket_sum;
pub mod cpu_list;
pub mod design;
pub mod distribution;
mod expiry;
pub mod figures;
pub mod histogram;
mod kernel_counts;
mod latency_scope;
mod load;
mod machine;
mod mask;
mod op;
mod profile;
mod quantity;
pub mod random;
mod rate_profile;
mod reading;
mod run;
mod run_latencies;
pub mod secrecy;
mod series;
mod share_range;
pub mod signal;
pub mod suggest;
pub mod text;
pub mod text_position;
pub mod tilde;
mod top_down;
mod unavailable;

pub use address::{Address, AddressError, LONGEST_SOCKET};
pub use bucket_sum::BucketSum;
pub use design::Design;
pub use distribution::Distribution;
pub use expiry::Expiry;
pub use kernel_counts::{
    BlockOperation, KernelBucket, KernelCounts, KernelHistogram, KernelQuantity, MissingCounts,
    TcpFigures,
};
pub use latency_scope::LatencyScope;
pub use load::{Arrivals, ConnectionConfig, Engine, LoadShape, Pacing, StopCondition};
pub use machine::{Fact, Machine};
pub use mask::masked;
pub use op::{Op, PerOp};
pub use profile::{ProfiledSide, RunProfile, SampleClock, Stack, StackSet, ThreadState};
pub use quantity::{ByteRate, Bytes, Count, QuantityError, Rate, Span};
pub use rate_profile::{
    MAX_PROFILE_PIECES, MAX_RATE, ProfileCursor, ProfileError, RatePiece, RateProfile,
};
pub use reading::{IS_ELSEWHERE, Origin, Reading, ReadingValue, Scope, Unit};
pub use run::{
    EXPECTED_HIT_RATIO, Execution, Failures, HarnessTax, LatencyClock, LoopKind, MICRO, Phase,
    PlannedRun, Run, RunSettings, SIMULATE, SeriesPoint, total,
};
pub use run_latencies::{LatencyStatistics, RunLatencies, RunLatency};
pub use series::Series;
pub use share_range::ShareRange;
pub use signal::{Signal, SignalWindow};
pub use top_down::{SlotCategory, SlotEvent, SlotShare, TopDown, TopDownPass};
pub use unavailable::Unavailable;
