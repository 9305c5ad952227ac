//! The serial power meter, played by a simulator behind a pseudo-terminal.

#[cfg(test)]
mod common;
#[cfg(test)]
mod simulator;

use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use host::probe::energy::{Channels, MeterSettings, MeterVariant};
use host::{Context, EnergySettings, RunWatch, WatchReadings};
use model::{Reading, ReadingValue, Scope};
use simulator::{Play, Simulated, simulated};

fn settings() -> MeterSettings {
    MeterSettings::at("/dev/ttyUSB0")
}

fn context(meter: MeterSettings) -> Context {
    let energy = EnergySettings { meter: Some(meter), ..Default::default() };
    Context { energy, ..Context::default() }
}

fn watch(simulated: &Simulated, meter: MeterSettings) -> WatchReadings {
    let watch = RunWatch::begin(&simulated.machine.root, &context(meter));
    thread::sleep(Duration::from_millis(60));
    watch.end()
}

#[track_caller]
fn find<'a>(observed: &'a WatchReadings, signal: &str) -> &'a Reading {
    let reading = observed.readings.iter().find(|reading| reading.signal == signal);
    reading.unwrap_or_else(|| panic!("no reading of {signal}"))
}

#[track_caller]
fn value(observed: &WatchReadings, signal: &str) -> f64 {
    find(observed, signal).value().unwrap_or_else(|| panic!("{:?}", find(observed, signal)))
}

#[track_caller]
fn near(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-9 * expected, "{found}, not {expected}");
}

#[track_caller]
fn why(observed: &WatchReadings) -> (&str, &str) {
    match &find(observed, "energy.meter").answer {
        ReadingValue::Unavailable { reason, remedy } => {
            (reason, remedy.as_deref().unwrap_or_default())
        }
        ReadingValue::Value(value) => panic!("it has the value {value}"),
    }
}

#[test]
fn watts_become_joules_over_the_window() {
    for play in [Play::Watts(123.45), Play::Slowly(123.45)] {
        let meter = simulated(&[play]);
        let began = Instant::now();
        let observed = watch(&meter, settings());
        let all = began.elapsed().as_secs_f64();
        let power = find(&observed, "power.meter");
        assert!((power.value().unwrap() - 123.45).abs() < 1e-9, "{power:?}");
        assert_eq!(
            (power.scope, power.source.as_str()),
            (Scope::Wall, "MCP39F511 on /dev/ttyUSB0")
        );
        let energy = find(&observed, "energy.meter");
        let joules = energy.value().unwrap();
        assert!(joules >= 123.44 * energy.window_s && joules <= 123.46 * all, "{energy:?}");
        let series = &observed.series[0];
        assert_eq!(series.signal, "power.meter");
        assert!(series.values.len() >= 2 && series.values.iter().all(|watts| *watts == 123.45));
    }
}

#[test]
fn variants_channels_and_divisors() {
    for (variant, channels, divisor, expected) in [
        (MeterVariant::Mcp39f511a, Channels::All, 100.0, 90.0),
        (MeterVariant::Mcp39f511a, Channels::First, 10.0, 900.0),
        (MeterVariant::Mcp39f511n, Channels::All, 100.0, 90.0),
        (MeterVariant::Mcp39f511n, Channels::First, 100.0, 30.0),
        (MeterVariant::Mcp39f511n, Channels::Second, 100.0, 60.0),
    ] {
        let meter = simulated(&[Play::Watts(90.0)]);
        let chosen = MeterSettings { variant, channels, watts_divisor: divisor, ..settings() };
        near(value(&watch(&meter, chosen), "power.meter"), expected);
    }
}

#[test]
fn a_bad_reply_is_retried() {
    for flaw in [
        Play::Nak,
        Play::ChecksumFailed,
        Play::BadChecksum,
        Play::Short,
        Play::Noise,
        Play::Silence,
    ] {
        let meter = simulated(&[flaw, flaw, Play::Watts(50.0)]);
        near(value(&watch(&meter, settings()), "power.meter"), 50.0);
    }
}

#[test]
fn a_failing_meter_reports_its_failure() {
    for (flaw, reason, remedy) in [
        (Play::Nak, "NAK", "cable"),
        (Play::ChecksumFailed, "reached it damaged", "cable"),
        (Play::BadChecksum, "wrong checksum", "cable"),
        (Play::Short, "ended after 30 of 47 bytes", "cable"),
        (Play::Noise, "not from an MCP39F511", "baud rate"),
        (Play::Silence, "did not answer", "switch it on"),
    ] {
        let meter = simulated(&[flaw]);
        let observed = watch(&meter, settings());
        let shown_reason = why(&observed);
        assert!(
            shown_reason.0.contains(reason) && shown_reason.1.contains(remedy),
            "{flaw:?}: {shown_reason:?}"
        );
        assert!(shown_reason.0.contains("failed 3 times"), "{shown_reason:?}");
        assert_eq!(meter.asked.load(Ordering::SeqCst), 3, "{flaw:?}");
    }
}

#[test]
fn a_meter_that_dies_in_the_run_leaves_no_number() {
    let meter = simulated(&[Play::Watts(50.0), Play::Watts(50.0), Play::Silence]);
    let observed = watch(&meter, settings());
    // The first question is that of the probe's making, the second that of the window's start.
    assert!(why(&observed).0.contains("did not answer"), "{observed:?}");
}

#[test]
fn a_port_has_one_user() {
    let meter = simulated(&[Play::Watts(50.0)]);
    let first = RunWatch::begin(&meter.machine.root, &context(settings()));
    let second = RunWatch::begin(&meter.machine.root, &context(settings())).end();
    assert!(why(&second).0.contains("in use by another program"), "{:?}", why(&second));
    near(value(&first.end(), "power.meter"), 50.0);
    // And it is free again.
    near(value(&watch(&meter, settings()), "power.meter"), 50.0);
}

#[test]
fn an_invalid_port_is_reported() {
    let mut meter = simulated(&[Play::Watts(50.0)]);
    let observed = watch(&meter, MeterSettings::at("/dev/ttyUSB7"));
    assert!(why(&observed).0.contains("does not exist"), "{:?}", why(&observed));
    meter.machine.write("/dev/file", "");
    let observed = watch(&meter, MeterSettings::at("/dev/file"));
    assert!(
        why(&observed).0.contains("does not exist"),
        "a recorded machine lends no device: {observed:?}"
    );
    let file = meter.machine.path("/dev/file");
    meter.machine.root = meter.machine.root.with_device("/dev/file", file);
    let observed = watch(&meter, MeterSettings::at("/dev/file"));
    assert!(why(&observed).0.contains("could not be opened"), "{:?}", why(&observed));
}
