//! Interrupts and context switches of the whole machine.

use model::{Scope, Unavailable, Unit};

use super::counters::{CounterValues, Counters};
use super::{Context, Probe, ProbeSpec, Signal};
use crate::root::{Root, RootError};
use crate::stat::STAT;

pub(super) const SPEC: ProbeSpec = ProbeSpec::new("switches", SIGNALS, STAT, init);

const SIGNALS: &[Signal] = &[
    machine("interrupts.hard", "/proc/stat: intr"),
    machine("interrupts.soft", "/proc/stat: softirq"),
    machine("machine.context_switches", "/proc/stat: ctxt"),
    machine("machine.forks", "/proc/stat: processes"),
];

/// The lines of the signals; the first number of each is its total.
const KEYS: [&str; 4] = ["intr", "softirq", "ctxt", "processes"];

const fn machine(name: &'static str, source: &'static str) -> Signal {
    Signal::new(name, Unit::Count, Scope::Machine, source)
}

fn init(root: &Root, _: &Context) -> Result<Box<dyn Probe>, Unavailable> {
    read(&root.text(STAT)?, "ctxt")?;
    let root = root.clone();
    Ok(Box::new(Counters::plain(SIGNALS, move || read_counters(&root))))
}

fn read_counters(root: &Root) -> CounterValues {
    let text = root.text(STAT)?;
    Ok(KEYS.iter().map(|key| read(&text, key)).collect())
}

fn read(text: &str, key: &str) -> Result<u64, Unavailable> {
    let total = text.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        (words.next() == Some(key)).then(|| words.next()?.parse().ok())?
    });
    total.ok_or_else(|| match key {
        // Old kernels and sandboxes that write a /proc/stat of their own lack lines.
        "ctxt" => RootError::malformed(STAT, text, "a list with ctxt").into(),
        _ => Unavailable::new(
            format!("{STAT} has no line {key}"),
            "measure outside the sandbox that writes its own /proc/stat",
        ),
    })
}
