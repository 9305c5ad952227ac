//! The CPUs of interrupts: which are moved, which cannot be, and what the kernel counted.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use host::knob::ProofOutcome;

use super::common::Recorded;
use super::{assert_as_before, plan, refused, snapshot, turn, while_running, xeon};

const COUNTS: &str = "/proc/interrupts";

fn list(machine: &Recorded, number: u32) -> String {
    machine.root.value(&format!("/proc/irq/{number}/smp_affinity_list")).unwrap()
}

fn lists(machine: &Recorded) -> [String; 4] {
    [60, 61, 70, 71].map(|number| list(machine, number))
}

/// Marks an interrupt as managed by its driver, as Linux 6.11 and later do.
fn manage(machine: &Recorded, number: u32) {
    let path = machine.path(&format!("/proc/irq/{number}/smp_affinity_list"));
    fs::set_permissions(path, fs::Permissions::from_mode(0o444)).unwrap();
}

#[test]
fn interrupts_are_moved_by_device_number_and_handler() {
    let (machine, folder) = xeon();
    let before = snapshot(&machine);
    for (level, expected) in [
        ("2-3", ["2-3", "2-3", "2-3", "2-3"]),
        ("2,4@ens1f0", ["2,4", "2,4", "0-7", "0-7"]),
        ("3@0000:18:00.0", ["3", "3", "0-7", "0-7"]),
        ("3@nvme0", ["0", "1", "3", "3"]),
        ("3@nvme0n1", ["0", "1", "3", "3"]),
        ("3@nvme0q1", ["0", "1", "0-7", "3"]),
        ("3@mlx5_comp1,70-71", ["0", "3", "3", "3"]),
        ("all@60", ["0-7", "1", "0-7", "0-7"]),
        ("all", ["0-7", "0-7", "0-7", "0-7"]),
    ] {
        let turned = turn(&machine, folder.path(), &[("irq_affinity", level)]);
        assert_eq!(lists(&machine), expected, "{level}");
        drop(turned);
        assert_as_before(&machine, &before);
    }
    // An interrupt without a handler is not moved.
    assert_eq!(list(&machine, 72), "0-7");
}

#[test]
fn what_cannot_be_moved_is_refused_with_its_name() {
    let (machine, folder) = xeon();
    let refused = |level: &str, words: &[&str]| {
        refused(&machine.root, &[("irq_affinity", level)], words);
    };
    refused("8", &["CPU 8 is not online"]);
    refused("x", &["`x` is not a list of CPUs"]);
    refused("0@eth7", &["no interrupt belongs to `eth7`", "ens1f0, nvme0n1, nvme0"]);
    refused("0@ens1", &["no interrupt belongs to `ens1`"]);
    refused("0@60,62", &["no interrupt belongs to `62`"]);
    refused("0@../net", &["no interrupt belongs"]);
    refused("0@", &["no interrupt belongs to ``"]);
    manage(&machine, 71);
    refused("0@nvme0", &["the driver manages 71 (nvme0q1)", "name others by number or handler"]);
    // Of all that can be moved it is not one.
    let turned = turn(&machine, folder.path(), &[("irq_affinity", "5")]);
    assert_eq!(lists(&machine), ["5", "5", "5", "0-7"]);
    drop(turned);
    for number in [60, 61, 70] {
        manage(&machine, number);
    }
    refused("5", &["the kernel lets no interrupt be moved", "knob cpus"]);
    machine.write("/proc/4711/comm", "irqbalance\n");
    refused("all", &["irqbalance (process 4711) runs", "systemctl stop irqbalance"]);
}

/// What the kernel counts while something is proven: ten more of interrupt 60 on each of these CPUs
/// at each step.
fn count_on(machine: &Recorded, cpus: &[usize]) -> impl Fn(u64) + Sync {
    let path = machine.path(COUNTS);
    let cpus = cpus.to_vec();
    move |step| {
        let mut counts = [1000u64, 0, 0, 0, 0, 0, 0, 0];
        for cpu in &cpus {
            counts[*cpu] += 10 * step;
        }
        let header: Vec<String> = (0..8).map(|cpu| format!("CPU{cpu}")).collect();
        let counts = counts.map(|count| count.to_string()).join(" ");
        let text = format!(
            "{}\n 60: {counts} PCI-MSI 1-edge mlx5_comp0@pci:0000:18:00.0\n",
            header.join(" ")
        );
        let new = path.with_extension("new");
        fs::write(&new, text).unwrap();
        fs::rename(new, &path).unwrap();
    }
}

#[test]
fn moved_interrupts_are_proven_by_what_the_kernel_counts() {
    let (machine, folder) = xeon();
    let outcome = |level: &str, cpus: &[usize]| {
        let mut turned = turn(&machine, folder.path(), &[("irq_affinity", level)]);
        let counting = count_on(&machine, cpus);
        while_running(counting, || turned.proofs()[0].outcome.clone())
    };
    match outcome("5@ens1f0", &[5]) {
        ProofOutcome::Proven(seen) => {
            assert!(seen.starts_with("1 of 2 interrupts came, "), "{seen}");
            assert!(seen.ends_with(" times on CPUs 5 and 0 times on CPUs 0-4,6-7"), "{seen}");
        }
        other => panic!("{other:?}"),
    }
    match outcome("5@ens1f0", &[5, 6]) {
        ProofOutcome::Refuted(seen) => {
            assert!(seen.contains("outside of CPUs 5: 60 (mlx5_comp0@pci:0000:18:00.0) came"));
        }
        other => panic!("{other:?}"),
    }
    match outcome("5@ens1f0", &[]) {
        ProofOutcome::Unverified(why) => {
            assert_eq!(why, "none of 2 interrupts came within 1 s");
        }
        other => panic!("{other:?}"),
    }
    match outcome("all@ens1f0", &[1, 3]) {
        ProofOutcome::Unverified(why) => assert!(why.contains("all that are online"), "{why}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_interrupt_that_its_driver_manages_is_named_by_the_proof() {
    let (machine, folder) = xeon();
    // Kernels before 6.11 refuse the write alone: the file keeps its list.
    let outcome = |level: &str| {
        let mut turned = turn(&machine, folder.path(), &[("irq_affinity", level)]);
        machine.write("/proc/irq/61/smp_affinity_list", "1\n");
        let counting = count_on(&machine, &[5]);
        while_running(counting, || turned.proofs()[0].outcome.clone())
    };
    let stays = "61 (mlx5_comp1@pci:0000:18:00.0) stays: its driver manages it";
    match outcome("5") {
        ProofOutcome::Proven(seen) => assert!(seen.ends_with(stays), "{seen}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(outcome("5@ens1f0"), ProofOutcome::Refuted(stays.to_owned()));
    manage(&machine, 71);
    match outcome("5") {
        ProofOutcome::Proven(seen) => assert!(
            seen.ends_with(
                "71 (nvme0q1), 61 (mlx5_comp1@pci:0000:18:00.0) stay: their drivers manage them"
            ),
            "{seen}"
        ),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_present_lists_can_be_given_as_levels() {
    let (machine, folder) = xeon();
    let knob = host::knob::Knobs::find("irq_affinity").unwrap();
    assert_eq!(knob.read(&machine.root).unwrap(), "0@60 1@61 0-7@70-71");
    for level in knob.read(&machine.root).unwrap().split(' ') {
        assert_eq!(plan(&machine.root, &[("irq_affinity", level)]).writes().count(), 0, "{level}");
    }
    let turned = turn(&machine, folder.path(), &[("irq_affinity", "4")]);
    assert_eq!(knob.read(&machine.root).unwrap(), "4");
    drop(turned);
}
