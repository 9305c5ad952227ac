//! What is known of each recorded machine.

#[cfg(test)]
mod common;

use common::Recorded;
use host::{Root, facts};
use model::Machine;

fn known(machine: &Machine, expected: &[(&str, &str)]) {
    for (name, value) in expected {
        assert_eq!(machine.fact(name), Some(*value), "{name}");
    }
}

/// The reason why a fact is not known.
fn reason<'a>(machine: &'a Machine, name: &str) -> &'a str {
    let fact = machine.facts.iter().find(|fact| fact.name == name);
    let fact = fact.unwrap_or_else(|| panic!("no fact {name}"));
    fact.value.as_ref().expect_err(name)
}

#[test]
fn a_virtual_machine() {
    let recorded = Recorded::named("vm");
    let machine = facts(&recorded.root);
    known(
        &machine,
        &[
            ("cpu.model", "AMD EPYC"),
            ("cpu.vendor", "AuthenticAMD"),
            ("cpu.architecture", "x86_64"),
            ("topology.sockets", "1"),
            ("topology.cores", "2"),
            ("topology.threads", "2"),
            ("topology.smt", "off (notsupported)"),
            ("topology.isolated", "none"),
            ("cache.l1d", "48 KiB, 12 ways, 64 B lines, private to a thread; 2 caches in all"),
            ("cache.l3", "32 MiB, 16 ways, 64 B lines, shared by 2 threads; 1 cache in all"),
            ("frequency.reported", "2.6 GHz"),
            ("idle.driver", "haltpoll"),
            ("idle.states", "POLL (exit 0 us), haltpoll idle (exit 1 us)"),
            ("memory.total", "4 GiB"),
            ("memory.huge_pages", "0 of 2 MiB"),
            ("memory.thp", "madvise"),
            ("memory.swap", "none"),
            ("numa.nodes", "1"),
            ("numa.node0", "CPUs 0-1; 4 GiB"),
            ("kernel.release", "6.1.0-example"),
            ("kernel.parameters", "mitigations=auto psi=1 (2 others not shown)"),
            ("mitigations.spectre_v2", "Mitigation: Retpolines"),
            ("mitigations.not_affected", "l1tf, meltdown"),
            ("clock.source", "tsc"),
            ("clock.tsc", "tsc rdtscp constant_tsc nonstop_tsc tsc_known_freq"),
            ("os.distribution", "Debian GNU/Linux 12 (bookworm)"),
            ("virtualisation.container", "no sign of one"),
            ("cgroup.cpu_limit", "none"),
            ("cgroup.memory_limit", "2 GiB (/sys/fs/cgroup/memory/jobs/memory.limit_in_bytes)"),
            (
                "block.vda",
                "size 256 GiB, rotational yes, scheduler mq-deadline, queue depth 256, \
                 write cache write back",
            ),
        ],
    );
    let virtual_machine = machine.fact("virtualisation.machine").unwrap();
    for sign in ["virtual: ", "hypervisor flag", "kvm-clock"] {
        assert!(virtual_machine.contains(sign), "{virtual_machine}");
    }
    assert!(reason(&machine, "frequency.governor").contains("no cpufreq policy"));
    assert!(reason(&machine, "frequency.base").contains("no cpufreq policy"));
    assert!(reason(&machine, "virtualisation.product").contains("product_name does not exist"));
    // An empty loop device is no disk.
    assert!(machine.facts.iter().all(|fact| fact.name != "block.loop0"));
}

#[test]
fn a_server_of_two_sockets() {
    let recorded = Recorded::named("xeon");
    let machine = facts(&recorded.root);
    known(
        &machine,
        &[
            ("cpu.model", "Intel(R) Xeon(R) Gold 6140 CPU @ 2.30GHz"),
            ("topology.sockets", "2"),
            ("topology.cores", "4"),
            ("topology.threads", "8"),
            ("topology.smt", "on"),
            ("topology.isolated", "3,7"),
            ("cache.l3", "24.75 MiB, 11 ways, 64 B lines, shared by 4 threads; 2 caches in all"),
            ("frequency.driver", "intel_pstate"),
            ("frequency.governor", "powersave (7), performance (1)"),
            ("frequency.min", "1 GHz"),
            ("frequency.max", "3.7 GHz"),
            ("frequency.base", "2.30GHz"),
            ("frequency.turbo", "on"),
            ("idle.states", "POLL (exit 0 us), C1E (exit 10 us), C6 (exit 133 us)"),
            ("memory.total", "96 GiB"),
            ("memory.huge_pages", "16 of 1 GiB"),
            ("memory.swap", "4 GiB, 512 MiB of it used"),
            ("memory.swappiness", "60"),
            ("numa.nodes", "2"),
            ("numa.node1", "CPUs 1,3,5,7; 32 GiB"),
            ("kernel.parameters", "isolcpus=3,7 intel_idle.max_cstate=9 (2 others not shown)"),
            ("virtualisation.machine", "no sign of one: cpuinfo has no hypervisor flag"),
            ("virtualisation.product", "Dell Inc. PowerEdge R640"),
            ("cgroup.cpu_limit", "2.5 CPUs (/sys/fs/cgroup/user.slice/cpu.max)"),
            ("cgroup.memory_limit", "8 GiB (/sys/fs/cgroup/user.slice/bench.scope/memory.max)"),
        ],
    );
    let disk = machine.fact("block.nvme0n1").unwrap();
    assert!(disk.contains("INTEL SSDPE2KX010T8") && disk.contains("rotational no"), "{disk}");
}

#[test]
fn an_arm_server_in_a_container() {
    let recorded = Recorded::named("arm");
    let machine = facts(&recorded.root);
    known(
        &machine,
        &[
            ("cpu.model", "Neoverse-N1 r3p1"),
            ("cpu.vendor", "Arm"),
            ("topology.cores", "4"),
            ("frequency.governor", "performance"),
            ("os.distribution", "Alpine Linux v3.20"),
            ("virtualisation.container", "sign of one: docker (/.dockerenv)"),
            ("cgroup.cpu_limit", "4 CPUs (/sys/fs/cgroup/cpu.max)"),
            ("cgroup.memory_limit", "none"),
        ],
    );
    assert!(reason(&machine, "virtualisation.machine").contains("no hypervisor flag"));
    assert!(reason(&machine, "clock.tsc").contains("no time stamp counter"));
    assert!(reason(&machine, "cache").contains("no CPU has a readable folder"));
    assert!(reason(&machine, "cpu.architecture").contains("/proc/sys/kernel/arch"));
}

#[test]
fn nothing_known_is_said_with_reasons() {
    let machine = facts(&Recorded::empty().root);
    assert_eq!(machine.id, "unknown");
    assert!(machine.facts.len() > 40, "{}", machine.facts.len());
    for fact in &machine.facts {
        if fact.name.starts_with("toolchain.") {
            assert!(fact.value.is_ok(), "{fact:?}");
        } else {
            let reason = fact.value.as_ref().expect_err(&fact.name);
            assert!(reason.len() > 10, "{fact:?}");
        }
    }
}

#[test]
fn names_are_unique_and_grouped_and_values_say_something() {
    for machine in ["vm", "xeon", "arm"]
        .map(|name| facts(&Recorded::named(name).root))
        .into_iter()
        .chain([facts(&Recorded::empty().root), facts(&Root::live())])
    {
        let mut names: Vec<&str> = machine.facts.iter().map(|fact| fact.name.as_str()).collect();
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all, "a name occurs twice");
        for fact in &machine.facts {
            let text = fact.value.as_ref().unwrap_or_else(|reason| reason);
            assert!(!text.trim().is_empty() && !text.contains('\n'), "{fact:?}");
            assert!(!fact.source.is_empty(), "{fact:?}");
        }
    }
}

#[test]
fn the_id_is_stable_and_tells_machines_apart_without_their_names() {
    let (vm, xeon) = (Recorded::named("vm"), Recorded::named("xeon"));
    let id = facts(&vm.root).id;
    assert_eq!(id.len(), 16);
    // A reboot and a new name change nothing.
    vm.write("/proc/sys/kernel/hostname", "renamed");
    vm.change("/proc/stat", "10000", "5");
    assert_eq!(facts(&vm.root).id, id);
    assert_ne!(facts(&xeon.root).id, id);
    // The weakest source still gives one.
    assert_ne!(facts(&Recorded::named("arm").root).id, "unknown");

    let vm = Recorded::named("vm");
    let text = serde_json::to_string(&facts(&vm.root)).unwrap();
    for private in ["0123456789abcdef", "a-private-name", "10.0.0.1"] {
        assert!(!text.contains(private), "{private}");
    }
}

#[test]
fn the_running_machine_is_known() {
    let machine = facts(&Root::live());
    assert_eq!(machine.id, facts(&Root::live()).id);
    for name in ["cpu.model", "topology.threads", "memory.total", "kernel.release"] {
        assert!(machine.fact(name).is_some(), "{name}");
    }
    assert!(machine.fact("toolchain.rustc").unwrap().starts_with("rustc 1."));
    assert!(host::memory_total_bytes(&Root::live()).unwrap() > 1 << 26);
}
