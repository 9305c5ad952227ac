//! I/O of this process: on files, and on storage.

use model::{Scope, Unavailable, Unit};

use super::counters::{CounterValues, Counters};
use super::{Context, Probe, ProbeSpec, Signal};
use crate::parse::field;
use crate::root::{Root, RootError};

const IO: &str = "/proc/self/io";

pub(super) const SPEC: ProbeSpec = ProbeSpec::new("io", SIGNALS, IO, init);

const SIGNALS: &[Signal] = &[
    bytes("io.read", "/proc/self/io: read_bytes"),
    bytes("io.written", "/proc/self/io: write_bytes"),
    bytes("io.cancelled", "/proc/self/io: cancelled_write_bytes"),
    bytes("io.requested.read", "/proc/self/io: rchar"),
    bytes("io.requested.written", "/proc/self/io: wchar"),
    calls("io.calls.read", "/proc/self/io: syscr"),
    calls("io.calls.written", "/proc/self/io: syscw"),
];

/// The fields of the file, in the order of the signals.
const FIELDS: [&str; 7] =
    ["read_bytes", "write_bytes", "cancelled_write_bytes", "rchar", "wchar", "syscr", "syscw"];

const fn bytes(name: &'static str, source: &'static str) -> Signal {
    Signal::new(name, Unit::Bytes, Scope::Process, source)
}

const fn calls(name: &'static str, source: &'static str) -> Signal {
    Signal::new(name, Unit::Count, Scope::Process, source)
}

fn init(root: &Root, _: &Context) -> Result<Box<dyn Probe>, Unavailable> {
    let text = root.text(IO).map_err(|error| match error {
        RootError::Missing { path } => Unavailable::new(
            format!("{path} does not exist"),
            "use a kernel with CONFIG_TASK_IO_ACCOUNTING, and mount /proc",
        ),
        other => other.into(),
    })?;
    read(&text, FIELDS[0])?;
    let root = root.clone();
    Ok(Box::new(Counters::plain(SIGNALS, move || read_counters(&root))))
}

fn read_counters(root: &Root) -> CounterValues {
    let text = root.text(IO)?;
    Ok(FIELDS.iter().map(|name| read(&text, name).map_err(Unavailable::from)).collect())
}

fn read(text: &str, name: &str) -> Result<u64, RootError> {
    field(text, name)
        .and_then(|value| value.parse().ok())
        .ok_or_else(|| RootError::malformed(IO, text, "a list of I/O counters"))
}
