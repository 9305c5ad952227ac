//! Many simulations, each on a core of its own.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use crate::describe::machine::SimulatedMachine;
use crate::describe::traffic::Traffic;
use crate::error::SimError;
use crate::outcome::{SimOutcome, simulate};
use crate::policy::Policy;

/// One combination of swept values.
#[derive(Debug, Clone)]
pub struct SweepPoint {
    /// Keys with their values, in the order in which they were given.
    pub at: Vec<(String, String)>,
    pub policy: String,
}

/// One simulation to be done.
#[derive(Debug, Clone)]
pub struct SweepJob {
    pub machine: SimulatedMachine,
    pub traffic: Traffic,
    pub policy: Policy,
}

/// Runs all jobs on one thread per processor; results are in the order of the jobs. Simulations
/// share nothing, so results do not depend on the number of threads.
pub fn run_all(jobs: &[SweepJob]) -> Result<Vec<SimOutcome>, SimError> {
    let next = AtomicUsize::new(0);
    let (send, receive) = mpsc::channel();
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(jobs.len());
    let mut answers: Vec<(usize, Result<SimOutcome, SimError>)> = std::thread::scope(|scope| {
        for _ in 0..threads {
            let (next, send) = (&next, send.clone());
            scope.spawn(move || {
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    let Some(job) = jobs.get(i) else { return };
                    let answer = simulate(&job.machine, &job.traffic, job.policy);
                    if send.send((i, answer)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(send);
        receive.iter().collect()
    });
    answers.sort_by_key(|(i, _)| *i);
    answers.into_iter().map(|(_, answer)| answer).collect()
}
