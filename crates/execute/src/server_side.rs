//! The servers' side of a run: resource usage of their processes and latency inside them.

use std::sync::Arc;

use hdrhistogram::Histogram;
use model::signal::{
    NODE_CPU, SERVER_CONTEXT_SWITCHES, SERVER_CPU, SERVER_INVOLUNTARY, SERVER_LATENCY,
    SERVER_LATENCY_COST, SERVER_LATENCY_TIMED, SERVER_SYSCALLS, SERVER_VOLUNTARY, Signal,
};
use model::{Origin, Reading, ReadingValue, Scope, Unavailable};
use server::tap::Tap;
use server::watch::{Figure, Process, Usage};
use study::ServerTiming;
use syscall_trace::{CostWatch, Tracer};

use crate::started_server::Tapped;

/// Longest latency, as for the client's.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// The server processes that can be watched from here.
#[derive(Default)]
pub(crate) struct ServerSide {
    servers: Vec<WatchedServer>,
    /// Whether latency inside servers is measured.
    times_requests: bool,
    /// Why a server's process, or its latency, is unavailable.
    unwatched: Vec<(String, Unavailable)>,
}

struct WatchedServer {
    /// Its name among several.
    node: String,
    process: Process,
    tap: Option<Arc<Tap>>,
    /// Why the preloaded library does not work.
    tap_error: Option<Unavailable>,
    tracer: Option<Tracer>,
    window: Option<WindowStart>,
}

/// What was read when the window opened.
struct WindowStart {
    usage: Result<Usage, Unavailable>,
    tap: Option<tap::reader::Snapshot>,
    trace: Option<(syscall_trace::Snapshot, Option<CostWatch>)>,
}

/// Readings of a window.
#[derive(Default)]
pub(crate) struct WindowReadings {
    pub(crate) readings: Vec<Reading>,
    pub(crate) latency: Option<Histogram<u64>>,
    pub(crate) warnings: Vec<String>,
}

impl ServerSide {
    /// Of servers by name and address, each with what was preloaded into it, if it was started here.
    pub(crate) fn of<'a>(
        nodes: impl Iterator<Item = (String, &'a model::Address, Option<Tapped>)>,
    ) -> ServerSide {
        let mut side = ServerSide::default();
        for (node, address, tap) in nodes {
            match Process::listening_at(address) {
                // One process may listen at several addresses.
                Ok(process) if side.pids().contains(&process.pid()) => {}
                Ok(process) => {
                    let (tap, tap_error) = match tap {
                        Some(Ok(tap)) => (Some(tap), None),
                        Some(Err(why)) => (None, Some(why)),
                        None => (None, None),
                    };
                    let (tracer, window) = (None, None);
                    let watched = WatchedServer { node, process, tap, tap_error, tracer, window };
                    side.servers.push(watched);
                }
                Err(why) => side.unwatched.push((format!("server {address}"), why)),
            }
        }
        side
    }

    /// The CPUs that the servers here may run on, as far as they can be told.
    pub(crate) fn cpus(&self) -> Vec<u32> {
        let of = |watched: &WatchedServer| {
            affinity::of_process(watched.process.pid()).unwrap_or_default()
        };
        self.servers.iter().flat_map(of).collect()
    }

    /// The processes of the servers here.
    pub(crate) fn pids(&self) -> Vec<u32> {
        self.servers.iter().map(|watched| watched.process.pid()).collect()
    }

    /// Whether every server runs on this machine.
    pub(crate) fn are_here(&self) -> bool {
        self.unwatched.iter().all(|(about, _)| about == LATENCY)
    }

    /// Prepares for one run, before its load.
    pub(crate) fn prepare(&mut self, server_timing: ServerTiming, open: bool) {
        self.unwatched.retain(|(about, _)| about != LATENCY);
        self.times_requests = server_timing != ServerTiming::Off;
        for watched in &mut self.servers {
            watched.tracer = None;
            let traces = match server_timing {
                ServerTiming::Off | ServerTiming::Tap => false,
                ServerTiming::Ebpf => true,
                // A closed loop measures the peak rate, which tracing lowers.
                ServerTiming::Auto => watched.tap.is_none() && open,
            };
            if traces {
                match Tracer::attach(watched.process.pid()) {
                    Ok(tracer) => watched.tracer = Some(tracer),
                    Err(why) => {
                        let traced = Unavailable::from(why);
                        let why = match &watched.tap_error {
                            None => traced,
                            Some(why) => {
                                let reason = format!("{}; by eBPF: {}", why.reason, traced.reason);
                                Unavailable::new(reason, why.remedy.clone())
                            }
                        };
                        self.unwatched.push((LATENCY.to_owned(), why));
                    }
                }
            } else if watched.tap.is_none() && server_timing != ServerTiming::Off {
                let why = match (&watched.tap_error, server_timing) {
                    (Some(why), _) => why.clone(),
                    (None, ServerTiming::Tap) => Unavailable::new(
                        "the server runs already, and a library is preloaded when one starts",
                        "let kvmeter start it, or select `ebpf`",
                    ),
                    (None, _) => Unavailable::new(
                        "a closed loop measures the highest rate, which tracing would lower",
                        "select `ebpf` (--server-latency), or give a rate",
                    ),
                };
                self.unwatched.push((LATENCY.to_owned(), why));
            }
        }
    }

    pub(crate) fn begin(&mut self) {
        for watched in &mut self.servers {
            watched.window = Some(WindowStart {
                tap: watched.tap.as_ref().map(|tap| tap.snapshot()),
                trace: watched
                    .tracer
                    .as_ref()
                    .map(|tracer| (tracer.snapshot(), tracer.watch_cost().ok())),
                usage: watched.process.usage(),
            });
        }
    }

    /// The CPU time of all servers here in the open window; none where there is no server here.
    pub(crate) fn peek(&self) -> Option<Reading> {
        let mut window_s = 0.0;
        let used = self.servers.iter().map(|watched| {
            let before = watched.window.as_ref().and_then(|window| window.usage.as_ref().ok())?;
            let used = watched.process.usage().and_then(|after| after.since(before)).ok()?;
            window_s = used.window.as_secs_f64();
            used.figures.into_iter().find(|figure| figure.name == SERVER_CPU.name)?.value.ok()
        });
        let cpu_s = used.sum::<Option<f64>>().filter(|_| !self.servers.is_empty())?;
        Some(SERVER_CPU.answered(ReadingValue::Value(cpu_s), window_s))
    }

    pub(crate) fn end(&mut self) -> ServersSummary {
        let mut summary = ServersSummary::default();
        for watched in &mut self.servers {
            let Some(window) = watched.window.take() else { continue };
            summary.add(watched, window);
        }
        summary.unwatched.extend(self.unwatched.iter().cloned());
        summary.times_requests = self.times_requests;
        summary
    }
}

/// The mean latency inside the servers, or why there is none.
const LATENCY: &str = SERVER_LATENCY.name;

/// A reading with another source than the catalogue's.
fn of(signal: Signal, answer: ReadingValue, source: &str, window_s: f64) -> Reading {
    Reading { source: source.to_owned(), ..signal.answered(answer, window_s) }
}

fn unavailable(why: &Unavailable) -> ReadingValue {
    why.clone().into()
}

/// All servers of a run together, over its window.
#[derive(Default)]
pub(crate) struct ServersSummary {
    unwatched: Vec<(String, Unavailable)>,
    times_requests: bool,
    window_s: f64,
    figures: Vec<Figure>,
    /// CPU seconds of each server by name.
    cpu_s: Vec<(String, Result<f64, Unavailable>)>,
    latency: Option<Histogram<u64>>,
    calls: Option<(f64, &'static str)>,
    own_s: Option<(f64, &'static str)>,
    requests: u64,
    /// Intervals of batches whose requests could not be distinguished.
    opaque: u64,
    warnings: Vec<String>,
}

impl ServersSummary {
    fn add(&mut self, watched: &WatchedServer, window: WindowStart) {
        let used = window
            .usage
            .and_then(|before| watched.process.usage().and_then(|after| after.since(&before)));
        match used {
            Ok(used) => {
                self.window_s = used.window.as_secs_f64();
                for figure in used.figures {
                    if figure.name == SERVER_CPU.name {
                        self.cpu_s.push((watched.node.clone(), figure.value.clone()));
                    }
                    match self.figures.iter_mut().find(|other| other.name == figure.name) {
                        None => self.figures.push(figure),
                        Some(sum) => {
                            sum.value = match (sum.value.clone(), figure.value) {
                                (Ok(one), Ok(other)) => Ok(one + other),
                                (Err(why), _) | (_, Err(why)) => Err(why),
                            };
                        }
                    }
                }
            }
            Err(why) => {
                self.warnings.push(format!(
                    "the server's process cannot be watched to the end: {}; {}",
                    why.reason, why.remedy
                ));
                self.unwatched.push((format!("server {}", watched.process.name()), why));
            }
        }
        if let (Some(tap), Some(before)) = (&watched.tap, window.tap) {
            self.add_tap(&tap.snapshot().since(&before));
        }
        if let (Some(tracer), Some((before, watch))) = (&watched.tracer, window.trace) {
            let cost = watch.and_then(|watch| watch.cost(tracer).ok());
            self.add_trace(&tracer.snapshot().since(&before), cost);
        }
    }

    fn add_tap(&mut self, during: &tap::reader::Snapshot) {
        let totals = during.totals();
        for (value, count) in during.buckets() {
            self.record(value, count);
        }
        self.requests = self.requests.saturating_add(totals.requests);
        let calls = [totals.reads, totals.writes, totals.empty_calls, totals.wake_ups];
        let calls: f64 = calls.iter().map(|count| *count as f64).sum();
        let what = "reads, writes and waits of connections, as the preloaded library saw them";
        self.add_calls(calls, what);
        if let Some(own) = totals.own_ns() {
            let what = "the preloaded library's own time, from one call in 61";
            self.add_own(own * 1e-9, what);
        }
        self.opaque += totals.opaque;
    }

    fn add_trace(&mut self, during: &syscall_trace::Snapshot, cost: Option<syscall_trace::Cost>) {
        for (low, width, count) in during.latency.buckets() {
            self.record(low + width / 2, count);
        }
        self.requests += during.requests();
        self.add_calls(during.total_calls() as f64, "all system calls of the process (eBPF)");
        if let Some(cost) = cost {
            let what = "run time of the BPF programs, over all processes of the machine";
            self.add_own(cost.run_time_ns as f64 * 1e-9, what);
        }
    }

    fn record(&mut self, value_ns: u64, count: u64) {
        if self.latency.is_none() {
            self.latency = Histogram::new_with_max(LONGEST_NS, 3).ok();
        }
        if let Some(histogram) = &mut self.latency {
            histogram.saturating_record_n(value_ns, count);
        }
    }

    fn add_calls(&mut self, calls: f64, what: &'static str) {
        self.calls = Some((self.calls.map_or(0.0, |(sum, _)| sum) + calls, what));
    }

    fn add_own(&mut self, seconds: f64, what: &'static str) {
        self.own_s = Some((self.own_s.map_or(0.0, |(sum, _)| sum) + seconds, what));
    }

    /// Turns the summary into readings; `operations` were issued in the window.
    pub(crate) fn finish(mut self, operations: u64) -> WindowReadings {
        if self.opaque > 0 {
            self.warnings.push(format!(
                "{} of the server's intervals are of batches whose requests could not be \
                 distinguished",
                self.opaque
            ));
        }
        let window_s = self.window_s;
        // A sum over all servers needs each of them.
        let unseen = self.unwatched.iter().find(|(about, _)| about != LATENCY).cloned();
        let mut readings: Vec<Reading> = self
            .figures
            .iter()
            .map(|figure| {
                let answer = match (&unseen, &figure.value) {
                    (Some((_, why)), _) | (None, Err(why)) => unavailable(why),
                    (None, Ok(value)) => ReadingValue::Value(*value),
                };
                let window_s = if figure.of_window { window_s } else { 0.0 };
                Reading {
                    signal: figure.name.to_owned(),
                    answer,
                    unit: figure.unit,
                    scope: Scope::Server,
                    source: figure.source.clone(),
                    window_s,
                    origin: Origin::Measured,
                }
            })
            .collect();
        let switches = [SERVER_VOLUNTARY, SERVER_INVOLUNTARY]
            .map(|signal| readings.iter().find(|reading| reading.signal == signal.name));
        if let [Some(one), Some(other)] = switches {
            let answer = match (&one.answer, &other.answer) {
                (ReadingValue::Value(one), ReadingValue::Value(other)) => {
                    ReadingValue::Value(one + other)
                }
                (ReadingValue::Value(_), why) | (why, _) => why.clone(),
            };
            readings.push(SERVER_CONTEXT_SWITCHES.answered(answer, window_s));
        }
        if self.cpu_s.len() > 1 {
            readings.extend(self.cpu_s.iter().map(|(node, value)| {
                let answer = match value {
                    Ok(seconds) => ReadingValue::Value(*seconds),
                    Err(why) => unavailable(why),
                };
                let signal = NODE_CPU.name_of(node);
                Reading { signal, ..NODE_CPU.answered(answer, window_s) }
            }));
        }
        if let Some((about, why)) = unseen.filter(|_| readings.is_empty()) {
            readings.push(of(SERVER_CPU, unavailable(&why), &about, 0.0));
        }
        readings.extend(self.inside(operations));
        for signal in [SERVER_CPU, SERVER_CONTEXT_SWITCHES, SERVER_SYSCALLS] {
            let counted = readings.iter().find(|reading| reading.signal == signal.name);
            if let Some(per_mop) = counted.map(|reading| analyse::per_mop(reading, operations)) {
                readings.push(per_mop);
            }
        }
        WindowReadings { readings, latency: self.latency.take(), warnings: self.warnings }
    }

    /// Counts and latencies inside the servers: of all of them, or unavailable with the reason of the
    /// first missing one. Without an attachment the count is unavailable, not 0.
    fn inside(&mut self, operations: u64) -> Vec<Reading> {
        let is_watched = !self.figures.is_empty() || !self.unwatched.is_empty();
        if !self.times_requests || !is_watched {
            return Vec::new();
        }
        let window_s = self.window_s;
        // Prefers the reason of the latency itself.
        let mut why =
            self.unwatched.iter().find(|(about, _)| about == LATENCY).or(self.unwatched.first());
        let no_calls;
        if why.is_none() && operations > 0 && self.calls.is_none_or(|(calls, _)| calls == 0.0) {
            let reason = format!(
                "tracing saw no system call for {operations} requests: another process than the \
                 one that listens serves them, or it uses calls that are not traced (io_uring)"
            );
            let remedy = "let one process listen and serve, without io_uring";
            no_calls = (LATENCY.to_owned(), Unavailable::new(reason, remedy));
            why = Some(&no_calls);
        }
        if let Some((about, why)) = why {
            self.latency = None;
            return vec![
                of(SERVER_LATENCY, unavailable(why), about, 0.0),
                of(SERVER_SYSCALLS, unavailable(why), about, 0.0),
            ];
        }
        let mut readings = Vec::new();
        if let Some((calls, what)) = self.calls {
            let answer = ReadingValue::Value(calls);
            readings.push(of(SERVER_SYSCALLS, answer, what, window_s));
        }
        let timed = self.latency.as_ref().filter(|histogram| !histogram.is_empty());
        let (mean, count) = match timed {
            Some(histogram) => {
                (ReadingValue::Value(histogram.mean() * 1e-9), histogram.len() as f64)
            }
            None => {
                let why = Unavailable::new(
                    "no request was timed inside the server",
                    "measure for longer, or over a protocol whose requests can be distinguished",
                );
                (unavailable(&why), 0.0)
            }
        };
        readings.push(SERVER_LATENCY.answered(mean, window_s));
        readings.push(SERVER_LATENCY_TIMED.value(count, window_s));
        if let Some((seconds, what)) = self.own_s {
            let answer = ReadingValue::Value(seconds);
            readings.push(of(SERVER_LATENCY_COST, answer, what, window_s));
        }
        readings
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use model::Address;

    use super::*;

    #[test]
    fn a_process_at_two_addresses_counts_once() {
        let listeners = [0, 1].map(|_| TcpListener::bind("127.0.0.1:0").unwrap());
        let addresses = listeners
            .each_ref()
            .map(|own| Address::parse(&own.local_addr().unwrap().to_string(), 1).unwrap());
        let nodes = addresses.iter().map(|address| (address.to_string(), address, None));
        let side = ServerSide::of(nodes);
        assert_eq!((side.pids(), side.are_here()), (vec![std::process::id()], true));
    }
}
