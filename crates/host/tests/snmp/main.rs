//! Power by SNMP: from Net-SNMP's own agent, and from agents that answer badly.

#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;
mod fake;
mod hostile;
mod snmpd;

use std::time::{Duration, Instant};

use common::Recorded;
use host::probe::energy::SnmpSettings;
use host::{Context, EnergySettings, PROBES, RunWatch};
use model::{Reading, Unavailable};

/// Within it even a busy machine answers.
const LIMIT: Duration = Duration::from_secs(120);

fn context(settings: &SnmpSettings) -> Context {
    let energy = EnergySettings { snmp: Some(settings.clone()), ..EnergySettings::default() };
    Context { energy, ..Context::default() }
}

/// Whether the probe can be made, for which it reads once.
fn made(settings: &SnmpSettings) -> Result<(), Unavailable> {
    let machine = Recorded::empty();
    let spec = PROBES.iter().find(|spec| spec.name == "snmp").unwrap();
    spec.make(&machine.root, &context(settings)).map(|_| ())
}

/// Why the probe cannot be made, and what to do about it.
#[track_caller]
fn why(settings: &SnmpSettings) -> (String, String) {
    let why = made(settings).expect_err("a probe");
    (why.reason, why.remedy)
}

/// The same of an agent that answers each request: a busy machine may lose answers.
#[track_caller]
fn refusal(settings: &SnmpSettings) -> (String, String) {
    let start = Instant::now();
    loop {
        let (reason, remedy) = why(settings);
        if !reason.contains("did not answer") {
            return (reason, remedy);
        }
        assert!(start.elapsed() < LIMIT, "{reason}");
    }
}

/// The mean watts and the joules of a short window. A busy machine may lose answers: then another
/// window is read.
#[track_caller]
fn power_and_energy(settings: &SnmpSettings) -> (Reading, Reading) {
    let machine = Recorded::empty();
    let start = Instant::now();
    loop {
        let observed = RunWatch::begin(&machine.root, &context(settings)).end();
        let reading = |signal: &str| {
            observed.readings.iter().find(|reading| reading.signal == signal).unwrap().clone()
        };
        let (power, energy) = (reading("power.snmp"), reading("energy.snmp"));
        if power.value().is_some() && energy.value().is_some() {
            return (power, energy);
        }
        assert!(start.elapsed() < LIMIT, "{power:?} {energy:?}");
    }
}

#[track_caller]
fn watts(settings: &SnmpSettings) -> f64 {
    power_and_energy(settings).0.value().unwrap()
}
