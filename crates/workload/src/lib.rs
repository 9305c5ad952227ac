//! What is asked: keys, values, popularity, mixes, scan lengths, presets.
//!
//! A workload is a pure function of its [`Spec`]: operation `i` is the same operation whoever
//! asks it, so that the same seed gives the same stream whatever the thread count.
#![forbid(unsafe_code)]
