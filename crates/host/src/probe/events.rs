//! The CPU's event counters: instructions, cycles, branches, caches and TLBs.

use std::collections::BTreeMap;
use std::time::Duration;

use model::{Reading, Scope, Unavailable, Unit};

use super::{Context, Probe, ProbeSpec, Signal, units};
use crate::facts::topology::{self, HardwareThread};
use crate::perf::{
    CountedEvent, CounterPlan, EventRole, GroupCounts, PerfQuantity, PerfSession, PerfTarget,
    PlannedGroup, UserEvent, plan,
};
use crate::root::Root;

pub(super) const SPEC: ProbeSpec =
    ProbeSpec::new("counters", SIGNALS, CALL, init).with_parts(&[IPC_OF_CPU, IPC_OF_CORES, EVENT]);

const CALL: &str = "perf_event_open";

const SIGNALS: &[Signal] = &[
    count("instructions"),
    count("instructions.user"),
    count("instructions.kernel"),
    count("cycles"),
    ratio("ipc"),
    count("branches"),
    count("branch_misses"),
    ratio("branch_miss_ratio"),
    count("l1d.misses"),
    count("l1i.misses"),
    count("l2.misses"),
    count("llc.references"),
    count("llc.misses"),
    ratio("llc.miss_ratio"),
    count("dtlb.misses"),
    count("itlb.misses"),
    mpki("mpki.branch"),
    mpki("mpki.l1d"),
    mpki("mpki.l1i"),
    mpki("mpki.l2"),
    mpki("mpki.llc"),
    mpki("mpki.dtlb"),
    mpki("mpki.itlb"),
    ratio("counters.running_ratio"),
];
const IPC_OF_CPU: Signal = Signal::new("ipc.cpuN", Unit::Ratio, Scope::Cpus, CALL);
const IPC_OF_CORES: Signal = Signal::new("ipc.core", Unit::Ratio, Scope::Cpus, CALL);
const EVENT: Signal = count("event.NAME");

/// The process is the scope where nothing else was chosen.
const fn count(name: &'static str) -> Signal {
    Signal::new(name, Unit::Count, Scope::Process, CALL)
}

const fn ratio(name: &'static str) -> Signal {
    Signal::new(name, Unit::Ratio, Scope::Process, CALL)
}

const fn mpki(name: &'static str) -> Signal {
    Signal::new(name, Unit::PerThousandInstructions, Scope::Process, CALL)
}

fn init(root: &Root, context: &Context) -> Result<Box<dyn Probe>, Unavailable> {
    units::live(root, context, over)
}

/// The probe over a kernel, the running one or a stand-in.
pub(super) fn over(
    root: &Root,
    context: &Context,
    kernel: units::NewKernel,
) -> Result<Box<dyn Probe>, Unavailable> {
    let plan = plan(root, context)?;
    let groups: Vec<_> = plan.groups.iter().map(|planned| planned.group.clone()).collect();
    let session = PerfSession::open(kernel()?, &groups)?;
    let siblings = topology::threads(root).unwrap_or_default();
    Ok(Box::new(Events { plan, siblings, session }))
}

struct Events {
    plan: CounterPlan,
    /// Nothing where the kernel does not tell them.
    siblings: Vec<HardwareThread>,
    session: PerfSession,
}

impl Probe for Events {
    fn start(&mut self) {
        self.session.start();
    }

    fn peek(&mut self, window: Duration) -> Vec<Reading> {
        let found = FoundEvents { plan: &self.plan, tallies: self.session.peek() };
        SIGNALS.iter().map(|signal| found.reading(signal, window)).collect()
    }

    fn stop(&mut self, window: Duration) -> Vec<Reading> {
        let tallies = self.session.stop();
        let found = FoundEvents { plan: &self.plan, tallies };
        let mut readings: Vec<Reading> =
            SIGNALS.iter().map(|signal| found.reading(signal, window)).collect();
        let cpus = found.of_each_cpu();
        readings.extend(cpus.iter().map(|cpu| cpu.reading(window)));
        readings.extend(of_cores(&cpus, &self.siblings).map(|value| {
            let mut reading = IPC_OF_CORES.reading(value, window);
            reading.scope = self.plan.scope;
            reading.source =
                format!("{CALL}: instructions of a core's threads / cycles of the busiest");
            reading
        }));
        readings.extend(found.extras(window));
        readings
    }
}

struct FoundEvents<'a> {
    plan: &'a CounterPlan,
    tallies: Vec<GroupCounts>,
}

/// A number with its source.
struct EventFigure {
    value: Result<f64, Unavailable>,
    source: String,
    uncore: bool,
}

impl FoundEvents<'_> {
    fn reading(&self, signal: &Signal, window: Duration) -> Reading {
        use PerfQuantity::{
            BranchMisses, Branches, Cycles, DtlbMisses, ItlbMisses, L1dMisses, L1iMisses, L2Misses,
            LlcMisses, LlcReferences,
        };
        let figure = match signal.name {
            "instructions" => self.of_both_modes(),
            "instructions.user" => self.sum(EventRole::UserInstructions),
            "instructions.kernel" => self.sum(EventRole::KernelInstructions),
            "cycles" => self.sum(EventRole::Of(Cycles)),
            "ipc" => self.ipc(),
            "branches" => self.sum(EventRole::Of(Branches)),
            "branch_misses" => self.sum(EventRole::Of(BranchMisses)),
            "branch_miss_ratio" => {
                self.quotient(EventRole::Of(BranchMisses), EventRole::Of(Branches), 1.0)
            }
            "l1d.misses" => self.sum(EventRole::Of(L1dMisses)),
            "l1i.misses" => self.sum(EventRole::Of(L1iMisses)),
            "l2.misses" => self.sum(EventRole::Of(L2Misses)),
            "llc.references" => self.sum(EventRole::Of(LlcReferences)),
            "llc.misses" => self.sum(EventRole::Of(LlcMisses)),
            "llc.miss_ratio" => {
                self.quotient(EventRole::Of(LlcMisses), EventRole::Of(LlcReferences), 1.0)
            }
            "dtlb.misses" => self.sum(EventRole::Of(DtlbMisses)),
            "itlb.misses" => self.sum(EventRole::Of(ItlbMisses)),
            "mpki.branch" => self.per_thousand(BranchMisses),
            "mpki.l1d" => self.per_thousand(L1dMisses),
            "mpki.l1i" => self.per_thousand(L1iMisses),
            "mpki.l2" => self.per_thousand(L2Misses),
            "mpki.llc" => self.per_thousand(LlcMisses),
            "mpki.dtlb" => self.per_thousand(DtlbMisses),
            "mpki.itlb" => self.per_thousand(ItlbMisses),
            _ => self.running(),
        };
        let mut reading = signal.reading(figure.value, window);
        reading.scope = if figure.uncore { Scope::Machine } else { self.plan.scope };
        if !figure.source.is_empty() {
            reading.source = format!("{}: {}", signal.source, figure.source);
        }
        reading
    }

    /// The groups that have a role, with their counts.
    fn groups(&self, slot: EventRole) -> impl Iterator<Item = (&PlannedGroup, &GroupCounts)> {
        let pairs = self.plan.groups.iter().zip(&self.tallies);
        pairs.filter(move |(planned, _)| planned.roles.contains(&slot))
    }

    fn why_absent(&self, slot: EventRole) -> Unavailable {
        let why = self.plan.absent.iter().find(|(of, _)| *of == slot).map(|(_, why)| why.clone());
        why.unwrap_or_else(|| {
            Unavailable::new("no event was planned for it", "name a raw event yourself")
        })
    }

    /// All of a quantity. Groups that repeat it count the same thing, units
    /// outside the cores each their own part.
    fn sum(&self, slot: EventRole) -> EventFigure {
        let mut groups: Vec<_> = self.groups(slot).collect();
        let apart = groups.first().is_some_and(|(planned, _)| planned.uncore);
        if !apart {
            groups.truncate(1);
        }
        let Some((first, _)) = groups.first() else {
            return EventFigure {
                value: Err(self.why_absent(slot)),
                source: String::new(),
                uncore: false,
            };
        };
        let source = source(first, slot);
        let value = groups.iter().map(|(planned, tally)| within(planned, tally, slot)).sum();
        EventFigure { value, source, uncore: apart }
    }

    /// Instructions of user mode and of the kernel, added.
    fn of_both_modes(&self) -> EventFigure {
        let user = self.sum(EventRole::UserInstructions);
        let kernel = self.sum(EventRole::KernelInstructions);
        let source = match (&user.value, &kernel.value) {
            (Ok(_), Ok(_)) => format!("{} + {}", user.source, kernel.source),
            _ => String::new(),
        };
        let value = user.value.and_then(|user| Ok(user + kernel.value?));
        EventFigure { value, source, uncore: false }
    }

    /// A quotient of two quantities of one group.
    fn quotient(&self, part: EventRole, of: EventRole, scale: f64) -> EventFigure {
        let groups: Vec<_> = self.groups(part).filter(|(p, _)| p.roles.contains(&of)).collect();
        let Some((first, _)) = groups.first() else {
            let missing = [part, of].into_iter().find(|slot| self.groups(*slot).next().is_none());
            let why = missing.map_or_else(
                || {
                    Unavailable::new(
                        "its two events do not cover the same CPUs: one is counted outside the \
                         cores, for the whole machine",
                        "count the machine and compare the two numbers by hand",
                    )
                },
                |slot| self.why_absent(slot),
            );
            return EventFigure { value: Err(why), source: String::new(), uncore: false };
        };
        let total = |slot: EventRole| -> Result<f64, Unavailable> {
            groups.iter().map(|(planned, tally)| within(planned, tally, slot)).sum()
        };
        let value = total(part).and_then(|part| divide(part * scale, total(of)?));
        let source = format!("{} / {}", source(first, part), source(first, of));
        EventFigure { value, source, uncore: first.uncore }
    }

    fn per_thousand(&self, quantity: PerfQuantity) -> EventFigure {
        self.quotient(EventRole::Of(quantity), EventRole::Of(PerfQuantity::Instructions), 1000.0)
    }

    /// Instructions a cycle, in the modes that are counted.
    fn ipc(&self) -> EventFigure {
        let cycles = EventRole::Of(PerfQuantity::Cycles);
        if self.plan.only_user.is_some() {
            return self.quotient(EventRole::UserInstructions, cycles, 1.0);
        }
        let user = self.quotient(EventRole::UserInstructions, cycles, 1.0);
        let kernel = self.quotient(EventRole::KernelInstructions, cycles, 1.0);
        let value = user.value.and_then(|user| Ok(user + kernel.value?));
        let of = |slot| self.groups(slot).next().map(|(group, _)| source(group, slot));
        let source =
            [EventRole::UserInstructions, EventRole::KernelInstructions].into_iter().filter_map(of);
        let parts: Vec<String> = source.collect();
        let source = match of(cycles) {
            Some(cycles) => format!("({}) / {cycles}", parts.join(" + ")),
            None => String::new(),
        };
        EventFigure { value, source, uncore: false }
    }

    /// The least share of the window in which a group had counters.
    fn running(&self) -> EventFigure {
        let shares = self.tallies.iter().flat_map(|tally| &tally.events);
        let shares = shares.filter_map(|event| event.as_ref().ok()).map(|event| event.running);
        let least = shares.reduce(f64::min).ok_or_else(|| {
            Unavailable::new("no event was counted", "see the reasons of the single events")
        });
        EventFigure {
            value: least,
            source: "time running / time enabled, of the group with the least".to_owned(),
            uncore: false,
        }
    }

    /// What each CPU counted, where CPUs are counted.
    fn of_each_cpu(&self) -> Vec<CpuCounts> {
        let cycles = EventRole::Of(PerfQuantity::Cycles);
        let Some((planned, tally)) = self.groups(cycles).find(|(planned, _)| !planned.uncore)
        else {
            return Vec::new();
        };
        let of =
            |counted: &[Result<CountedEvent, Unavailable>], wanted: &[EventRole]| {
                let pairs = planned.roles.iter().zip(counted);
                let matching = pairs.filter(|(slot, _)| wanted.contains(slot));
                matching
                    .map(|(_, counted)| counted.clone().map(|counted| counted.value))
                    .sum::<Result<f64, Unavailable>>()
            };
        let cpu = |(target, counted): &(PerfTarget, Vec<Result<CountedEvent, Unavailable>>)| {
            let PerfTarget::Cpu(cpu) = target else { return None };
            let roles = [EventRole::UserInstructions, EventRole::KernelInstructions];
            let counts = of(counted, &roles).and_then(|all| Ok((all, of(counted, &[cycles])?)));
            Some(CpuCounts { cpu: *cpu, counts })
        };
        tally.by_target.iter().filter_map(cpu).collect()
    }

    /// The user's own events, under their own names.
    fn extras(&self, window: Duration) -> Vec<Reading> {
        let extra = |(at, extra): (usize, &UserEvent)| {
            let figure = match &extra.event {
                Ok(_) => self.sum(EventRole::User(at)),
                Err(why) => EventFigure {
                    value: Err(why.clone()),
                    source: String::new(),
                    uncore: extra.uncore,
                },
            };
            let mut reading = EVENT.reading(figure.value, window);
            reading.signal = EVENT.name_of(&extra.name);
            reading.scope = if extra.uncore { Scope::Machine } else { self.plan.scope };
            if !figure.source.is_empty() {
                reading.source = format!("{CALL}: {}", figure.source);
            }
            reading
        };
        self.plan.user_events.iter().enumerate().map(extra).collect()
    }
}

/// Instructions and cycles of one CPU.
struct CpuCounts {
    cpu: u32,
    counts: Result<(f64, f64), Unavailable>,
}

impl CpuCounts {
    fn reading(&self, window: Duration) -> Reading {
        let counts = self.counts.clone();
        let value = counts.and_then(|(instructions, cycles)| divide(instructions, cycles));
        let mut reading = IPC_OF_CPU.reading(value, window);
        reading.signal = IPC_OF_CPU.name_of(&self.cpu.to_string());
        reading.source = format!("{CALL}: instructions / cycles of CPU {}", self.cpu);
        reading
    }
}

/// Instructions a cycle of the counted cores: those of all threads of a core over the cycles in
/// which it ran, for which those of its busiest thread stand. None where no CPU is counted, or the
/// kernel does not tell which threads share a core.
fn of_cores(cpus: &[CpuCounts], siblings: &[HardwareThread]) -> Option<Result<f64, Unavailable>> {
    let core_of = |cpu: u32| {
        let of = siblings.iter().find(|thread| thread.cpu == cpu)?;
        of.siblings.iter().min().copied()
    };
    let mut cores: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
    for CpuCounts { cpu, counts } in cpus {
        let core = core_of(*cpu)?;
        let (instructions, cycles) = match counts {
            Ok(counts) => *counts,
            Err(why) => return Some(Err(why.clone())),
        };
        let of = cores.entry(core).or_default();
        *of = (of.0 + instructions, of.1.max(cycles));
    }
    let all = cores.into_values().reduce(|a, b| (a.0 + b.0, a.1 + b.1))?;
    Some(divide(all.0, all.1))
}

/// The events of a slot in a group, as they are shown.
fn source(planned: &PlannedGroup, slot: EventRole) -> String {
    let pairs = planned.roles.iter().zip(&planned.group.events);
    let matching = pairs.filter(|(of, _)| **of == slot).map(|(_, event)| event.shown());
    matching.collect::<Vec<String>>().join(" + ")
}

/// The count of a role in a group, over all its events.
fn within(
    planned: &PlannedGroup,
    tally: &GroupCounts,
    slot: EventRole,
) -> Result<f64, Unavailable> {
    let pairs = planned.roles.iter().zip(&tally.events);
    let matching = pairs.filter(|(of, _)| **of == slot);
    matching.map(|(_, counted)| counted.clone().map(|counted| counted.value)).sum()
}

fn divide(part: f64, of: f64) -> Result<f64, Unavailable> {
    if of == 0.0 {
        return Err(Unavailable::new(
            "its divisor was counted zero times in the window",
            "measure for longer, or count where the load runs",
        ));
    }
    Ok(part / of)
}
