//! Sampling of running processes, by a thread of its own.

use std::collections::HashMap;
use std::fs;
use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use model::{ProfiledSide, RunProfile, SampleClock, Stack, cpu_list};

use crate::error::ProfileError;
use crate::kernel::KernelPrograms;
use crate::off_cpu::{OffCpu, SwitchEvent, SwitchKind};
use crate::record::PerfRecord;
use crate::stacks::SampledProcess;
use crate::symbols::KernelSymbols;
use crate::sys::{
    EventKind, REGISTER_COUNT, RecordRing, SampleEvent, Trigger, monotonic, own_thread,
};
use crate::tcp::Connections;
use crate::unwind::Files;

/// How often the rings are emptied: they hold some seconds.
const LOOK: Duration = Duration::from_millis(20);
/// Stacks of switches that are taken between two looks: some thousand a second.
const SWITCH_STACKS: u64 = 50;
/// Each so manieth switch has its stack taken, until their rate is known.
const FIRST_SWITCH_PERIOD: u64 = 64;
/// Stacks of a profile at most, which are some MB in a file.
const MOST_STACKS: usize = 4000;
/// The name of the rest.
const OTHERS: &str = "[other stacks]";
const PARANOID: &str = "/proc/sys/kernel/perf_event_paranoid";

/// A process to sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    pub pid: u32,
    pub side: ProfiledSide,
    /// How it is called: `memcached`.
    pub name: String,
}

/// Samples processes until it is stopped.
pub struct Profiler {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<RunProfile>,
}

/// Whether this user may sample processes here.
///
/// # Errors
/// Why not.
pub fn check() -> Result<(), ProfileError> {
    if REGISTER_COUNT == 0 {
        return Err(ProfileError::Architecture);
    }
    possible(own_thread(), online()[0], 1).map(|_| ())
}

impl Profiler {
    /// Samples processes so many times a second of CPU time of each thread. The calling thread is
    /// left out, with those that it starts afterwards: it waits for the end of the measurement.
    ///
    /// # Errors
    /// Why they cannot be sampled.
    pub fn start(targets: Vec<Target>, frequency: u64) -> Result<Profiler, ProfileError> {
        let stop = Arc::new(AtomicBool::new(false));
        let (began, begins) = mpsc::channel();
        let stopped = Arc::clone(&stop);
        let caller = own_thread();
        // It opens the events itself, so that it can leave itself out.
        let thread = thread::spawn(move || match Sampling::begin(targets, caller, frequency) {
            Ok(sampling) => {
                let _ = began.send(Ok(()));
                sampling.run(&stopped)
            }
            Err(error) => {
                let _ = began.send(Err(error));
                empty(frequency)
            }
        });
        let ended = || ProfileError::Kernel { step: "sampling", error: ErrorKind::Other.into() };
        begins.recv().unwrap_or_else(|_| Err(ended()))?;
        Ok(Profiler { stop, thread })
    }

    /// Ends sampling and finds the names of the functions; the operations are the caller's to add.
    /// None where its thread has failed.
    pub fn stop(self) -> Option<RunProfile> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().ok()
    }
}

fn empty(frequency: u64) -> RunProfile {
    RunProfile {
        clock: SampleClock::Software,
        frequency,
        kernel: false,
        seconds: 0.0,
        operations: 0,
        lost: 0,
        stacks: Vec::new(),
        counts: None,
        top_down: None,
    }
}

struct Sampling {
    kind: EventKind,
    events: Vec<SampleEvent>,
    /// The events from here on are of switches.
    first_switch_event: usize,
    switch_period: u64,
    /// Of CPU time, and of switches where they can be seen.
    rings: Vec<RecordRing>,
    switch_rings: Vec<RecordRing>,
    processes: HashMap<u32, SampledProcess>,
    off_cpu: OffCpu,
    /// When the rings were last emptied.
    looked: u64,
    files: Files,
    lost: u64,
    programs: KernelPrograms,
    connections: Connections,
}

impl Sampling {
    fn begin(targets: Vec<Target>, caller: u32, frequency: u64) -> Result<Sampling, ProfileError> {
        if REGISTER_COUNT == 0 {
            return Err(ProfileError::Architecture);
        }
        let mut threads = Vec::new();
        for target in &targets {
            threads.extend(threads_of(target.pid, &[caller, own_thread()])?);
        }
        let first = *threads.first().ok_or(ProfileError::NoProcess(0))?;
        let cpus = online();
        let kind = possible(first, cpus[0], frequency)?;
        let mut events = Vec::new();
        let rings = open(kind, &threads, &cpus, &mut events)?;
        let first_switch_event = events.len();
        let trigger = Trigger::Switches { period: FIRST_SWITCH_PERIOD };
        let switch_rings = match kind.kernel {
            // A switch happens inside the kernel.
            true => open(EventKind { trigger, ..kind }, &threads, &cpus, &mut events)?,
            false => Vec::new(),
        };
        let mut files = Files::new();
        // The programs are loaded before the events begin, which need nearly no time to begin.
        let connections = Connections::new(&targets);
        let programs = KernelPrograms::start(&targets, &[caller, own_thread()]);
        let processes = targets.into_iter().map(|Target { pid, side, name }| {
            (pid, SampledProcess::new(pid, side, name, &mut files))
        });
        let processes = processes.collect();
        for event in &events {
            event.switch(true).map_err(kernel("starting an event"))?;
        }
        Ok(Sampling {
            kind,
            events,
            first_switch_event,
            switch_period: FIRST_SWITCH_PERIOD,
            rings,
            switch_rings,
            processes,
            off_cpu: OffCpu::default(),
            looked: 0,
            files,
            lost: 0,
            programs,
            connections,
        })
    }

    fn run(mut self, stop: &AtomicBool) -> RunProfile {
        let began = Instant::now();
        while !stop.load(Ordering::Relaxed) {
            thread::sleep(LOOK);
            self.take();
            self.connections.look_if_due();
        }
        let programs = std::mem::take(&mut self.programs);
        let mut counts = programs.end();
        for event in &self.events {
            // One that cannot be stopped ends with its descriptor.
            let _ = event.switch(false);
        }
        let seconds = began.elapsed().as_secs_f64();
        self.take();
        self.off_cpu.process(u64::MAX);
        std::mem::take(&mut self.connections).end(&mut counts);
        RunProfile { counts: Some(counts), ..self.end(seconds) }
    }

    fn take(&mut self) {
        let Sampling { rings, switch_rings, processes, files, off_cpu, lost, .. } = self;
        // What came before is in the rings by now, whichever CPU it happened on.
        let now = monotonic();
        for ring in rings {
            ring.take(|bytes| match PerfRecord::of(bytes) {
                PerfRecord::Sample(sample) => {
                    if let Some(process) = processes.get_mut(&sample.pid) {
                        let stack = process.stack(sample, files);
                        process.add(stack);
                    }
                }
                PerfRecord::Lost(count) => *lost += count,
                PerfRecord::Switch { .. } | PerfRecord::Other => {}
            });
        }
        let mut switches = 0;
        for ring in switch_rings {
            ring.take(|bytes| match PerfRecord::of(bytes) {
                PerfRecord::Sample(sample) => {
                    if let Some(process) = processes.get_mut(&sample.pid) {
                        let (at, pid, thread) = (sample.at, sample.pid, sample.thread);
                        let weight = sample.period;
                        let kind = SwitchKind::Stack(process.stack(sample, files), weight);
                        off_cpu.push(SwitchEvent { at, pid, thread, kind });
                    }
                }
                PerfRecord::Switch { at, pid, thread, out } => {
                    let kind = match out {
                        Some(preempted) => {
                            switches += 1;
                            SwitchKind::Out { preempted }
                        }
                        None => SwitchKind::In,
                    };
                    off_cpu.push(SwitchEvent { at, pid, thread, kind });
                }
                PerfRecord::Lost(count) => *lost += count,
                PerfRecord::Other => {}
            });
        }
        off_cpu.process(self.looked);
        self.looked = now;
        self.adapt(switches);
    }

    /// Takes the stacks of fewer switches where there are many, of all where there are few.
    fn adapt(&mut self, switches: u64) {
        let period = (switches / SWITCH_STACKS).max(1);
        if period < self.switch_period.div_ceil(2) || period > self.switch_period * 2 {
            let events = &self.events[self.first_switch_event..];
            if events.iter().all(|event| event.set_period(period).is_ok()) {
                self.switch_period = period;
            }
        }
    }

    fn end(self, seconds: f64) -> RunProfile {
        let kernel = KernelSymbols::read();
        let sample_s = 1.0 / self.kind.frequency.max(1) as f64;
        let mut stacks: Vec<_> = self
            .processes
            .iter()
            .flat_map(|(pid, process)| process.named(*pid, sample_s, &self.off_cpu, &kernel))
            .collect();
        stacks
            .sort_by(|a, b| b.seconds.total_cmp(&a.seconds).then_with(|| a.frames.cmp(&b.frames)));
        RunProfile {
            stacks: most(stacks),
            clock: match self.kind.trigger {
                Trigger::Cycles => SampleClock::Cycles,
                Trigger::Clock | Trigger::Switches { .. } => SampleClock::Software,
            },
            kernel: self.kind.kernel,
            seconds,
            lost: self.lost,
            ..empty(self.kind.frequency)
        }
    }
}

/// The stacks with the most time; the others are one for each process and state.
fn most(mut stacks: Vec<Stack>) -> Vec<Stack> {
    let rest = stacks.split_off(stacks.len().min(MOST_STACKS));
    for other in rest {
        let is_rest = |stack: &&mut Stack| {
            let key = |stack: &Stack| (stack.side, stack.process.clone(), stack.state);
            stack.frames == [OTHERS] && key(stack) == key(&other)
        };
        match stacks[MOST_STACKS..].iter_mut().find(is_rest) {
            Some(rest) => {
                rest.samples += other.samples;
                rest.seconds += other.seconds;
            }
            None => stacks.push(Stack { frames: vec![OTHERS.to_owned()], ..other }),
        }
    }
    stacks
}

fn kernel(step: &'static str) -> impl Fn(std::io::Error) -> ProfileError {
    move |error| ProfileError::Kernel { step, error }
}

fn online() -> Vec<u32> {
    let cpus = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    cpu_list::parse(&cpus).filter(|cpus| !cpus.is_empty()).unwrap_or_else(|| vec![0])
}

/// An event for each thread on each CPU, and a ring for each CPU.
fn open(
    kind: EventKind,
    threads: &[u32],
    cpus: &[u32],
    events: &mut Vec<SampleEvent>,
) -> Result<Vec<RecordRing>, ProfileError> {
    let mut rings = Vec::new();
    for cpu in cpus {
        let mut of_cpu: Option<usize> = None;
        for thread in threads {
            let event = match SampleEvent::open(kind, *thread, *cpu) {
                Ok(event) => event,
                // It has ended.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => continue,
                Err(error) => return Err(kernel("opening an event")(error)),
            };
            match of_cpu {
                Some(first) => event.send_to(&events[first]).map_err(kernel("joining events"))?,
                None => {
                    rings.push(RecordRing::of(&event).map_err(kernel("mapping a ring"))?);
                    of_cpu = Some(events.len());
                }
            }
            events.push(event);
        }
    }
    Ok(rings)
}

/// The threads of a process, without some.
fn threads_of(pid: u32, without: &[u32]) -> Result<Vec<u32>, ProfileError> {
    let entries = fs::read_dir(format!("/proc/{pid}/task"));
    let entries = entries.map_err(|_| ProfileError::NoProcess(pid))?;
    let threads = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    Ok(threads.filter(|thread| !without.contains(thread)).collect())
}

/// The best event that this machine and user have, tried on a thread.
fn possible(thread: u32, cpu: u32, frequency: u64) -> Result<EventKind, ProfileError> {
    let mut refused = None;
    for kernel in [true, false] {
        for trigger in [Trigger::Cycles, Trigger::Clock] {
            let kind = EventKind { trigger, kernel, frequency };
            match SampleEvent::open(kind, thread, cpu) {
                Ok(_) => return Ok(kind),
                Err(error) => refused = Some(error),
            }
        }
    }
    let error = refused.unwrap_or_else(|| ErrorKind::Other.into());
    Err(match error.kind() {
        ErrorKind::PermissionDenied => {
            let level = fs::read_to_string(PARANOID).unwrap_or_else(|_| "unknown".to_owned());
            ProfileError::Privilege { level: level.trim().to_owned() }
        }
        _ => ProfileError::Kernel { step: "opening an event", error },
    })
}

#[cfg(test)]
mod tests {
    use model::ThreadState;

    use super::*;

    #[test]
    fn rare_stacks_are_added_up() {
        let stack = |number: usize| Stack {
            side: ProfiledSide::Client,
            process: "p".to_owned(),
            state: if number.is_multiple_of(2) { ThreadState::OnCpu } else { ThreadState::Blocked },
            frames: vec![format!("f{number}")],
            samples: 1,
            seconds: 0.5,
        };
        let all: Vec<Stack> = (0..MOST_STACKS + 5).map(stack).collect();
        let kept = most(all.clone());
        assert_eq!(kept[..MOST_STACKS], all[..MOST_STACKS]);
        let rest: Vec<_> = kept[MOST_STACKS..].iter().map(|s| (s.samples, s.seconds)).collect();
        assert_eq!(rest, [(3, 1.5), (2, 1.0)]);
        assert_eq!(most(all[..3].to_vec()), all[..3]);
    }
}
