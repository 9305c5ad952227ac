//! What the doctor says of each recorded machine.

#[cfg(test)]
mod common;

use std::collections::BTreeSet;
use std::path::PathBuf;

use common::Recorded;
use host::{Check, Context, PROBES, Root, State, doctor};

fn look(root: &Root) -> Vec<Check> {
    doctor(root, &Context { store_path: Some(PathBuf::from("/store")), ..Context::default() })
}

#[track_caller]
fn check<'a>(checks: &'a [Check], name: &str) -> &'a Check {
    let check = checks.iter().find(|check| check.name == name);
    check.unwrap_or_else(|| panic!("no check {name}"))
}

#[track_caller]
fn states(checks: &[Check], expected: &[(&str, State)]) {
    for (name, state) in expected {
        let check = check(checks, name);
        assert_eq!(check.state, *state, "{check:?}");
    }
}

#[test]
fn a_virtual_machine_without_counters() {
    let vm = Recorded::named("vm");
    let checks = look(&vm.root);
    states(
        &checks,
        &[
            ("governor", State::Unavailable),
            ("turbo", State::Unavailable),
            ("smt", State::Ok),
            ("mitigations", State::Note),
            ("idle_states", State::Ok),
            ("clock_source", State::Ok),
            ("virtual_machine", State::Note),
            ("steal", State::Note),
            ("container", State::Ok),
            ("cpu_limit", State::Ok),
            ("memory_limit", State::Note),
            ("thp", State::Ok),
            ("swap", State::Ok),
            ("numa", State::Ok),
            ("device", State::Ok),
            ("open_files", State::Note),
            ("counters", State::Unavailable),
            ("energy", State::Unavailable),
            ("io", State::Ok),
            ("pressure", State::Ok),
        ],
    );
    assert_eq!(check(&checks, "steal").found, "2.00 % of all CPU time since boot");
    assert!(check(&checks, "counters").found.contains("the hypervisor"));
    vm.change("/proc/stat", "100 2000 0 0", "100 0 0 0");
    states(&checks, &[("free_pages", State::Ok)]);
    vm.write("/sys/bus/virtio/devices/virtio0/device", "0x0001\n");
    vm.write("/sys/bus/virtio/devices/virtio3/device", "0x0005\n");
    // Statistics and deflating when memory is short, but no reporting; then that too.
    vm.write("/sys/bus/virtio/devices/virtio3/features", "0110000000\n");
    states(&look(&vm.root), &[("free_pages", State::Ok)]);
    vm.write("/sys/bus/virtio/devices/virtio3/features", "0110010000\n");
    let found = look(&vm.root);
    let free_pages = check(&found, "free_pages");
    assert_eq!(free_pages.state, State::Note);
    assert_eq!(free_pages.found, "they go back to the host (virtio3)");
    assert!(free_pages.remedy.as_deref().unwrap().contains("echo virtio3"));
    let checks = look(&vm.root);
    let steal = check(&checks, "steal");
    assert!(steal.state == State::Ok && steal.found.contains("do not say so"), "{steal:?}");
}

#[test]
fn a_server_that_is_not_set_up_for_measuring() {
    let xeon = Recorded::named("xeon");
    let checks = look(&xeon.root);
    states(
        &checks,
        &[
            ("governor", State::Note),
            ("turbo", State::Note),
            ("smt", State::Note),
            ("idle_states", State::Note),
            ("clock_source", State::Note),
            ("virtual_machine", State::Ok),
            ("steal", State::Ok),
            ("cpu_limit", State::Note),
            ("memory_limit", State::Note),
            ("thp", State::Note),
            ("swap", State::Note),
            ("numa", State::Note),
            ("open_files", State::Ok),
            ("counters", State::Unavailable),
            ("energy", State::Ok),
            ("io", State::Unavailable),
            ("pressure", State::Unavailable),
        ],
    );
    assert_eq!(check(&checks, "numa").found, "2 nodes of unequal memory (32 GiB to 64 GiB)");
    assert!(check(&checks, "pressure").remedy.as_deref().unwrap().contains("psi=1"));
    // With the capability, the same machine lets its counters be read.
    xeon.change("/proc/self/status", "0000000000000000", "0000004000000000");
    let checks = look(&xeon.root);
    states(&checks, &[("counters", State::Ok)]);
    let found = &check(&checks, "counters").found;
    assert_eq!(found, "cpu, events of Intel Skylake and Cascade Lake: 17 events in 5 groups");
}

#[test]
fn an_arm_server_in_a_container() {
    let arm = Recorded::named("arm");
    states(
        &look(&arm.root),
        &[
            ("governor", State::Ok),
            ("clock_source", State::Ok),
            ("virtual_machine", State::Unavailable),
            ("container", State::Note),
            ("cpu_limit", State::Note),
            ("device", State::Unavailable),
            ("counters", State::Ok),
            ("energy", State::Unavailable),
        ],
    );
}

#[test]
fn servers_with_all_their_counters() {
    for (machine, table) in
        [("xeon-4114", "Intel Skylake"), ("epyc", "AMD Zen 4"), ("neoverse", "Neoverse")]
    {
        let recorded = Recorded::named(machine);
        let checks = look(&recorded.root);
        states(
            &checks,
            &[("counters", State::Ok), ("residency", State::Ok), ("network", State::Ok)],
        );
        assert!(check(&checks, "counters").found.contains(table));
        assert!(check(&checks, "cachegrind").found.contains("valgrind is not in PATH"));
        recorded.write("/usr/bin/valgrind", "");
        let checks = look(&recorded.root);
        assert!(check(&checks, "cachegrind").found.contains("LL "), "{machine}");
        // Level 2 leaves user space alone.
        recorded.change("/proc/self/status", "000001ffffffffff", "0000000000000000");
        recorded.write("/proc/sys/kernel/perf_event_paranoid", "2");
        let checks = look(&recorded.root);
        states(&checks, &[("counters", State::Note), ("software", State::Unavailable)]);
        assert!(check(&checks, "counters").found.contains("only user space"), "{machine}");
    }
}

#[test]
fn every_check_can_be_acted_on() {
    let recorded = ["vm", "xeon", "arm", "xeon-4114", "epyc", "neoverse"].map(Recorded::named);
    let recorded = recorded.into_iter().chain([Recorded::empty()]);
    let recorded: Vec<Recorded> = recorded.collect();
    for root in recorded.iter().map(|machine| machine.root.clone()).chain([Root::live()]) {
        for context in [
            Context::default(),
            Context { store_path: Some(PathBuf::from("/store")), ..Context::default() },
        ] {
            let checks = doctor(&root, &context);
            let mut names = BTreeSet::new();
            for check in &checks {
                assert!(
                    names.insert((check.group.as_str(), check.name.as_str())),
                    "twice: {check:?}"
                );
                assert!(!check.found.is_empty() && !check.why.is_empty(), "{check:?}");
                assert_eq!(check.remedy.is_none(), check.state == State::Ok, "{check:?}");
            }
            for spec in PROBES {
                assert!(names.contains(&("signals", spec.name)));
            }
        }
    }
}

#[test]
fn where_nothing_can_be_read_nothing_is_in_order() {
    for check in look(&Recorded::empty().root) {
        assert_eq!(check.state, State::Unavailable, "{check:?}");
    }
}

#[test]
fn checks_survive_a_file() {
    let checks = look(&Recorded::named("vm").root);
    let text = serde_json::to_string(&checks).unwrap();
    assert!(text.contains("\"state\":\"unavailable\""), "{text}");
    assert_eq!(serde_json::from_str::<Vec<Check>>(&text).unwrap(), checks);
}
