//! The catalogue of signals: those of all probes, and all others of a run.

use host::PROBES;
use model::Signal;
use model::signal::RUN_SIGNALS;
use model::suggest::hint;

/// Every signal that a run may have.
pub fn catalogue() -> impl Iterator<Item = &'static Signal> + Clone {
    PROBES.iter().flat_map(|spec| spec.signals.iter().chain(spec.parts)).chain(RUN_SIGNALS)
}

/// Refuses a name that no signal of any run has.
///
/// # Errors A sentence with the nearest name.
pub fn check_signal(name: &str) -> Result<(), String> {
    match catalogue().any(|signal| signal.is_named(name)) {
        true => Ok(()),
        false => {
            let hint = hint(name, catalogue().map(|signal| signal.name));
            Err(format!("there is no signal `{name}`; {hint}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_signal_is_known_by_its_name_or_that_of_a_part() {
        for name in [
            "energy.total",
            "ipc",
            "ipc.cpu3",
            "residency.C6",
            "residency.load.C1E",
            "event.stalls",
            "ops_per_joule",
            "joules_per_op_net.total",
            "nic.sent",
            "server.cpu",
            "server.latency",
            "server.syscalls_per_mop",
            "volume.1.busy",
            "volume.12.queue",
            "energy.package.0",
            "power.hwmon.ina226.vdd_12v",
            "client.lateness",
            "probe.cpu.cost",
        ] {
            assert_eq!(check_signal(name), Ok(()), "{name}");
        }
    }

    #[test]
    fn an_unknown_signal_is_refused_with_the_nearest() {
        for (wrong, meant) in [
            ("server.latncy", "server.latency"),
            ("ipcc", "ipc"),
            ("energy.totl", "energy.total"),
            ("client.latness", "client.lateness"),
            ("volume.one.busy", "volume.N.busy"),
        ] {
            let why = check_signal(wrong).unwrap_err();
            assert!(why.contains(&format!("did you mean `{meant}`?")), "{why}");
        }
        assert!(check_signal("residency.").is_err());
    }

    #[test]
    fn no_two_signals_share_a_name() {
        let mut names = BTreeSet::new();
        for signal in catalogue() {
            assert!(names.insert(signal.name), "{}", signal.name);
        }
    }
}
