//! The time of threads that are not on a CPU, from the records of their switches.

use std::collections::HashMap;

use model::ThreadState;

use crate::stacks::Addresses;

/// What happened to a thread, at a time in nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SwitchEvent {
    pub at: u64,
    pub pid: u32,
    pub thread: u32,
    pub kind: SwitchKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SwitchKind {
    /// The stack of a switch away that follows; it stands for so many.
    Stack(Addresses, u64),
    Out {
        preempted: bool,
    },
    In,
}

/// Where a thread left its CPU.
struct Away {
    since: u64,
    preempted: bool,
    stack: Option<(Addresses, u64)>,
}

/// Samples and nanoseconds of a stack.
pub(crate) type Spent = (u64, f64);

/// Adds up switches. Each thread's come in the order of their times, from several CPUs.
#[derive(Default)]
pub(crate) struct OffCpu {
    pending: Vec<SwitchEvent>,
    stacks: HashMap<u32, (Addresses, u64)>,
    away: HashMap<u32, Away>,
    /// By process and state: the exact time of all switches.
    totals: HashMap<(u32, ThreadState), u64>,
    /// The sampled ones, weighted.
    sampled: HashMap<(u32, ThreadState, Addresses), Spent>,
}

impl OffCpu {
    pub fn push(&mut self, event: SwitchEvent) {
        self.pending.push(event);
    }

    /// Adds up what happened before a time, of which all CPUs' records are there.
    pub fn process(&mut self, before: u64) {
        let (mut due, pending) =
            std::mem::take(&mut self.pending).into_iter().partition::<Vec<_>, _>(|e| e.at < before);
        self.pending = pending;
        due.sort_by_key(|event| event.at);
        due.into_iter().for_each(|event| self.happened(event));
    }

    fn happened(&mut self, SwitchEvent { at, pid, thread, kind }: SwitchEvent) {
        match kind {
            SwitchKind::Stack(stack, weight) => {
                self.stacks.insert(thread, (stack, weight));
            }
            SwitchKind::Out { preempted } => {
                let stack = self.stacks.remove(&thread);
                self.away.insert(thread, Away { since: at, preempted, stack });
            }
            SwitchKind::In => {
                let Some(away) = self.away.remove(&thread) else { return };
                let spent = at.saturating_sub(away.since);
                let state = match away.preempted {
                    true => ThreadState::Preempted,
                    false => ThreadState::Blocked,
                };
                *self.totals.entry((pid, state)).or_insert(0) += spent;
                if let Some((stack, weight)) = away.stack {
                    let known = self.sampled.entry((pid, state, stack)).or_insert((0, 0.0));
                    known.0 += 1;
                    known.1 += spent as f64 * weight as f64;
                }
            }
        }
    }

    /// The nanoseconds of each stack of a process: the sampled ones share the exact time of all.
    /// What was away at the end is left out, as what was away at the beginning is.
    pub fn of(&self, process: u32) -> Vec<(ThreadState, &Addresses, Spent)> {
        let mut found = Vec::new();
        for state in [ThreadState::Blocked, ThreadState::Preempted] {
            let own =
                self.sampled.iter().filter(|((pid, of, _), _)| (*pid, *of) == (process, state));
            let own: Vec<_> = own.collect();
            let sampled: f64 = own.iter().map(|(_, (_, spent))| spent).sum();
            let exact = self.totals.get(&(process, state)).copied().unwrap_or(0) as f64;
            let scale = if sampled > 0.0 { exact / sampled } else { 0.0 };
            found.extend(own.into_iter().map(|((_, _, stack), (samples, spent))| {
                (state, stack, (*samples, spent * scale))
            }));
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(at: u64, thread: u32, kind: SwitchKind) -> SwitchEvent {
        SwitchEvent { at, pid: 1, thread, kind }
    }

    #[test]
    fn sampled_stacks_share_the_exact_time() {
        let stack = |address| SwitchKind::Stack((vec![address], Vec::new()), 1);
        let mut off = OffCpu::default();
        // Records of two CPUs: the second one's come later, though they are earlier.
        off.push(event(30, 7, SwitchKind::In));
        off.push(event(10, 7, stack(5)));
        off.push(event(11, 7, SwitchKind::Out { preempted: false }));
        // Not sampled, as long.
        off.push(event(40, 7, SwitchKind::Out { preempted: false }));
        off.push(event(59, 7, SwitchKind::In));
        off.push(event(12, 8, SwitchKind::Out { preempted: true }));
        off.push(event(14, 8, SwitchKind::In));
        off.push(event(70, 8, SwitchKind::Out { preempted: true }));
        off.process(50);
        assert_eq!(off.of(1)[0].2, (1, 19.0));
        off.process(100);
        let found = off.of(1);
        assert_eq!(found, [(ThreadState::Blocked, &(vec![5], Vec::new()), (1, 38.0))]);
        assert_eq!(off.totals[&(1, ThreadState::Preempted)], 2);
    }
}
