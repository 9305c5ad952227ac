//! What every probe must do, and what each reads.

#[cfg(test)]
mod common;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::hint::black_box;
use std::io::Write;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use common::Recorded;
use host::probe::SignalWindow;
use host::{Context, PROBES, Root, RunWatch};
use model::{Origin, Reading, ReadingValue, Scope, Unit};

fn context() -> Context {
    Context { store_path: Some(PathBuf::from("/store")), ..Context::default() }
}

fn roots() -> (Vec<Recorded>, Vec<Root>) {
    let recorded = vec![
        Recorded::empty(),
        Recorded::named("vm"),
        Recorded::named("xeon"),
        Recorded::named("arm"),
        Recorded::named("xeon-4114"),
        Recorded::named("epyc"),
        Recorded::named("neoverse"),
    ];
    let roots = recorded.iter().map(|machine| machine.root.clone()).chain([Root::live()]);
    let roots = roots.collect();
    (recorded, roots)
}

#[track_caller]
fn find<'a>(readings: &'a [Reading], signal: &str) -> &'a Reading {
    let reading = readings.iter().find(|reading| reading.signal == signal);
    reading.unwrap_or_else(|| panic!("no reading of {signal}"))
}

#[track_caller]
fn why(reading: &Reading) -> (&str, &str) {
    match &reading.answer {
        ReadingValue::Unavailable { reason, remedy } => {
            (reason, remedy.as_deref().unwrap_or_else(|| panic!("no remedy: {reading:?}")))
        }
        ReadingValue::Value(value) => panic!("{} has the value {value}", reading.signal),
    }
}

/// The conformance test: a new probe passes it or is not one.
#[test]
fn every_probe_passes_the_conformance_test() {
    let mut names = BTreeSet::new();
    for spec in PROBES {
        assert!(names.insert(spec.name), "two probes are called {}", spec.name);
        assert!(!spec.signals.is_empty() && !spec.reads.is_empty(), "{}", spec.name);
        for signal in spec.signals {
            assert!(names.insert(signal.name), "two signals are called {}", signal.name);
            assert!(!signal.name.is_empty() && !signal.source.is_empty(), "{}", signal.name);
        }
    }
    let (_recorded, roots) = roots();
    let window = Duration::from_millis(1500);
    for root in &roots {
        for context in [Context::default(), context()] {
            for spec in PROBES {
                let mut probe = match (spec.init)(root, &context) {
                    Ok(probe) => probe,
                    Err(no) => {
                        assert!(no.reason.len() > 10 && no.remedy.len() > 3, "{no:?}");
                        continue;
                    }
                };
                // Two windows of one probe: the second is not the first's.
                for _ in 0..2 {
                    probe.start();
                    let readings = probe.stop(window);
                    let pairs = spec.signals.iter().zip(&readings);
                    assert!(readings.len() >= spec.signals.len(), "{}", spec.name);
                    // What the machine names itself comes behind: an idle state, a raw event.
                    for further in &readings[spec.signals.len()..] {
                        assert!(!names.contains(further.signal.as_str()), "twice: {further:?}");
                        let declared = |part: &&host::Signal| part.is_named(&further.signal);
                        let part = spec.parts.iter().find(declared);
                        assert_eq!(part.map(|part| part.unit), Some(further.unit), "{further:?}");
                        assert!(!further.source.is_empty(), "{further:?}");
                        assert_eq!(further.origin, Origin::Measured);
                    }
                    for (signal, reading) in pairs {
                        assert_eq!(reading.signal, signal.name);
                        assert_eq!(reading.unit, signal.unit);
                        // Without a DRAM domain, the total is the package's, and says so.
                        assert!(
                            reading.scope == signal.scope
                                || (signal.name, reading.scope) == ("energy.total", Scope::Package),
                            "{reading:?}"
                        );
                        assert!(reading.source.starts_with(signal.source), "{reading:?}");
                        assert_eq!(reading.origin, signal.origin, "{reading:?}");
                        assert!(signal.origin == Origin::Measured || spec.name == "model");
                        let covered = match signal.covers {
                            SignalWindow::Window => window.as_secs_f64(),
                            SignalWindow::End => 0.0,
                        };
                        assert_eq!(reading.window_s, covered, "{}", signal.name);
                        match &reading.answer {
                            ReadingValue::Value(value) => {
                                assert!(value.is_finite() && *value >= 0.0, "{reading:?}");
                            }
                            ReadingValue::Unavailable { .. } => {
                                let (reason, remedy) = why(reading);
                                assert!(reason.len() > 10 && remedy.len() > 3, "{reading:?}");
                            }
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn a_watch_names_every_signal_once_even_where_nothing_can_be_read() {
    let (_recorded, roots) = roots();
    let promised: Vec<String> = PROBES
        .iter()
        .flat_map(|spec| spec.signals)
        .map(|signal| signal.name.to_owned())
        .chain(PROBES.iter().map(|spec| format!("probe.{}.cost", spec.name)))
        .chain(["probe.sampler.cost".to_owned()])
        .collect();
    for root in &roots {
        let readings = RunWatch::begin(root, &context()).end().readings;
        let named: Vec<&str> = readings.iter().map(|reading| reading.signal.as_str()).collect();
        let once: BTreeSet<&&str> = named.iter().collect();
        assert_eq!(once.len(), named.len(), "twice: {named:?}");
        // In their order; signals that the machine names itself stand between.
        let known: Vec<&&str> =
            named.iter().filter(|name| promised.iter().any(|p| p == **name)).collect();
        assert_eq!(
            known,
            promised.iter().map(String::as_str).collect::<Vec<_>>().iter().collect::<Vec<_>>()
        );
    }
    let empty = Recorded::empty();
    let watch = RunWatch::begin(&empty.root, &context());
    for reading in watch.end().readings {
        why(&reading);
    }
}

#[test]
fn readings_are_the_gains_of_the_files() {
    let vm = Recorded::named("vm");
    let watch = RunWatch::begin(&vm.root, &context());
    vm.change("/proc/self/io", "write_bytes: 4096", "write_bytes: 12288");
    vm.change("/proc/self/io", "wchar: 314", "wchar: 1314");
    vm.change(
        "/proc/stat",
        "cpu  10000 0 2000 85000 900 0 100 2000",
        "cpu  10050 0 2010 85100 900 10 110 2020",
    );
    vm.change("/proc/diskstats", "4530634", "4530644");
    vm.change("/proc/diskstats", "11620 34981", "11870 34981");
    vm.change("/proc/diskstats", "674 19", "679 19");
    vm.change("/proc/pressure/io", "8658315", "8908315");
    vm.change("/proc/self/status", "VmHWM:	    8192", "VmHWM:	    9000");
    let readings = watch.end().readings;
    for (signal, value, unit, scope) in [
        ("io.written", 8192.0, Unit::Bytes, Scope::Process),
        ("io.read", 0.0, Unit::Bytes, Scope::Process),
        ("io.requested.written", 1000.0, Unit::Bytes, Scope::Process),
        ("machine.steal", 0.1, Unit::Ratio, Scope::Machine),
        ("machine.busy", 0.4, Unit::Ratio, Scope::Machine),
        ("machine.interrupts", 0.1, Unit::Ratio, Scope::Machine),
        ("machine.io_wait", 0.0, Unit::Ratio, Scope::Machine),
        ("device.read", 5120.0, Unit::Bytes, Scope::Device),
        ("device.busy", 0.25, Unit::Seconds, Scope::Device),
        ("device.flushes", 5.0, Unit::Count, Scope::Device),
        ("psi.io.some", 0.25, Unit::Seconds, Scope::Machine),
        ("memory.peak", 9000.0 * 1024.0, Unit::Bytes, Scope::Process),
        ("memory.resident", 4096.0 * 1024.0, Unit::Bytes, Scope::Process),
    ] {
        let reading = find(&readings, signal);
        let found = reading.value().unwrap_or_else(|| panic!("{reading:?}"));
        assert!((found - value).abs() < 1e-9, "{signal}: {found}, not {value}");
        assert_eq!((reading.unit, reading.scope), (unit, scope), "{signal}");
    }
    assert!(find(&readings, "device.read").source.ends_with("of vda"));
    // A recorded machine cannot speak for getrusage.
    assert!(why(find(&readings, "cpu.user")).0.contains("getrusage"));
    assert!(why(find(&readings, "machine.neighbours")).0.contains("getrusage"));
}

#[test]
fn a_counter_that_goes_back_is_no_number() {
    let vm = Recorded::named("vm");
    let watch = RunWatch::begin(&vm.root, &context());
    vm.change("/proc/self/io", "read_bytes: 8192", "read_bytes: 10");
    vm.change("/proc/stat", " 900 0 100 2000", " 890 0 100 2100");
    let readings = watch.end().readings;
    let (reason, _) = why(find(&readings, "io.read"));
    assert!(reason.contains("went back from 8192 to 10"), "{reason}");
    assert_eq!(find(&readings, "io.written").value(), Some(0.0));
    // The kernel lets iowait go down; the other shares still hold.
    assert!(why(find(&readings, "machine.io_wait")).0.contains("went back"));
    assert!(find(&readings, "machine.steal").value().is_some());
}

#[test]
fn a_file_that_disappears_is_reported() {
    let vm = Recorded::named("vm");
    let watch = RunWatch::begin(&vm.root, &context());
    vm.remove("/proc/self/io");
    let readings = watch.end().readings;
    assert_eq!(why(find(&readings, "io.read")).0, "/proc/self/io does not exist");
}

#[test]
fn a_peak_from_before_the_window_is_not_this_window_s() {
    let vm = Recorded::named("vm");
    let readings = RunWatch::begin(&vm.root, &context()).end().readings;
    assert!(why(find(&readings, "memory.peak")).0.contains("before the window"));
    // A write that has no effect changes nothing.
    vm.write("/proc/self/clear_refs", "");
    let readings = RunWatch::begin(&vm.root, &context()).end().readings;
    assert_eq!(fs::read_to_string(vm.path("/proc/self/clear_refs")).unwrap(), "5");
    assert!(why(find(&readings, "memory.peak")).0.contains("before the window"));
    // With the effect that the kernel documents, the peak is the window's.
    vm.change("/proc/self/status", "VmHWM:\t    8192", "VmHWM:\t    4096");
    let readings = RunWatch::begin(&vm.root, &context()).end().readings;
    assert_eq!(find(&readings, "memory.peak").value(), Some(4096.0 * 1024.0));
}

#[test]
fn memory_freed_before_the_window_is_not_in_its_peak() {
    let large = 256 << 20;
    drop(black_box(vec![1u8; large]));
    let readings = RunWatch::begin(&Root::live(), &Context::default()).end().readings;
    let peak = find(&readings, "memory.peak");
    match peak.value() {
        Some(peak) => assert!(peak < large as f64, "{peak}"),
        None => assert!(why(peak).0.contains("before the window"), "{peak:?}"),
    }
}

#[test]
fn several_disks_are_summed_and_old_kernels_count_no_flushes() {
    let xeon = Recorded::named("xeon");
    let context = Context { store_path: Some(PathBuf::from("/array/store")), ..Context::default() };
    let watch = RunWatch::begin(&xeon.root, &context);
    xeon.change("/proc/diskstats", "20 0 1600", "22 0 1610");
    xeon.change("/proc/diskstats", "60 0 4800", "63 0 4820");
    let readings = watch.end().readings;
    assert_eq!(find(&readings, "device.writes").value(), Some(5.0));
    assert_eq!(find(&readings, "device.written").value(), Some(30.0 * 512.0));
    assert!(find(&readings, "device.written").source.ends_with("of sda, sdb"));
    assert!(why(find(&readings, "device.flushes")).1.contains("5.5"));
}

#[test]
fn reads_this_process() {
    let dir = tempfile::tempdir().unwrap();
    let root = Root::live();
    let watch = RunWatch::begin(
        &root,
        &Context { store_path: Some(dir.path().to_owned()), ..Context::default() },
    );
    let mut file = File::create(dir.path().join("written")).unwrap();
    file.write_all(&vec![7; 1 << 20]).unwrap();
    file.sync_all().unwrap();
    // Pages that are touched for the first time are minor faults.
    let block = black_box(vec![1u8; 8 << 20]);
    let began = Instant::now();
    let mut sum = 0u64;
    while began.elapsed() < Duration::from_millis(120) {
        sum = block.iter().step_by(4096).fold(sum, |sum, byte| sum + u64::from(*byte));
    }
    black_box(sum);
    // The thread that ends a watch need not be the one that began it.
    let readings = thread::spawn(move || watch.end().readings).join().unwrap();
    let value = |signal: &str| {
        let reading = find(&readings, signal);
        reading.value().unwrap_or_else(|| panic!("{reading:?}"))
    };
    assert!(value("cpu.user") + value("cpu.system") > 0.01);
    assert!(value("cpu.threads") >= 1.0);
    assert!(value("memory.faults.minor") >= 1.0);
    assert!(value("memory.resident") > 1e6);
    assert!(value("io.requested.written") >= (1 << 20) as f64);
    assert!(find(&readings, "cpu.user").window_s >= 0.12);
    for name in ["cpu", "io", "machine"] {
        assert!(value(&format!("probe.{name}.cost")) > 0.0);
    }
}
