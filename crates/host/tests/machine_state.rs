//! Idle states, temperature, caches, network and interrupts around a window.

#[cfg(test)]
mod common;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use common::Recorded;
use common::readings::{find, near, value, why};
use host::{Context, PROBES, Root};
use model::{Reading, Scope, Unavailable, Unit};

/// One window of a second of one probe, with something that happens in it.
#[track_caller]
fn window(
    name: &str,
    root: &Root,
    context: &Context,
    happens: impl FnOnce(),
) -> Result<Vec<Reading>, Unavailable> {
    let spec = PROBES.iter().find(|spec| spec.name == name);
    let spec = spec.unwrap_or_else(|| panic!("no probe is called {name}"));
    let mut probe = (spec.init)(root, context)?;
    probe.start();
    happens();
    Ok(probe.stop(Duration::from_secs(1)))
}

const STATES: &str = "/sys/devices/system/cpu";

#[test]
fn residency_of_each_state_on_the_machine_and_on_the_loads_cpus() {
    let xeon = Recorded::named("xeon-4114");
    let context = Context { cpus: vec![0, 4], ..Context::default() };
    let readings = window("residency", &xeon.root, &context, || {
        for cpu in 0..8 {
            let file =
                |state: u32, name: &str| format!("{STATES}/cpu{cpu}/cpuidle/state{state}/{name}");
            // Half of the second in C6; CPU 0 a tenth in C1E and CPU 4 a tenth polling.
            xeon.change(&file(3, "time"), "900000000", "900500000");
            xeon.change(&file(3, "usage"), "400000", "400010");
            match cpu {
                0 => xeon.change(&file(2, "time"), "30000000", "30100000"),
                4 => xeon.change(&file(0, "time"), "1000", "101000"),
                _ => {}
            }
        }
    })
    .unwrap();
    near(value(&readings, "residency.C6"), 0.5);
    near(value(&readings, "residency.C1E"), 0.1 / 8.0);
    near(value(&readings, "residency.C1"), 0.0);
    near(value(&readings, "residency.POLL"), 0.1 / 8.0);
    // Polling is no sleep.
    near(value(&readings, "residency.idle"), 0.5 + 0.1 / 8.0);
    near(value(&readings, "residency.entries"), 80.0);
    near(value(&readings, "residency.load.C6"), 0.5);
    near(value(&readings, "residency.load.C1E"), 0.05);
    let load = find(&readings, "residency.load.C6");
    assert_eq!((load.scope, load.unit), (Scope::Cpus, Unit::Ratio));
    assert!(load.source.ends_with("of C6, CPUs 0,4"), "{load:?}");
}

#[test]
fn a_state_that_goes_back_and_a_machine_without_states() {
    let xeon = Recorded::named("xeon-4114");
    let readings = window("residency", &xeon.root, &Context::default(), || {
        xeon.change(&format!("{STATES}/cpu3/cpuidle/state3/time"), "900000000", "5");
    })
    .unwrap();
    assert!(why(&readings, "residency.idle").0.contains("cpu3/cpuidle/state3/time went back"));
    let no = window("residency", &Recorded::named("arm").root, &Context::default(), || {});
    assert!(no.unwrap_err().reason.contains("holds no states"));
    let arm = Recorded::named("neoverse");
    let readings = window("residency", &arm.root, &Context::default(), || {}).unwrap();
    near(value(&readings, "residency.LPI-1"), 0.0);
}

#[test]
fn the_hottest_sensor_of_the_cpu_and_throttling_once_a_core() {
    let xeon = Recorded::named("xeon-4114");
    let readings = window("thermal", &xeon.root, &Context::default(), || {
        xeon.write("/sys/class/hwmon/hwmon0/temp1_input", "71500\n");
        let throttle = "thermal_throttle";
        // Both threads of one core see its three events, all CPUs of a socket the package's two.
        for cpu in [1, 5] {
            let folder = format!("{STATES}/cpu{cpu}/{throttle}");
            xeon.write(&format!("{folder}/core_throttle_count"), "3\n");
            xeon.write(&format!("{folder}/core_throttle_total_time_ms"), "30\n");
        }
        for cpu in [1, 3, 5, 7] {
            let folder = format!("{STATES}/cpu{cpu}/{throttle}");
            xeon.write(&format!("{folder}/package_throttle_count"), "5\n");
        }
    })
    .unwrap();
    // The SSD is hotter and no CPU.
    near(value(&readings, "temperature.max"), 71.5);
    let source = &find(&readings, "temperature.max").source;
    assert!(source.contains("hwmon0/temp1_input (coretemp Package id 0)"), "{source}");
    assert!(source.contains("the hottest"), "{source}");
    near(value(&readings, "throttled"), 5.0);
    near(value(&readings, "throttled.time"), 0.03);
    let epyc = Recorded::named("epyc");
    let readings = window("thermal", &epyc.root, &Context::default(), || {}).unwrap();
    near(value(&readings, "temperature.max"), 52.125);
    assert!(why(&readings, "throttled").1.contains("Intel"));
    let arm = Recorded::named("neoverse");
    std::fs::remove_dir_all(arm.path("/sys/class/hwmon")).unwrap();
    let readings = window("thermal", &arm.root, &Context::default(), || {}).unwrap();
    near(value(&readings, "temperature.max"), 49.0);
    // A sensor that disappears in the window.
    let readings = window("thermal", &arm.root, &Context::default(), || {
        arm.remove("/sys/class/thermal/thermal_zone0/temp");
    })
    .unwrap();
    assert!(why(&readings, "temperature.max").0.contains("thermal_zone0/temp does not exist"));
    let no = window("thermal", &Recorded::named("vm").root, &Context::default(), || {});
    assert!(no.unwrap_err().remedy.contains("hypervisor"));
}

#[test]
fn occupancy_and_traffic_of_the_last_level() {
    let xeon = Recorded::named("xeon-4114");
    let data = "/sys/fs/resctrl/mon_data";
    let readings = window("resctrl", &xeon.root, &Context::default(), || {
        xeon.write(&format!("{data}/mon_L3_00/mbm_total_bytes"), "1000064000\n");
        xeon.write(&format!("{data}/mon_L3_01/mbm_local_bytes"), "Unavailable\n");
        xeon.write(&format!("{data}/mon_L3_01/llc_occupancy"), "4096\n");
    })
    .unwrap();
    near(value(&readings, "llc.occupancy"), 1_048_576.0 + 4096.0);
    near(value(&readings, "dram.traffic"), 64_000.0);
    assert!(why(&readings, "dram.traffic.local").0.contains("`Unavailable`"));
    // Monitors that are there and count nothing. All memory may be remote.
    let readings = window("resctrl", &xeon.root, &Context::default(), || {
        xeon.write(&format!("{data}/mon_L3_01/mbm_local_bytes"), "0\n");
        xeon.write(&format!("{data}/mon_L3_00/llc_occupancy"), "0\n");
        xeon.write(&format!("{data}/mon_L3_01/llc_occupancy"), "0\n");
    })
    .unwrap();
    for signal in ["llc.occupancy", "dram.traffic"] {
        assert!(why(&readings, signal).0.contains("did not move"), "{signal}");
    }
    for (machine, remedy) in [("epyc", "mount -t resctrl"), ("vm", "virtual machine")] {
        let no = window("resctrl", &Recorded::named(machine).root, &Context::default(), || {});
        assert!(no.unwrap_err().remedy.contains(remedy), "{machine}");
    }
}

#[test]
fn reads_network_traffic() {
    let xeon = Recorded::named("xeon-4114");
    // A bridge would count the same packets again.
    xeon.write("/sys/class/net/br0/statistics/rx_bytes", "7\n");
    let readings = window("network", &xeon.root, &Context::default(), || {
        let file = |name: &str, file: &str| format!("/sys/class/net/{name}/statistics/{file}");
        xeon.write(&file("eno1", "rx_bytes"), "101500\n");
        xeon.write(&file("eno1", "tx_dropped"), "2\n");
        xeon.write(&file("lo", "tx_bytes"), "5300\n");
    })
    .unwrap();
    near(value(&readings, "nic.received"), 1500.0);
    near(value(&readings, "nic.sent"), 0.0);
    near(value(&readings, "nic.dropped"), 2.0);
    near(value(&readings, "nic.loopback"), 300.0);
    assert!(find(&readings, "nic.sent").source.ends_with("tx_bytes of eno1"));
}

#[test]
fn interrupts_and_switches_of_the_machine() {
    let xeon = Recorded::named("xeon-4114");
    let readings = window("switches", &xeon.root, &Context::default(), || {
        xeon.change("/proc/stat", "intr 5000000", "intr 5000900");
        xeon.change("/proc/stat", "ctxt 9000000", "ctxt 9000033");
        xeon.change("/proc/stat", "processes 40000", "processes 39999");
    })
    .unwrap();
    near(value(&readings, "interrupts.hard"), 900.0);
    near(value(&readings, "interrupts.soft"), 0.0);
    near(value(&readings, "machine.context_switches"), 33.0);
    assert!(why(&readings, "machine.forks").0.contains("went back"));
}

/// This machine itself: it idles, sends over its loopback and is interrupted.
#[test]
fn the_running_machine_sleeps_sends_and_is_interrupted() {
    let root = Root::live();
    let context = Context::default();
    let readings = window("switches", &root, &context, || thread::sleep(Duration::from_millis(50)));
    let readings = readings.unwrap();
    assert!(value(&readings, "machine.context_switches") >= 1.0);
    let interrupts = find(&readings, "interrupts.hard");
    assert!(interrupts.value().is_none_or(|count| count >= 1.0), "{interrupts:?}");

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = listener.local_addr().unwrap();
    let sent = window("network", &root, &context, || {
        let mut sender = TcpStream::connect(to).unwrap();
        let (mut receiver, _) = listener.accept().unwrap();
        let reader = thread::spawn(move || {
            let mut all = Vec::new();
            receiver.read_to_end(&mut all).unwrap();
            all.len()
        });
        sender.write_all(&vec![5; 1 << 20]).unwrap();
        drop(sender);
        assert_eq!(reader.join().unwrap(), 1 << 20);
    });
    let loopback = sent.unwrap();
    assert!(value(&loopback, "nic.loopback") >= f64::from(1 << 20));

    match window("residency", &root, &context, || thread::sleep(Duration::from_millis(200))) {
        Ok(readings) => {
            let idle = value(&readings, "residency.idle");
            assert!((0.0..=1.0).contains(&idle), "{idle}");
            let states: Vec<&Reading> =
                readings.iter().filter(|r| r.source.contains(" of ")).collect();
            assert!(!states.is_empty(), "{readings:#?}");
            for state in states {
                assert!(
                    state.value().is_some_and(|share| (0.0..=1.0).contains(&share)),
                    "{state:?}"
                );
            }
        }
        // Where there is no cpuidle, the reason says so.
        Err(no) => assert!(no.reason.contains("cpuidle"), "{no}"),
    }
}
