//! Checks of frequency, SMT, mitigations, idle states and clock source.

use super::CheckGroup;
use crate::facts::{clock, cpu, frequency, idle, mitigations, topology};
use crate::root::Root;

pub(super) fn add(root: &Root, group: &mut CheckGroup) {
    let why = "a governor that follows the load makes the first seconds and light loads slower";
    match frequency::governor(root) {
        Ok(found) => {
            let remedy = "cpupower frequency-set --governor performance";
            group.judge("governor", found == "performance", found, why, remedy);
        }
        Err(reason) => group.unavailable(
            "governor",
            reason,
            why,
            "set the frequency in the firmware, or rent a machine that states its frequency",
        ),
    }
    let why = "the frequency above the base depends on heat and on how many cores are busy, \
               so repeats differ";
    match frequency::turbo(root) {
        Ok(on) => group.judge(
            "turbo",
            !on,
            if on { "on" } else { "off" },
            why,
            "echo 1 > /sys/devices/system/cpu/intel_pstate/no_turbo, or echo 0 > \
             /sys/devices/system/cpu/cpufreq/boost; or keep it on and repeat more often",
        ),
        Err(error) => group.unavailable(
            "turbo",
            error,
            why,
            "check the firmware's settings; the spread of repeats shows their effect",
        ),
    }
    smt(root, group);
    vulnerabilities(root, group);
    idle_states(root, group);
    clock_source(root, group);
}

fn smt(root: &Root, group: &mut CheckGroup) {
    let why = "two threads of one core share its units, so a thread is slower when its sibling \
               works, and scaling bends at the number of cores";
    match topology::smt(root) {
        Ok(found) => group.judge(
            "smt",
            found != "on",
            found,
            why,
            "pin one load thread to each core, or echo off > /sys/devices/system/cpu/smt/control",
        ),
        Err(error) => group.unavailable(
            "smt",
            error,
            why,
            "compare one and two threads of the null store: a speed-up below 1.9 hints at SMT",
        ),
    }
}

fn vulnerabilities(root: &Root, group: &mut CheckGroup) {
    let why = "work-arounds for flaws of the CPU make system calls and context switches slower";
    match mitigations::vulnerabilities(root) {
        Ok(flaws) => {
            let count = |start: &str| flaws.iter().filter(|f| f.state.starts_with(start)).count();
            let (worked, open) = (count("Mitigation"), count("Vulnerable"));
            let found = format!(
                "{worked} worked around, {open} left open, {} do not affect this CPU",
                flaws.iter().filter(|flaw| !flaw.affects()).count()
            );
            let remedy = "compare only machines with the same mitigations; they are in the facts";
            group.judge("mitigations", worked == 0, found, why, remedy);
        }
        Err(error) => group.unavailable(
            "mitigations",
            error,
            why,
            "state the kernel's boot parameters with the results",
        ),
    }
}

/// Leaving a state that takes longer than this shows in a store's latencies.
const DEEP_US: u64 = 20;

fn idle_states(root: &Root, group: &mut CheckGroup) {
    let why = "a CPU that sleeps deeply wakes late: at low rates that is the latency's floor";
    match idle::states(root) {
        Ok(states) => {
            let deep =
                states.iter().any(|s| !s.disabled && s.exit_us.is_none_or(|us| us > DEEP_US));
            let texts: Vec<String> = states.iter().map(idle::IdleState::describe).collect();
            let remedy = "cpupower idle-set --disable-by-latency 20, or boot with \
                          processor.max_cstate=1";
            group.judge("idle_states", !deep, texts.join(", "), why, remedy);
        }
        Err(error) => group.unavailable(
            "idle_states",
            error,
            why,
            "the hypervisor or the firmware decides; compare latencies at low and middle rates",
        ),
    }
}

fn clock_source(root: &Root, group: &mut CheckGroup) {
    let why =
        "every latency takes two readings of this clock; a slow clock costs a system call for each";
    let expected = if cpu::is_arm(root) { "arch_sys_counter" } else { "tsc" };
    match root.value(clock::CURRENT) {
        Ok(found) => {
            let remedy =
                format!("boot with clocksource={expected} where the machine's counter is stable");
            // KVM's clock is read from user space as the counter is.
            let good = found == expected || found == "kvm-clock";
            group.judge("clock_source", good, found, why, &remedy);
        }
        Err(error) => group.unavailable(
            "clock_source",
            error,
            why,
            "trust the cost of a clock reading that each run measures",
        ),
    }
}
