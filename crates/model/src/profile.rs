//! Where the time of a run's processes went, from a pass of its own after the measured ones.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::{KernelCounts, TopDownPass};

/// What interrupts a thread for a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SampleClock {
    /// The processor's counter of cycles.
    Cycles,
    /// The kernel's timer of CPU time: it does not see what runs with interrupts off.
    Software,
}

/// Which side of the measurement a process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProfiledSide {
    /// kvmeter, with the stores that it embeds.
    Client,
    Server,
}

/// What a thread does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThreadState {
    OnCpu,
    /// It waits for something else than a CPU: an answer, a lock, a device.
    Blocked,
    /// It could run, but another thread has its CPU.
    Preempted,
}

/// A stack, and how much time its threads spent in it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stack {
    pub side: ProfiledSide,
    /// The program: `memcached`.
    pub process: String,
    pub state: ThreadState,
    /// Functions, the outermost first; those of the kernel end in `_[k]`.
    pub frames: Vec<String>,
    pub samples: u64,
    /// Estimated from the samples, over all threads.
    pub seconds: f64,
}

/// Where the time of some processes went.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunProfile {
    pub clock: SampleClock,
    /// Samples a second of CPU time.
    pub frequency: u64,
    /// Whether time inside the kernel is sampled too.
    pub kernel: bool,
    /// Length of the pass's window, and what was done in it.
    pub seconds: f64,
    pub operations: u64,
    /// Samples that had no room.
    pub lost: u64,
    /// The longest first.
    pub stacks: Vec<Stack>,
    /// What was counted inside the kernel meanwhile; none in a file of a kvmeter that did not.
    pub counts: Option<KernelCounts>,
    /// What became of the pipeline's slots, from a further pass; none in a file of a kvmeter that
    /// had none.
    pub top_down: Option<TopDownPass>,
}

/// The processes of a profile with one state.
#[derive(Debug, Clone)]
pub struct StackSet<'a> {
    pub side: ProfiledSide,
    pub process: &'a str,
    pub state: ThreadState,
    pub stacks: Vec<&'a Stack>,
}

impl RunProfile {
    /// Operations a second of the pass; 0 operations in no time is 0.
    pub fn throughput(&self) -> f64 {
        if self.seconds > 0.0 { self.operations as f64 / self.seconds } else { 0.0 }
    }

    /// The stacks by side, process and state, in this order.
    pub fn sets(&self) -> Vec<StackSet<'_>> {
        let mut sets: Vec<StackSet<'_>> = Vec::new();
        for stack in &self.stacks {
            let key = (stack.side, stack.process.as_str(), stack.state);
            match sets.iter_mut().find(|set| (set.side, set.process, set.state) == key) {
                Some(set) => set.stacks.push(stack),
                None => sets.push(StackSet {
                    side: stack.side,
                    process: &stack.process,
                    state: stack.state,
                    stacks: vec![stack],
                }),
            }
        }
        sets.sort_by(|a, b| (a.side, a.process, a.state).cmp(&(b.side, b.process, b.state)));
        sets
    }
}

impl Stack {
    /// Its functions, separated by semicolons: `main;read;vfs_read_[k]`.
    pub fn folded_frames(&self) -> String {
        let frames = self.frames.iter().map(|frame| frame.replace([';', '\n'], ":"));
        frames.collect::<Vec<_>>().join(";")
    }

    /// Its process and functions, as flame graphs are drawn from: `memcached;main;vfs_read_[k]`.
    pub fn folded(&self) -> String {
        let process = self.process.replace([';', '\n'], ":");
        match self.frames.is_empty() {
            true => process,
            false => format!("{process};{}", self.folded_frames()),
        }
    }
}

impl StackSet<'_> {
    pub fn samples(&self) -> u64 {
        self.stacks.iter().map(|stack| stack.samples).fold(0, u64::saturating_add)
    }

    pub fn seconds(&self) -> f64 {
        self.stacks.iter().map(|stack| stack.seconds).sum()
    }

    /// The share of its time in stacks for which `is` holds; 0 without any.
    pub fn share(&self, is: impl Fn(&Stack) -> bool) -> f64 {
        let found = self.stacks.iter().filter(|stack| is(stack));
        let (found, all) = (found.map(|stack| stack.seconds).sum::<f64>(), self.seconds());
        if all > 0.0 { found / all } else { 0.0 }
    }

    /// Names by the share of time in stacks that `name` gives them, the largest first.
    pub fn by(&self, name: impl Fn(&Stack) -> Option<String>) -> Vec<(String, f64)> {
        let (mut shares, all) = (HashMap::new(), self.seconds());
        for stack in &self.stacks {
            if let Some(name) = name(stack) {
                *shares.entry(name).or_insert(0.0) += stack.seconds / all;
            }
        }
        let mut shares: Vec<_> = shares.into_iter().collect();
        shares.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        shares
    }

    /// Functions by the share of time in themselves, not in what they call.
    pub fn by_function(&self) -> Vec<(String, f64)> {
        self.by(|stack| Some(stack.frames.last().map_or("[unknown]", String::as_str).to_owned()))
    }
}
