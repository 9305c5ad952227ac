//! The CPUs that take interrupts (`Documentation/core-api/irq/irq-affinity.rst`).

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use model::{Unavailable, cpu_list};

use super::error::KnobRefusal;
use super::interrupts::{self, Counts, Interrupt};
use super::plan::KnobChange;
use super::proof::{ProofOutcome, Prove};
use super::target::{KnobTarget, TargetPart};
use super::write::KnobWrite;
use super::{Knob, KnobInfo};
use crate::facts::topology;
use crate::format;
use crate::root::Root;

/// The daemon that moves interrupts itself, every ten seconds.
const BALANCER: &str = "irqbalance";
/// Names and groups that a message lists at most.
const LISTED: usize = 12;

pub struct IrqAffinity;

impl Knob for IrqAffinity {
    fn info(&self) -> &'static KnobInfo {
        &KnobInfo {
            name: "irq_affinity",
            what: "the CPUs that take interrupts, of all devices or of some",
            mechanism: "/proc/irq/*/smp_affinity_list",
            scope: "every interrupt that can be moved, or those of LEVEL@DEVICE,...",
            proof: "the counts of /proc/interrupts rise on these CPUs and on no others",
        }
    }

    fn levels(&self, root: &Root) -> Result<Vec<String>, Unavailable> {
        let all = interrupts::all(root)?;
        let devices = some_of(&interrupts::devices(root, &all));
        let online = cpu_list::show(&topology::online(root)?);
        let form = format!(
            "CPUS or CPUS@DEVICE,... of CPUs {online} and of {devices}, a PCI address, an \
             interrupt's number or handler"
        );
        Ok(vec!["all".to_owned(), form])
    }

    fn read(&self, root: &Root) -> Result<String, Unavailable> {
        let mut groups: Vec<(String, Vec<u32>)> = Vec::new();
        for Interrupt { number, .. } in interrupts::all(root)?.iter().filter(|one| one.movable) {
            let list = root.value(&interrupts::file(*number))?;
            match groups.iter_mut().find(|(known, _)| *known == list) {
                Some((_, numbers)) => numbers.push(*number),
                None => groups.push((list, vec![*number])),
            }
        }
        if let [(list, _)] = groups.as_slice() {
            return Ok(list.clone());
        }
        let text = |(list, of): &(String, Vec<u32>)| format!("{list}@{}", cpu_list::show(of));
        let mut texts: Vec<String> = groups.iter().take(LISTED).map(text).collect();
        if groups.len() > LISTED {
            texts.push(format!("and {} more", groups.len() - LISTED));
        }
        match texts.is_empty() {
            true => Err(none_moves()),
            false => Ok(texts.join(" ")),
        }
    }

    fn plan(&self, root: &Root, level: &str) -> Result<KnobChange, KnobRefusal> {
        refuse_balancer(root)?;
        let all = interrupts::all(root)?;
        let (list, names) = match level.split_once('@') {
            Some((list, names)) => (list, Some(names)),
            None => (level, None),
        };
        let cpus = cpus(root, list)?;
        let (moved, fixed): (Vec<Interrupt>, Vec<Interrupt>) = match names {
            None => all.into_iter().partition(|interrupt| interrupt.movable),
            Some(names) => (of_devices(root, &all, names)?, Vec::new()),
        };
        if moved.is_empty() {
            return Err(none_moves().into());
        }
        let new = cpu_list::show(&cpus);
        let mut writes = Vec::new();
        for interrupt in &moved {
            let place = KnobTarget::of(interrupts::file(interrupt.number), TargetPart::Interrupt);
            writes.extend(KnobWrite::turn(root, place, new.clone())?);
        }
        let named = names.is_some();
        Ok(KnobChange { writes, prove: Watch { moved, fixed, cpus, named }.prove() })
    }
}

fn none_moves() -> Unavailable {
    Unavailable::new(
        "the kernel lets no interrupt be moved: their drivers manage them",
        "choose the CPUs of the load instead (knob cpus), or the number of queues of the device",
    )
}

/// At most [`LISTED`] of these names.
fn some_of(names: &[String]) -> String {
    let more = names.len().saturating_sub(LISTED);
    let shown = names[..names.len() - more].join(", ");
    match (names.is_empty(), more) {
        (true, _) => "no device by name".to_owned(),
        (_, 0) => shown,
        _ => format!("{shown} and {more} more"),
    }
}

/// A level holds only while no other program moves interrupts.
fn refuse_balancer(root: &Root) -> Result<(), Unavailable> {
    let runs = |process: &u32| {
        root.value(&format!("/proc/{process}/comm")).is_ok_and(|name| name == BALANCER)
    };
    match root.numbers("/proc").unwrap_or_default().into_iter().find(runs) {
        None => Ok(()),
        Some(process) => Err(Unavailable::new(
            format!("{BALANCER} (process {process}) runs and would move the interrupts again"),
            format!("stop it while you measure: `systemctl stop {BALANCER}`"),
        )),
    }
}

fn cpus(root: &Root, list: &str) -> Result<Vec<u32>, KnobRefusal> {
    let online = topology::online(root)?;
    if list == "all" {
        return Ok(online);
    }
    let cpus = cpu_list::parse(list).filter(|cpus| !cpus.is_empty()).ok_or_else(|| {
        KnobRefusal::Level(format!("`{list}` is not a list of CPUs such as 0-3,8"))
    })?;
    match cpus.iter().find(|cpu| !online.contains(cpu)) {
        Some(cpu) => Err(KnobRefusal::Level(format!("CPU {cpu} is not online"))),
        None => Ok(cpus),
    }
}

/// The interrupts of some devices; refused where a name has none, or one that cannot be moved.
fn of_devices(root: &Root, all: &[Interrupt], names: &str) -> Result<Vec<Interrupt>, KnobRefusal> {
    let mut numbers = BTreeSet::new();
    for name in names.split(',').map(str::trim) {
        let found = interrupts::named(root, all, name);
        if found.is_empty() {
            let known = some_of(&interrupts::devices(root, all));
            let why = format!("no interrupt belongs to `{name}`; there are those of {known}");
            return Err(KnobRefusal::Level(why));
        }
        numbers.extend(found);
    }
    let chosen: Vec<Interrupt> =
        all.iter().filter(|interrupt| numbers.contains(&interrupt.number)).cloned().collect();
    let fixed: Vec<String> =
        chosen.iter().filter(|one| !one.movable).map(Interrupt::label).collect();
    match fixed.is_empty() {
        true => Ok(chosen),
        false => Err(KnobRefusal::Level(format!(
            "the driver manages {} and the kernel refuses to move such interrupts; name others by \
             number or handler",
            some_of(&fixed)
        ))),
    }
}

/// How long interrupts may keep away, and how long is watched where they come.
const LIMIT: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(100);
const PAUSE: Duration = Duration::from_millis(10);
/// The kernel may move an interrupt when it next arrives, and that one is still taken where the
/// interrupt was.
const LAST_OF_OLD: u64 = 1;

/// What the proof observes.
struct Watch {
    moved: Vec<Interrupt>,
    /// Those that cannot be moved and stay where they are.
    fixed: Vec<Interrupt>,
    cpus: Vec<u32>,
    /// Whether the user named devices.
    named: bool,
}

impl Watch {
    fn prove(self) -> Prove {
        Box::new(move |root| {
            // Kernels before 6.11 refuse a write to a managed interrupt only when it is made.
            let list = cpu_list::show(&self.cpus);
            let (at, kept): (Vec<&Interrupt>, Vec<&Interrupt>) =
                self.moved.iter().partition(|one| {
                    root.value(&interrupts::file(one.number)).is_ok_and(|now| now == list)
                });
            let stay = stay(self.fixed.iter().chain(kept.iter().copied()));
            if at.is_empty() || (self.named && !kept.is_empty()) {
                return ProofOutcome::Refuted(stay);
            }
            let numbers: Vec<u32> = at.iter().map(|interrupt| interrupt.number).collect();
            match self.observe(root, &numbers) {
                Ok(gained) => self.judge(&at, &gained, &stay),
                Err(error) => ProofOutcome::Unverified(error.to_string()),
            }
        })
    }

    /// What was counted since the interrupts were moved.
    fn observe(&self, root: &Root, numbers: &[u32]) -> Result<Counts, crate::root::RootError> {
        let before = interrupts::counts(root, numbers)?;
        let start = Instant::now();
        loop {
            std::thread::sleep(PAUSE);
            let gained = gained(&before, interrupts::counts(root, numbers)?);
            let came = gained.iter().flat_map(|(_, of)| of).any(|(_, count)| *count > 0);
            let waited = start.elapsed();
            if waited > LIMIT || (came && waited > LOOK) {
                return Ok(gained);
            }
        }
    }

    fn judge(&self, at: &[&Interrupt], gained: &Counts, stay: &str) -> ProofOutcome {
        let on_chosen = |cpu: &u32| self.cpus.contains(cpu);
        let (mut here, mut elsewhere, mut came) = (0, 0, 0);
        let (mut strays, mut others) = (Vec::new(), BTreeSet::new());
        for (number, counts) in gained {
            let (mut on, mut off) = (0, 0);
            for (cpu, count) in counts {
                if on_chosen(cpu) {
                    on += count;
                } else {
                    others.insert(*cpu);
                    off += count;
                }
            }
            if off > LAST_OF_OLD {
                let label = at.iter().find(|one| one.number == *number).map(|one| one.label());
                strays.push(format!("{} came {off} times", label.unwrap_or_default()));
            }
            here += on;
            elsewhere += off;
            came += usize::from(on > 0);
        }
        let on = format!("CPUs {}", cpu_list::show(&self.cpus));
        if !strays.is_empty() {
            return ProofOutcome::Refuted(format!("outside of {on}: {}", some_of(&strays)));
        }
        let tail = if stay.is_empty() { String::new() } else { format!("; {stay}") };
        if here == 0 {
            let count = format::count(at.len(), "interrupt");
            return ProofOutcome::Unverified(format!(
                "none of {count} came within {} s{tail}",
                LIMIT.as_secs()
            ));
        }
        if others.is_empty() {
            return ProofOutcome::Unverified(format!(
                "{on} are all that are online, so that no interrupt can come elsewhere{tail}"
            ));
        }
        let others: Vec<u32> = others.into_iter().collect();
        ProofOutcome::Proven(format!(
            "{came} of {} came, {here} times on {on} and {elsewhere} times on CPUs {}{tail}",
            format::count(at.len(), "interrupt"),
            cpu_list::show(&others)
        ))
    }
}

fn gained(before: &Counts, now: Counts) -> Counts {
    let before_of = |number: u32, cpu: u32| {
        let counts = before.iter().find(|(known, _)| *known == number);
        let count = counts.and_then(|(_, of)| of.iter().find(|(known, _)| *known == cpu));
        count.map_or(0, |(_, count)| *count)
    };
    let of = |(number, counts): (u32, Vec<(u32, u64)>)| {
        let one = |(cpu, count): (u32, u64)| (cpu, count.saturating_sub(before_of(number, cpu)));
        (number, counts.into_iter().map(one).collect())
    };
    now.into_iter().map(of).collect()
}

/// The sentence on interrupts that keep their CPUs.
fn stay<'a>(fixed: impl Iterator<Item = &'a Interrupt>) -> String {
    let labels: Vec<String> = fixed.map(Interrupt::label).collect();
    match labels.len() {
        0 => String::new(),
        1 => format!("{} stays: its driver manages it", labels[0]),
        _ => format!("{} stay: their drivers manage them", some_of(&labels)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interrupt(number: u32) -> Interrupt {
        Interrupt { number, actions: format!("queue{number}"), movable: true }
    }

    #[test]
    fn one_interrupt_may_still_come_where_it_was() {
        let all = [interrupt(7), interrupt(8)];
        let at: Vec<&Interrupt> = all.iter().collect();
        let watch = Watch { moved: all.to_vec(), fixed: Vec::new(), cpus: vec![1], named: true };
        let judge = |of_7: [u64; 2], of_8: [u64; 2]| {
            let counts = |counts: [u64; 2]| vec![(0, counts[0]), (1, counts[1])];
            watch.judge(&at, &vec![(7, counts(of_7)), (8, counts(of_8))], "")
        };
        let seen = "1 of 2 interrupts came, 5 times on CPUs 1 and 1 times on CPUs 0";
        assert_eq!(judge([1, 5], [0, 0]), ProofOutcome::Proven(seen.to_owned()));
        let seen = "outside of CPUs 1: 8 (queue8) came 2 times";
        assert_eq!(judge([1, 5], [2, 5]), ProofOutcome::Refuted(seen.to_owned()));
        assert!(matches!(judge([1, 0], [0, 0]), ProofOutcome::Unverified(_)));
    }

    #[test]
    fn counts_are_of_the_time_since_the_first_look() {
        let before = vec![(7, vec![(0, 10), (1, 20)])];
        // CPU 2 and interrupt 8 came meanwhile.
        let now = vec![(7, vec![(0, 11), (1, 20), (2, 3)]), (8, vec![(0, 4)])];
        let expected = vec![(7, vec![(0, 1), (1, 0), (2, 3)]), (8, vec![(0, 4)])];
        assert_eq!(gained(&before, now), expected);
    }
}
