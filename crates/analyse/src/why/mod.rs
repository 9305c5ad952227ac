//! Sentences on where a run's time went, from the stacks of a pass after it, from what was counted
//! inside the kernel, from pipeline slots, and on its energy by process. Each says what was seen
//! and no more.

mod counts;
mod energy;
mod kind;
mod path;
mod top_down;

use model::{ProfiledSide, Run, RunProfile, SampleClock, StackSet, ThreadState};

pub use kind::{Place, place};
pub use path::{HotPath, hot_path};

/// Shares below this are not named.
const LEAST: f64 = 0.02;
/// So many names in a sentence at most.
const NAMES: usize = 4;

/// What a profile says of one process.
#[derive(Debug, Clone, PartialEq)]
pub struct ProcessAnswer {
    pub side: ProfiledSide,
    pub process: String,
    /// The one with the largest share of CPU time first.
    pub sentences: Vec<String>,
}

/// What a profile says.
#[derive(Debug, Clone, PartialEq)]
pub struct WhyAnswer {
    pub processes: Vec<ProcessAnswer>,
    /// Of the whole machine: its block devices, softirqs and energy.
    pub machine: Vec<String>,
    /// How the pass differs from the measured run, and what it could not see.
    pub reservations: Vec<String>,
}

/// What a profile and its run say.
pub fn answer(run: &Run, profile: &RunProfile) -> WhyAnswer {
    let sets = profile.sets();
    let mut names: Vec<_> = sets.iter().map(|set| (set.side, set.process)).collect();
    names.dedup();
    for process in profile.top_down.iter().flat_map(top_down::processes) {
        if !names.contains(&process) {
            names.push(process);
        }
    }
    let processes = names.into_iter().map(|(side, process)| {
        let of = |state| {
            sets.iter().find(|set| (set.side, set.process, set.state) == (side, process, state))
        };
        let mut sentences = Vec::new();
        if let Some(on_cpu) = of(ThreadState::OnCpu) {
            sentences.extend(cpu_time(on_cpu, profile));
        }
        if let Some(preempted) = of(ThreadState::Preempted) {
            sentences.extend(lacks_cpu(preempted, of(ThreadState::OnCpu)));
        }
        if let Some(blocked) = of(ThreadState::Blocked) {
            sentences.extend(waits(blocked));
        }
        sentences.extend(top_down::of_process(profile, side, process));
        sentences.extend(counts::of_process(profile, side, process));
        ProcessAnswer { side, process: process.to_owned(), sentences }
    });
    WhyAnswer {
        processes: processes.collect(),
        machine: [counts::of_machine(profile), energy::sentences(&run.readings)].concat(),
        reservations: reservations(profile, run.throughput()),
    }
}

/// Of a share, in words: `38 %`.
fn percent(share: f64) -> String {
    match share * 100.0 {
        small if small < 9.95 => format!("{small:.1} %"),
        large => format!("{large:.0} %"),
    }
}

/// `a 38 %, b 12 %`; none where no share is large enough.
fn named(shares: &[(String, f64)]) -> Option<String> {
    let large = shares.iter().filter(|(_, share)| *share >= LEAST).take(NAMES);
    let words: Vec<String> =
        large.map(|(name, share)| format!("{name} {}", percent(*share))).collect();
    (!words.is_empty()).then(|| words.join(", "))
}

fn cpu_time(set: &StackSet<'_>, profile: &RunProfile) -> Vec<String> {
    let places = set.by(|stack| Some(place(&stack.frames).to_string()));
    let own = places.iter().find(|(name, _)| *name == Place::Program.to_string());
    let own = own.map_or(0.0, |(_, share)| *share);
    let cpus = set.seconds() / profile.seconds.max(1e-9);
    let mut sentences = vec![match profile.kernel {
        true => format!(
            "It used {cpus:.2} CPUs ({} samples): {} in its own code and libraries, {} inside the \
             kernel.",
            set.samples(),
            percent(own),
            percent(1.0 - own)
        ),
        false => {
            format!("Its own code and libraries used {cpus:.2} CPUs ({} samples).", set.samples())
        }
    }];
    let in_kernel: Vec<_> =
        places.into_iter().filter(|(name, _)| *name != Place::Program.to_string()).collect();
    if let Some(words) = named(&in_kernel) {
        sentences.push(format!("The kernel works for: {words}."));
    }
    // Without a division it says no more than the functions and the kernel's work do.
    if let Some(path) = hot_path(set).filter(|path| !path.calls.is_empty()) {
        sentences.push(path.sentence());
    }
    let functions = set.by(|stack| {
        let innermost = stack.frames.last().filter(|_| place(&stack.frames) == Place::Program);
        innermost.cloned()
    });
    if let Some(words) = named(&functions) {
        sentences.push(format!("In its own code the functions with the most time are {words}."));
    }
    sentences
}

fn lacks_cpu(preempted: &StackSet<'_>, on_cpu: Option<&StackSet<'_>>) -> Option<String> {
    let ran = on_cpu.map_or(0.0, StackSet::seconds);
    let share = preempted.seconds() / (preempted.seconds() + ran).max(1e-9);
    (share >= 0.05).then(|| {
        format!(
            "It lacked CPUs: {} of the time in which its threads could run, others had their CPU.",
            percent(share)
        )
    })
}

fn waits(blocked: &StackSet<'_>) -> Option<String> {
    let places = blocked.by(|stack| Some(place(&stack.frames).to_string()));
    let words = named(&places)?;
    Some(format!(
        "Threads that waited and went on: {words} of {:.1} s, added up over the threads.",
        blocked.seconds()
    ))
}

fn reservations(profile: &RunProfile, measured_ops_s: f64) -> Vec<String> {
    let mut words = Vec::new();
    if measured_ops_s > 0.0 {
        let ratio = profile.throughput() / measured_ops_s;
        words.push(format!(
            "A pass of its own, {:.1} s long, {} samples a second of CPU time; it reached {} of the \
             measured throughput, and no other figure includes it.",
            profile.seconds,
            profile.frequency,
            percent(ratio)
        ));
    }
    if profile.clock == SampleClock::Software {
        words.push(
            "This machine has no counter of cycles: samples are by the software clock, which does \
             not see code that runs with interrupts off, and whether cycles wait for memory is not \
             known."
                .to_owned(),
        );
    }
    if !profile.kernel {
        words.push(
            "This user may not sample the kernel: time inside it, and waits, are not seen. Run as \
             root, or set kernel.perf_event_paranoid to 1."
                .to_owned(),
        );
    }
    if profile.lost > 0 {
        words.push(format!("{} samples had no room and are lost.", profile.lost));
    }
    words.extend(top_down::reservations(profile, measured_ops_s));
    words.extend(counts::reservations(profile));
    words
}
