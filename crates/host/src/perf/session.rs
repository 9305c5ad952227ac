//! Groups of events counted on several threads or CPUs over a window.

use model::Unavailable;
use model::signal::did_not_move;

use super::encoding::EncodedEvent;
use super::kernel::{Errno, PerfCount, PerfEvent, PerfHandle, PerfKernel, PerfTarget};

/// Events that share their time on the counters, so that quotients of them hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventGroup {
    pub events: Vec<EncodedEvent>,
    pub targets: Vec<PerfTarget>,
    /// Threads that a counted thread starts in the window are counted too.
    pub inherit: bool,
}

/// An event that the kernel would not open, and why.
pub type Refused = Unavailable;

/// The count of one event, scaled to the whole window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CountedEvent {
    pub value: f64,
    /// The share of the time in which it really counted. Below 1 the counters
    /// were multiplexed, and `value` is scaled up.
    pub running: f64,
    /// The time that it covers, summed over the targets.
    pub seconds: f64,
}

/// The counts of a group.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupCounts {
    /// Over all targets, in the order of the group's events.
    pub events: Vec<Result<CountedEvent, Unavailable>>,
    /// The same for each target.
    pub by_target: Vec<(PerfTarget, Vec<Result<CountedEvent, Unavailable>>)>,
}

/// Opened groups. They close when it is dropped.
pub struct PerfSession {
    kernel: Box<dyn PerfKernel>,
    groups: Vec<Open>,
}

struct Open {
    events: Vec<EncodedEvent>,
    /// For each event, why it is not counted.
    refused: Vec<Option<Refused>>,
    rows: Vec<TargetRow>,
}

/// The events of a group on one target.
struct TargetRow {
    target: PerfTarget,
    leader: PerfHandle,
    handles: Vec<Option<PerfHandle>>,
    before: Vec<Result<PerfCount, Unavailable>>,
}

impl PerfSession {
    /// Opens every event of every group. An event that the kernel refuses is left
    /// out and reported by [`PerfSession::stop`]; a thread that has ended is skipped.
    ///
    /// # Errors
    /// There are no descriptors left, or no target is left to count on.
    pub fn open(
        mut kernel: Box<dyn PerfKernel>,
        groups: &[EventGroup],
    ) -> Result<PerfSession, Unavailable> {
        let mut open = Vec::new();
        for group in groups {
            open.push(open_group(kernel.as_mut(), group)?);
        }
        Ok(PerfSession { kernel, groups: open })
    }

    /// Begins to count.
    pub fn start(&mut self) {
        for group in &mut self.groups {
            for row in &mut group.rows {
                row.before = read(self.kernel.as_mut(), &group.events, row);
                if let Err(errno) = self.kernel.switch(row.leader, true) {
                    let why = explain(errno, &group.events[0].text, group.events.len());
                    row.before = vec![Err(why); group.events.len()];
                }
            }
        }
    }

    /// The counts of each group since `start`, while it goes on counting: each event is read at its
    /// own instant.
    pub fn peek(&mut self) -> Vec<GroupCounts> {
        let kernel = self.kernel.as_mut();
        self.groups.iter().map(|group| tally(kernel, group)).collect()
    }

    /// Stops counting and returns the counts of each group since `start`, in order.
    pub fn stop(&mut self) -> Vec<GroupCounts> {
        // All stop before any is read, so that they cover the same time.
        for row in self.groups.iter().flat_map(|group| &group.rows) {
            // A lost leader shows when it is read.
            let _ = self.kernel.switch(row.leader, false);
        }
        let kernel = self.kernel.as_mut();
        self.groups.iter().map(|group| tally(kernel, group)).collect()
    }
}

fn open_group(kernel: &mut dyn PerfKernel, group: &EventGroup) -> Result<Open, Unavailable> {
    let mut refused: Vec<Option<Refused>> = vec![None; group.events.len()];
    let mut rows = Vec::new();
    'targets: for target in &group.targets {
        let mut leader = None;
        let mut handles = vec![None; group.events.len()];
        for (at, encoded) in group.events.iter().enumerate() {
            if refused[at].is_some() {
                continue;
            }
            let event = PerfEvent { encoded: encoded.clone(), inherit: group.inherit };
            match kernel.open(&event, *target, leader) {
                Ok(handle) => {
                    leader.get_or_insert(handle);
                    handles[at] = Some(handle);
                }
                Err(errno) if is(errno, nix::errno::Errno::ESRCH) => continue 'targets,
                Err(errno) if is(errno, nix::errno::Errno::EMFILE) => {
                    return Err(explain(errno, &encoded.text, group.events.len()));
                }
                Err(errno) => {
                    refused[at] = Some(explain(errno, &encoded.text, group.events.len()));
                }
            }
        }
        if let Some(leader) = leader {
            rows.push(TargetRow { target: *target, leader, handles, before: Vec::new() });
        }
    }
    if rows.is_empty() && refused.iter().any(Option::is_none) {
        return Err(Unavailable::new(
            "every thread to be counted has ended",
            "measure while the process runs",
        ));
    }
    Ok(Open { events: group.events.clone(), refused, rows })
}

fn read(
    kernel: &mut dyn PerfKernel,
    events: &[EncodedEvent],
    row: &TargetRow,
) -> Vec<Result<PerfCount, Unavailable>> {
    let look = |(handle, event): (&Option<PerfHandle>, &EncodedEvent)| match handle {
        Some(handle) => kernel.read(*handle).map_err(|errno| event_lost(errno, &event.text)),
        None => Err(Unavailable::new(format!("{} was not opened", event.text), "see its group")),
    };
    row.handles.iter().zip(events).map(look).collect()
}

/// The difference of one event on one target: count, enabled, running.
fn gained(
    event: &str,
    before: &Result<PerfCount, Unavailable>,
    after: &Result<PerfCount, Unavailable>,
) -> Result<PerfCount, Unavailable> {
    let (before, after) = (before.clone()?, after.clone()?);
    let back = |from: u64, to: u64| {
        to.checked_sub(from).ok_or_else(|| {
            Unavailable::new(
                format!("the counter {event} went back from {from} to {to}"),
                "repeat the run; if it happens again, the kernel or hypervisor resets this counter",
            )
        })
    };
    Ok(PerfCount {
        value: back(before.value, after.value)?,
        enabled_ns: back(before.enabled_ns, after.enabled_ns)?,
        running_ns: back(before.running_ns, after.running_ns)?,
    })
}

fn tally(kernel: &mut dyn PerfKernel, group: &Open) -> GroupCounts {
    let mut each = Vec::new();
    let mut columns: Vec<Vec<Result<PerfCount, Unavailable>>> =
        vec![Vec::new(); group.events.len()];
    for row in &group.rows {
        let after = read(kernel, &group.events, row);
        let mut counted = Vec::new();
        for (at, event) in group.events.iter().enumerate() {
            let gain = match &group.refused[at] {
                Some(why) => Err(why.clone()),
                None => row.before.get(at).map_or_else(
                    || Err(Unavailable::new("the counters were not started", "start them first")),
                    |before| gained(&event.text, before, &after[at]),
                ),
            };
            counted.push(gain.clone().and_then(|gain| scaled(&event.text, &[gain])));
            columns[at].push(gain);
        }
        each.push((row.target, counted));
    }
    let sum = |(at, column): (usize, Vec<Result<PerfCount, Unavailable>>)| {
        if let Some(why) = &group.refused[at] {
            return Err(why.clone());
        }
        let gains: Result<Vec<PerfCount>, Unavailable> = column.into_iter().collect();
        scaled(&group.events[at].text, &gains?)
    };
    let mut events: Vec<Result<CountedEvent, Unavailable>> =
        columns.into_iter().enumerate().map(sum).collect();
    // A hypervisor that offers counters without running them leaves all of a PMU at zero.
    if let Some(at) = (0..events.len()).find(|at| stands_still(group, *at, &events[*at])) {
        for counted in events.iter_mut().filter(|counted| is_zero(counted)) {
            *counted = Err(did_not_move(&group.events[at].text));
        }
    }
    GroupCounts { events, by_target: each }
}

/// A thread that ran so long, in seconds, was in user space too.
const MIN_USER_SPACE_S: f64 = 10e-3;

/// Whether an event that always happens counted zero while CPUs ran.
fn stands_still(group: &Open, at: usize, counted: &Result<CountedEvent, Unavailable>) -> bool {
    let event = &group.events[at];
    let ran_s = counted.as_ref().map_or(0.0, |counted| counted.seconds);
    // A thread's counter is on only while the thread runs, a CPU's also while the CPU sleeps.
    let threads = group.rows.iter().all(|row| matches!(row.target, PerfTarget::Thread(_)));
    let ran = match event.only_user || event.only_kernel {
        false => ran_s > 0.0,
        true => event.only_user && threads && ran_s >= MIN_USER_SPACE_S,
    };
    event.always && ran && is_zero(counted)
}

fn is_zero(counted: &Result<CountedEvent, Unavailable>) -> bool {
    counted.as_ref().is_ok_and(|counted| counted.value == 0.0)
}

/// Each target's count, scaled by its own share of time on the counters. A
/// target that was due and never got a counter is taken to be like the others.
fn scaled(event: &str, gains: &[PerfCount]) -> Result<CountedEvent, Unavailable> {
    let sum = |of: fn(&PerfCount) -> u64| gains.iter().map(of).sum::<u64>() as f64;
    let (enabled, running) = (sum(|gain| gain.enabled_ns), sum(|gain| gain.running_ns));
    if enabled == 0.0 {
        // No thread ran, so zero is the whole count.
        return Ok(CountedEvent { value: sum(|gain| gain.value), running: 1.0, seconds: 0.0 });
    }
    if running == 0.0 {
        return Err(Unavailable::new(
            format!("{event} never got a counter: other events use them"),
            "stop other profilers, set kernel.nmi_watchdog to 0, or name fewer events",
        ));
    }
    let on = || gains.iter().filter(|gain| gain.running_ns > 0);
    let value: f64 =
        on().map(|g| g.value as f64 * (g.enabled_ns as f64 / g.running_ns as f64)).sum();
    let counted_ns: f64 = on().map(|gain| gain.enabled_ns as f64).sum();
    Ok(CountedEvent {
        value: value * (enabled / counted_ns),
        running: running / enabled,
        seconds: enabled * 1e-9,
    })
}

fn is(errno: Errno, known: nix::errno::Errno) -> bool {
    errno.0 == known as i32
}

fn event_lost(errno: Errno, event: &str) -> Unavailable {
    Unavailable::new(
        format!("{event} could not be read any more: {errno}"),
        "keep its CPU online and other exclusive users of the counters away during a run",
    )
}

/// Explains the kernel's refusal (`perf_event_open(2)`, ERRORS).
fn explain(errno: Errno, event: &str, group: usize) -> Unavailable {
    use nix::errno::Errno as E;
    let (what, remedy) = match E::from_raw(errno.0) {
        E::EACCES | E::EPERM => (
            "the kernel or a sandbox forbids it".to_owned(),
            "run as root, give kvmeter CAP_PERFMON, or lower kernel.perf_event_paranoid; in a \
             container, allow perf_event_open in its seccomp profile",
        ),
        E::ENOENT => ("this CPU does not count such an event".to_owned(), "name another event"),
        E::EINVAL => (
            format!(
                "the CPU does not know the event, or a group of {group} does not fit its counters"
            ),
            "set kernel.nmi_watchdog to 0 to free a counter, or name another event",
        ),
        E::ENODEV | E::EOPNOTSUPP => (
            "its PMU is missing, or cannot do what the event needs".to_owned(),
            "measure on bare metal, or on an instance type that passes the counters on",
        ),
        E::EBUSY => {
            ("another user has exclusive use of the PMU".to_owned(), "stop the other profiler")
        }
        E::EMFILE => (
            "there are no file descriptors left: each event of each thread takes one".to_owned(),
            "raise the limit (ulimit -n), or count CPUs in place of threads",
        ),
        E::ENOSYS => {
            ("the kernel has no perf_event_open".to_owned(), "use a kernel with CONFIG_PERF_EVENTS")
        }
        _ => ("the kernel gives no further reason".to_owned(), "check the kernel log"),
    };
    Unavailable::new(format!("{event} was refused with {errno}: {what}"), remedy)
}
