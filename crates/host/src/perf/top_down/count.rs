//! Counts the slots of processes over a window.

use model::{ProfiledSide, ReadingValue, SlotEvent, TopDown, Unavailable};

use super::shares::{TopDownCounts, shares};
use super::table::TopDownTable;
use crate::perf::encoding::{EncodedEvent, encode, named};
use crate::perf::kernel::{PerfKernel, PerfTarget, RunningKernel};
use crate::perf::privilege::Privilege;
use crate::perf::session::{EventGroup, GroupCounts, PerfSession};
use crate::perf::table::{CoreEvents, RawEvent, core};
use crate::root::Root;
use crate::unavailable::live_only;

/// Programs of one name, whose slots are counted together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CountedProcess {
    pub side: ProfiledSide,
    pub name: String,
    pub pids: Vec<u32>,
}

/// The events of a machine's table, decided from files alone.
#[derive(Debug, Clone)]
pub struct TopDownPlan {
    table: &'static TopDownTable,
    /// The table's groups.
    groups: Vec<Vec<Result<EncodedEvent, Unavailable>>>,
    user_only: bool,
}

impl TopDownPlan {
    /// The plan for the cores here.
    ///
    /// # Errors
    /// There is no PMU, cores are of two kinds, there are no formulas for them, no event may be
    /// counted, or the PMU has none of those that lead a group.
    pub fn here(root: &Root) -> Result<TopDownPlan, Unavailable> {
        let core = core(root)?;
        let table = TopDownTable::here(root, &core)?;
        let privilege = Privilege::of(root)?;
        privilege.user_mode()?;
        let user_only = privilege.kernel_mode().is_err();
        let encoded = |raw: &RawEvent| -> Result<EncodedEvent, Unavailable> {
            let mut event = encoded(root, &core, raw)?;
            event.label = Some(raw.name);
            Ok(if user_only { event.user() } else { event })
        };
        let group = |events: &&[RawEvent]| {
            let mut group: Vec<_> = events.iter().map(encoded).collect();
            if let Some(leader) = group.first_mut() {
                *leader = leader.clone().map(EncodedEvent::always);
            }
            group
        };
        let groups: Vec<Vec<_>> = table.groups.iter().map(group).collect();
        let leaders: Result<Vec<_>, _> =
            groups.iter().filter_map(|group| group.first()).cloned().collect();
        leaders?;
        Ok(TopDownPlan { table, groups, user_only })
    }

    /// Counts the threads of processes with the running kernel from [`TopDownSession::start`] on.
    ///
    /// # Errors
    /// The root is not the running machine's.
    pub fn open(
        &self,
        root: &Root,
        processes: Vec<CountedProcess>,
    ) -> Result<TopDownSession, Unavailable> {
        match root.is_live() {
            true => Ok(self.open_with(root, processes, &|| Box::<RunningKernel>::default())),
            false => Err(live_only("perf_event_open")),
        }
    }

    /// As [`TopDownPlan::open`], with a kernel for each process.
    pub fn open_with(
        &self,
        root: &Root,
        processes: Vec<CountedProcess>,
        kernel: &dyn Fn() -> Box<dyn PerfKernel>,
    ) -> TopDownSession {
        let open = |process: CountedProcess| {
            let session = threads(root, &process.pids).and_then(|threads| {
                let groups = self.groups.iter().map(|events| EventGroup {
                    events: events.iter().filter_map(|event| event.clone().ok()).collect(),
                    targets: threads.iter().copied().map(PerfTarget::Thread).collect(),
                    inherit: true,
                });
                PerfSession::open(kernel(), &groups.collect::<Vec<_>>())
            });
            (process, session)
        };
        let sessions = processes.into_iter().map(open).collect();
        TopDownSession { plan: self.clone(), sessions }
    }

    /// The counts of all events of the table, those that were not opened with their reasons.
    fn counts(&self, session: &mut PerfSession) -> TopDownCounts {
        let counted = session.stop();
        let group = |(events, counted): (&Vec<Result<EncodedEvent, Unavailable>>, GroupCounts)| {
            let mut counted = counted.events.into_iter();
            let count = |event: &Result<EncodedEvent, Unavailable>| match event {
                Ok(event) => counted.next().unwrap_or_else(|| {
                    Err(Unavailable::new(format!("{} was not opened", event.text), "try again"))
                }),
                Err(why) => Err(why.clone()),
            };
            events.iter().map(count).collect()
        };
        self.groups.iter().zip(counted).map(group).collect()
    }

    fn top_down(&self, process: CountedProcess, counts: &TopDownCounts) -> TopDown {
        let all = self.groups.iter().zip(counts);
        let all = all.flat_map(|(events, counts)| events.iter().zip(counts));
        let events = all.filter_map(|(event, count)| {
            let event = event.as_ref().ok()?.shown();
            let running = count.as_ref().map_or(0.0, |count| count.running);
            let count = count.clone().map(|count| ReadingValue::Value(count.value));
            Some(SlotEvent { event, count: count.unwrap_or_else(Into::into), running })
        });
        TopDown {
            side: process.side,
            process: process.name,
            cpu: self.table.name.to_owned(),
            source: self.table.source.to_owned(),
            user_only: self.user_only,
            shares: shares(self.table, counts),
            events: events.collect(),
        }
    }
}

/// The processes' counters.
pub struct TopDownSession {
    plan: TopDownPlan,
    sessions: Vec<(CountedProcess, Result<PerfSession, Unavailable>)>,
}

impl TopDownSession {
    /// Begins to count.
    pub fn start(&mut self) {
        for session in self.sessions.iter_mut().filter_map(|(_, session)| session.as_mut().ok()) {
            session.start();
        }
    }

    /// Stops counting: what became of the slots of each process, or why it is not known.
    pub fn stop(self) -> Vec<(String, Result<TopDown, Unavailable>)> {
        let plan = self.plan;
        let of = |(process, session): (CountedProcess, Result<PerfSession, Unavailable>)| {
            let name = process.name.clone();
            let top_down = session.map(|mut session| {
                let counts = plan.counts(&mut session);
                plan.top_down(process, &counts)
            });
            (name, top_down)
        };
        self.sessions.into_iter().map(of).collect()
    }
}

fn encoded(root: &Root, core: &CoreEvents, raw: &RawEvent) -> Result<EncodedEvent, Unavailable> {
    // The kernel lists the common events of Arm, not those from 0x8000 on.
    if !raw.terms.starts_with("event=0x8") {
        core.implements(root, raw)?;
    }
    match raw.terms.contains('=') {
        true => encode(root, &core.pmu, raw.terms),
        // The kernel names the events of Intel's register of metrics.
        false => named(root, &core.pmu, raw.terms),
    }
}

fn threads(root: &Root, pids: &[u32]) -> Result<Vec<u32>, Unavailable> {
    let mut all = Vec::new();
    for pid in pids {
        all.extend(root.numbers(&format!("/proc/{pid}/task"))?);
    }
    Ok(all)
}
