//! What the doctor says of each recorded machine.

#[cfg(test)]
mod common;

use std::collections::BTreeSet;
use std::path::PathBuf;

use common::Recorded;
use host::{Context, DoctorCheck, DoctorState, PROBES, Root, doctor};

fn look(root: &Root) -> Vec<DoctorCheck> {
    doctor(root, &Context { store_path: Some(PathBuf::from("/store")), ..Context::default() })
}

#[track_caller]
fn check<'a>(checks: &'a [DoctorCheck], name: &str) -> &'a DoctorCheck {
    let check = checks.iter().find(|check| check.name == name);
    check.unwrap_or_else(|| panic!("no check {name}"))
}

#[track_caller]
fn states(checks: &[DoctorCheck], expected: &[(&str, DoctorState)]) {
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
            ("governor", DoctorState::Unavailable),
            ("turbo", DoctorState::Unavailable),
            ("smt", DoctorState::Ok),
            ("mitigations", DoctorState::Note),
            ("idle_states", DoctorState::Ok),
            ("clock_source", DoctorState::Ok),
            ("virtual_machine", DoctorState::Note),
            ("steal", DoctorState::Note),
            ("container", DoctorState::Ok),
            ("cpu_limit", DoctorState::Ok),
            ("memory_limit", DoctorState::Note),
            ("thp", DoctorState::Ok),
            ("swap", DoctorState::Ok),
            ("numa", DoctorState::Ok),
            ("device", DoctorState::Ok),
            ("open_files", DoctorState::Note),
            ("counters", DoctorState::Unavailable),
            ("energy", DoctorState::Unavailable),
            ("io", DoctorState::Ok),
            ("pressure", DoctorState::Ok),
        ],
    );
    assert_eq!(check(&checks, "steal").found, "2.00 % of all CPU time since boot");
    assert!(check(&checks, "counters").found.contains("the hypervisor"));
    vm.change("/proc/stat", "100 2000 0 0", "100 0 0 0");
    states(&checks, &[("free_pages", DoctorState::Ok)]);
    vm.write("/sys/bus/virtio/devices/virtio0/device", "0x0001\n");
    vm.write("/sys/bus/virtio/devices/virtio3/device", "0x0005\n");
    // Statistics and deflating when memory is short, but no reporting; then that too.
    vm.write("/sys/bus/virtio/devices/virtio3/features", "0110000000\n");
    states(&look(&vm.root), &[("free_pages", DoctorState::Ok)]);
    vm.write("/sys/bus/virtio/devices/virtio3/features", "0110010000\n");
    let found = look(&vm.root);
    let free_pages = check(&found, "free_pages");
    assert_eq!(free_pages.state, DoctorState::Note);
    assert_eq!(free_pages.found, "they go back to the host (virtio3)");
    assert!(free_pages.remedy.as_deref().unwrap().contains("echo virtio3"));
    let checks = look(&vm.root);
    let steal = check(&checks, "steal");
    assert!(
        steal.state == DoctorState::Ok && steal.found.contains("without reporting it"),
        "{steal:?}"
    );
}

#[test]
fn a_server_that_is_not_set_up_for_measuring() {
    let xeon = Recorded::named("xeon");
    let checks = look(&xeon.root);
    states(
        &checks,
        &[
            ("governor", DoctorState::Note),
            ("turbo", DoctorState::Note),
            ("smt", DoctorState::Note),
            ("idle_states", DoctorState::Note),
            ("clock_source", DoctorState::Note),
            ("virtual_machine", DoctorState::Ok),
            ("steal", DoctorState::Ok),
            ("cpu_limit", DoctorState::Note),
            ("memory_limit", DoctorState::Note),
            ("thp", DoctorState::Note),
            ("swap", DoctorState::Note),
            ("numa", DoctorState::Note),
            ("open_files", DoctorState::Ok),
            ("counters", DoctorState::Unavailable),
            ("energy", DoctorState::Ok),
            ("io", DoctorState::Unavailable),
            ("pressure", DoctorState::Unavailable),
        ],
    );
    assert_eq!(check(&checks, "numa").found, "2 nodes of unequal memory (32 GiB to 64 GiB)");
    assert!(check(&checks, "pressure").remedy.as_deref().unwrap().contains("psi=1"));
    // With the capability, the same machine lets its counters be read.
    xeon.change("/proc/self/status", "0000000000000000", "0000004000000000");
    let checks = look(&xeon.root);
    states(&checks, &[("counters", DoctorState::Ok)]);
    let found = &check(&checks, "counters").found;
    assert_eq!(found, "cpu, events of Intel Skylake and Cascade Lake: 17 events in 5 groups");
}

#[test]
fn an_arm_server_in_a_container() {
    let arm = Recorded::named("arm");
    states(
        &look(&arm.root),
        &[
            ("governor", DoctorState::Ok),
            ("clock_source", DoctorState::Ok),
            ("virtual_machine", DoctorState::Unavailable),
            ("container", DoctorState::Note),
            ("cpu_limit", DoctorState::Note),
            ("device", DoctorState::Unavailable),
            ("counters", DoctorState::Ok),
            ("energy", DoctorState::Unavailable),
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
            &[
                ("counters", DoctorState::Ok),
                ("residency", DoctorState::Ok),
                ("network", DoctorState::Ok),
            ],
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
        states(&checks, &[("counters", DoctorState::Note), ("software", DoctorState::Unavailable)]);
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
                assert_eq!(check.remedy.is_none(), check.state == DoctorState::Ok, "{check:?}");
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
        assert_eq!(check.state, DoctorState::Unavailable, "{check:?}");
    }
}

#[test]
fn checks_survive_a_file() {
    let checks = look(&Recorded::named("vm").root);
    let text = serde_json::to_string(&checks).unwrap();
    assert!(text.contains("\"state\":\"unavailable\""), "{text}");
    assert_eq!(serde_json::from_str::<Vec<DoctorCheck>>(&text).unwrap(), checks);
}
