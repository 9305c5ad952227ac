//! What a load configuration is to the load generator on this machine.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use analyse::STEADY_ROUNDS;
use drive::{CpuBudget, LoadPlan, OnStart, PhaseKind, SteadyCriteria};
use host::{Capacity, Root};
use model::Pacing;
use study::LoadConfig;

/// Without an answer for so long, a store counts as hung.
const STALL_TIMEOUT: Duration = Duration::from_secs(120);

/// The plan for the load generator.
pub(crate) fn load_plan(
    load_config: &LoadConfig,
    what: PhaseKind,
    seed: u64,
    stop: &Arc<AtomicBool>,
) -> LoadPlan {
    let slowest_gap = match load_config.shape.pacing {
        Pacing::Open { rate, .. } => {
            Duration::try_from_secs_f64(20.0 / rate).unwrap_or(Duration::MAX)
        }
        Pacing::Closed { think } => think,
        // Its pauses are not known beforehand.
        Pacing::Recorded { .. } => Duration::ZERO,
    };
    // A profile may pause for most of its length.
    let pause = load_config.shape.profile.as_ref().map_or(0.0, |profile| profile.seconds());
    LoadPlan {
        phase: what,
        trace: None,
        threads: load_config.threads as usize,
        shape: load_config.shape.clone(),
        seed,
        connections: load_config.connections,
        steady: load_config.steady.map(|(round, most)| SteadyCriteria {
            round,
            window: STEADY_ROUNDS,
            most_rounds: most as usize,
            rule: |rounds| {
                <&[f64; STEADY_ROUNDS]>::try_from(rounds)
                    .is_ok_and(|rounds| analyse::steady(rounds).steady)
            },
        }),
        interval: Duration::from_secs(1),
        on_start: init_thread(load_config, &[]),
        cpus: host::capacity(&Root::live(), &load_config.cpus)
            .ok()
            .map(|Capacity { cpus: count, words }| CpuBudget { count, words }),
        stop: Arc::clone(stop),
        stall_timeout: STALL_TIMEOUT
            .saturating_add(slowest_gap)
            .saturating_add(Duration::from_secs_f64(pause)),
        share: None,
        keep_intervals: false,
    }
}

/// Initialises a client thread: pins it and removes its timer slack. Either may fail; lateness is
/// measured anyway. CPUs that servers are confined to come last, because a spinning thread would
/// take them from the server.
pub(crate) fn init_thread(load_config: &LoadConfig, servers: &[u32]) -> OnStart {
    let cpus = cpu_order(load_config, servers);
    Arc::new(move |thread| {
        // Given CPUs are shared where they are fewer than the threads.
        if let Some(cpu) = cpus.get(thread % cpus.len().max(1)) {
            let _ = affinity::pin(*cpu);
        }
        let _ = host::wake_promptly();
    })
}

/// The CPUs to which the client threads are pinned; none where they may run anywhere, or are more
/// than the CPUs.
pub(crate) fn cpus_of_load(load_config: &LoadConfig, servers: &[u32]) -> Vec<u32> {
    let mut cpus = cpu_order(load_config, servers);
    match cpus.len() >= load_config.threads as usize {
        true => cpus.truncate(load_config.threads as usize),
        false if load_config.cpus.is_empty() => cpus.clear(),
        false => {}
    }
    cpus
}

/// The CPUs of the threads, in their order; none where threads are not pinned.
fn cpu_order(load_config: &LoadConfig, servers: &[u32]) -> Vec<u32> {
    if !load_config.cpus.is_empty() {
        return load_config.cpus.clone();
    }
    let mut cpus = match load_config.pin {
        true => host::cpus(&Root::live()).map(|order| order.cpus).unwrap_or_default(),
        false => Vec::new(),
    };
    // A stable sort keeps the order otherwise.
    cpus.sort_by_key(|cpu| servers.contains(cpu));
    cpus
}
