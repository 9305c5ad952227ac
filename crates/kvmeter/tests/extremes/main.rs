//! The largest and other extreme values for every flag of the command and every key of a study,
//! both found in their definitions. Whatever is given, the command refuses it or does what it
//! says: it does not panic, hang, or take all memory.
#![allow(clippy::unwrap_used)]

mod flags;
mod keys;
mod process;
#[path = "../shared/slice.rs"]
mod slice;

/// Texts that overflow, end or mislead what reads them.
const TEXTS: &[&str] = &[
    "",
    "-1",
    "0",
    "18446744073709551615",
    "4294967295",
    "8999999999999999",
    "366d",
    "1e19s",
    "584542046090y",
    "1e308",
    "NaN",
    "inf",
    "0-4294967295",
    "p99<366d",
    "\u{1b}[31m\u{7}\n",
    ",,=&?",
];

/// The largest of their kind: where one of these is accepted, the work is begun with it.
const LARGE: &[&str] =
    &["4294967295", "8999999999999999", "18446744073709551615", "1e308", "366d", "1e19s"];

/// 4 KiB of text: longer than a path or a name may be.
fn long() -> String {
    "a".repeat(4096)
}

/// Whether the work is begun with an accepted value.
fn is_run(value: &str) -> bool {
    LARGE.contains(&value) || slice::is_whole()
}
