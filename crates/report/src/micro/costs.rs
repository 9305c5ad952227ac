//! Costs of reading clocks, of calls, and of handing work to another thread.

use crate::format::{NONE, significant};
use crate::table::{ALWAYS, Align, Cell, Table, Tone};

/// Nanoseconds of a call over several batches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NsSpread {
    pub min: f64,
    pub median: f64,
    pub mean: f64,
    pub max: f64,
}

/// One clock.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClockCost<'a> {
    pub name: &'a str,
    pub read: NsSpread,
    pub step_ns: Option<f64>,
    pub stated_ns: Option<f64>,
}

/// One call of the kernel.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CallCost<'a> {
    pub name: &'a str,
    pub what: &'a str,
    pub cost: NsSpread,
}

/// One way of handing over to another thread.
#[derive(Debug, Clone, PartialEq)]
pub struct SwitchCost {
    pub method: String,
    pub cpus: [u32; 2],
    pub hand_over: NsSpread,
    /// Medians of its calls alone, and of the hand-over without them.
    pub calls_ns: f64,
    pub switch_ns: f64,
    pub switches: f64,
}

/// A row for each clock.
pub fn clocks(clocks: &[ClockCost<'_>]) -> Table {
    let mut table = Table::new("Reading a clock, ns")
        .column("clock", Align::Left, ALWAYS)
        .column("min", Align::Decimal, 20)
        .column("median", Align::Decimal, ALWAYS)
        .column("mean", Align::Decimal, 19)
        .column("max", Align::Decimal, 18)
        .column("smallest step", Align::Decimal, ALWAYS)
        .column("stated step", Align::Decimal, 17);
    for clock in clocks {
        let [min, median, mean, max] = spread(&clock.read);
        table.row(vec![
            clock.name.into(),
            min,
            median,
            mean,
            max,
            clock.step_ns.map_or(NONE.to_owned(), ns).into(),
            clock.stated_ns.map_or(NONE.to_owned(), ns).into(),
        ]);
    }
    table.note(
        "The smallest step between two different readings cannot be finer than the time between \
         two reads.",
    );
    table
}

/// A row for each call.
pub fn calls(calls: &[CallCost<'_>]) -> Table {
    let mut table = Table::new("What the kernel's services cost, ns")
        .column("call", Align::Left, ALWAYS)
        .column("min", Align::Decimal, 20)
        .column("median", Align::Decimal, ALWAYS)
        .column("mean", Align::Decimal, 19)
        .column("max", Align::Decimal, 18)
        .column("what", Align::Wrap, 30);
    for call in calls {
        let [min, median, mean, max] = spread(&call.cost);
        let what = Cell::new(call.what, Tone::Muted);
        table.row(vec![call.name.into(), min, median, mean, max, what]);
    }
    table
}

/// A row for each way of handing over.
pub fn switches(switches: &[SwitchCost]) -> Table {
    let mut table = Table::new("Handing over to another thread, ns")
        .column("over", Align::Left, ALWAYS)
        .column("CPUs", Align::Left, ALWAYS)
        .column("hand-over", Align::Decimal, ALWAYS)
        .column("min", Align::Decimal, 20)
        .column("max", Align::Decimal, 19)
        .column("its calls", Align::Decimal, 25)
        .column("without them", Align::Decimal, ALWAYS)
        .column("switches", Align::Decimal, 24);
    for switch in switches {
        let [a, b] = switch.cpus;
        table.row(vec![
            switch.method.clone().into(),
            if a == b { a.to_string() } else { format!("{a} to {b}") }.into(),
            ns(switch.hand_over.median).into(),
            ns(switch.hand_over.min).into(),
            ns(switch.hand_over.max).into(),
            ns(switch.calls_ns).into(),
            Cell::new(ns(switch.switch_ns), Tone::Strong),
            significant(switch.switches, 2).into(),
        ]);
    }
    table.note(
        "A hand-over is half of a round trip: one context switch on one CPU, one wake-up of the \
         other thread between two. Switches are those of the first thread in each round trip.",
    );
    table
}

pub(super) fn ns(ns: f64) -> String {
    significant(ns, 3)
}

/// Least, median, mean and most; the median counts.
fn spread(of: &NsSpread) -> [Cell; 4] {
    let median = Cell::new(ns(of.median), Tone::Strong);
    [ns(of.min).into(), median, ns(of.mean).into(), ns(of.max).into()]
}
