use std::time::Duration;

use model::Unavailable;
use model::signal::{
    SERVER_CPU, SERVER_CPU_SYSTEM, SERVER_CPU_USER, SERVER_INVOLUNTARY, SERVER_IO_READ,
    SERVER_IO_WRITTEN, SERVER_MAJOR_FAULTS, SERVER_MINOR_FAULTS, SERVER_READ_CALLS,
    SERVER_RESIDENT, SERVER_THREADS, SERVER_VOLUNTARY, SERVER_WRITE_CALLS, Signal, SignalWindow,
};

use super::figure::Figure;
use super::usage::{ThreadUsage, Usage};

/// Resource usage of a process between two snapshots.
#[derive(Debug, Clone)]
pub struct UsageDelta {
    pub window: Duration,
    pub figures: Vec<Figure>,
    /// The threads that lived at the end, the busiest first.
    pub threads: Vec<ThreadUsageDelta>,
    pub threads_started: usize,
    /// Threads of the first snapshot that are not in the second.
    pub threads_ended: usize,
}

/// Resource usage of one thread in the window, or since its start if that was later.
#[derive(Debug, Clone, PartialEq)]
pub struct ThreadUsageDelta {
    pub number: u32,
    pub name: String,
    /// Seconds on a CPU (`schedstat`).
    pub cpu_s: Result<f64, Unavailable>,
}

impl UsageDelta {
    /// The figure of this name, if available.
    pub fn value(&self, name: &str) -> Option<f64> {
        let figure = self.figures.iter().find(|figure| figure.name == name)?;
        figure.value.as_ref().ok().copied()
    }
}

impl Usage {
    /// The usage since an earlier snapshot of the same process.
    ///
    /// # Errors
    /// The two are of different processes, or the wrong way round.
    pub fn since(&self, earlier: &Usage) -> Result<UsageDelta, Unavailable> {
        if (self.pid, self.started) != (earlier.pid, earlier.started) || self.at < earlier.at {
            return Err(Unavailable::new(
                "two snapshots of different processes, or in the wrong order, have no difference",
                "take two snapshots of one process",
            ));
        }
        let threads = Threads::between(earlier, self);
        let mut used: Vec<ThreadUsageDelta> = threads
            .pairs
            .iter()
            .map(|(number, before, after)| ThreadUsageDelta {
                number: *number,
                name: after.name.clone(),
                cpu_s: since(before.map(|before| &before.on_cpu_ns), &after.on_cpu_ns)
                    .map(|nanoseconds| nanoseconds * 1e-9),
            })
            .collect();
        let busy =
            |thread: &ThreadUsageDelta| thread.cpu_s.as_ref().map_or(0.0, |seconds| *seconds);
        used.sort_by(|a, b| busy(b).total_cmp(&busy(a)));
        Ok(UsageDelta {
            window: self.at.duration_since(earlier.at),
            figures: figures(earlier, self, &threads),
            threads_started: threads.pairs.iter().filter(|(_, before, _)| before.is_none()).count(),
            threads_ended: threads.ended,
            threads: used,
        })
    }
}

/// The threads of two snapshots, matched.
struct Threads<'a> {
    pairs: Vec<(u32, Option<&'a ThreadUsage>, &'a ThreadUsage)>,
    ended: usize,
}

impl<'a> Threads<'a> {
    fn between(earlier: &'a Usage, later: &'a Usage) -> Self {
        let before = |number: &u32, after: &ThreadUsage| {
            earlier.threads.get(number).filter(|before| before.started == after.started)
        };
        let pairs: Vec<_> = later
            .threads
            .iter()
            .map(|(number, after)| (*number, before(number, after), after))
            .collect();
        let lived = pairs.iter().filter(|(_, before, _)| before.is_some()).count();
        Threads { pairs, ended: earlier.threads.len() - lived }
    }

    /// The sum over all threads of a count of each thread; counts of ended threads are lost.
    fn sum(
        &self,
        count: impl Fn(&ThreadUsage) -> &Result<u64, Unavailable>,
    ) -> Result<f64, Unavailable> {
        if self.ended > 0 {
            return Err(Unavailable::new(
                format!("{} threads ended in the window, and their counts with them", self.ended),
                "open the window after the server's threads have come up",
            ));
        }
        if self.pairs.is_empty() {
            return Err(Unavailable::new(
                "no thread of the process could be read",
                "run as the server's user, or as root",
            ));
        }
        self.pairs.iter().map(|(_, before, after)| since(before.map(&count), count(after))).sum()
    }
}

/// The growth of a count; of a thread that started in between, all of it.
fn since(
    before: Option<&Result<u64, Unavailable>>,
    after: &Result<u64, Unavailable>,
) -> Result<f64, Unavailable> {
    let after = after.as_ref().map_err(Unavailable::clone)?;
    let before = before.map_or(Ok(0), |before| before.clone())?;
    Ok(after.saturating_sub(before) as f64)
}

fn figures(earlier: &Usage, later: &Usage, threads: &Threads<'_>) -> Vec<Figure> {
    let rate = later.tick_rate as f64;
    let tick = format!("{} ms a tick, ended threads included", 1000.0 / rate);
    let ticks =
        |count: fn(&Usage) -> u64| Ok(count(later).saturating_sub(count(earlier)) as f64 / rate);
    let total = |count: fn(&Usage) -> u64| Ok(count(later).saturating_sub(count(earlier)) as f64);
    let io =
        |count: fn(&Usage) -> &Result<u64, Unavailable>| since(Some(count(earlier)), count(later));
    let figure = |signal: Signal, value, source: String| Figure {
        name: signal.name,
        value,
        unit: signal.unit,
        source,
        of_window: signal.covers == SignalWindow::Window,
    };
    let read = |signal: Signal, value| figure(signal, value, signal.source.to_owned());
    let ticked = |signal: Signal, count: fn(&Usage) -> u64| {
        figure(signal, ticks(count), format!("{}, {tick}", signal.source))
    };
    let (cpu, source) = cpu(earlier, later, threads, &tick);
    let resident = later.resident_bytes.clone().map(|bytes| bytes as f64);
    vec![
        figure(SERVER_CPU, cpu, source),
        ticked(SERVER_CPU_USER, |usage| usage.user_ticks),
        ticked(SERVER_CPU_SYSTEM, |usage| usage.system_ticks),
        read(SERVER_VOLUNTARY, threads.sum(|thread| &thread.voluntary_switches)),
        read(SERVER_INVOLUNTARY, threads.sum(|thread| &thread.involuntary_switches)),
        read(SERVER_MINOR_FAULTS, total(|usage| usage.minor_faults)),
        read(SERVER_MAJOR_FAULTS, total(|usage| usage.major_faults)),
        read(SERVER_READ_CALLS, io(|usage| &usage.read_calls)),
        read(SERVER_WRITE_CALLS, io(|usage| &usage.write_calls)),
        read(SERVER_IO_READ, io(|usage| &usage.read_bytes)),
        read(SERVER_IO_WRITTEN, io(|usage| &usage.written_bytes)),
        read(SERVER_RESIDENT, resident),
        read(SERVER_THREADS, Ok(later.thread_count as f64)),
    ]
}

/// CPU seconds from the finest source that covers the whole window.
fn cpu(
    earlier: &Usage,
    later: &Usage,
    threads: &Threads<'_>,
    tick: &str,
) -> (Result<f64, Unavailable>, String) {
    if let Ok(nanoseconds) = since(Some(&earlier.cpu_ns), &later.cpu_ns) {
        let source = "CPU clock of the process (clock_getcpuclockid), 1 ns, ended threads included";
        return (Ok(nanoseconds * 1e-9), source.to_owned());
    }
    if let Ok(nanoseconds) = threads.sum(|thread| &thread.on_cpu_ns) {
        let source = "/proc/PID/task/*/schedstat, 1 ns, up to a scheduler tick late a thread";
        return (Ok(nanoseconds * 1e-9), source.to_owned());
    }
    let ticks = |usage: &Usage| usage.user_ticks + usage.system_ticks;
    let seconds = ticks(later).saturating_sub(ticks(earlier)) as f64 / later.tick_rate as f64;
    (Ok(seconds), format!("/proc/PID/stat: utime + stime, {tick}"))
}
