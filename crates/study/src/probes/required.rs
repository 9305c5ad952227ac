//! Signals that a study cannot do without.

use host::PROBES;
use model::suggest::hint;

/// Signals derived from readings when a run has ended.
const DERIVED: [&str; 5] =
    ["cpu_s_per_mop", "ops_per_joule", "joules_per_op", "ops_per_joule_net", "joules_per_op_net"];
/// Prefixes whose rest depends on the machine or the study.
const OPEN: [&str; 8] = [
    "residency.",
    "event.",
    "ipc.",
    "energy.",
    "power.",
    "simulated.",
    "ops_per_joule",
    "joules_per_op",
];

/// Refuses a name that no run has.
pub(crate) fn check_name(signal: &str) -> Result<(), String> {
    let known = PROBES.iter().flat_map(|spec| spec.signals).map(|signal| signal.name);
    let known = known.chain(DERIVED).chain(of_servers());
    let open = OPEN.iter().any(|open| signal.starts_with(open) && signal.len() > open.len());
    match open || known.clone().any(|name| name == signal) {
        true => Ok(()),
        false => Err(format!("there is no signal `{signal}`; {}", hint(signal, known))),
    }
}

/// All signals of servers.
fn of_servers() -> impl Iterator<Item = &'static str> + Clone {
    const FURTHER: [&str; 8] = [
        "server.latency",
        "server.latency.timed",
        "server.latency.cost",
        "server.syscalls",
        "server.syscalls_per_mop",
        "server.context_switches",
        "server.context_switches_per_mop",
        "server.cpu_s_per_mop",
    ];
    server::watch::FIGURES.into_iter().chain(FURTHER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_signals_are_checked() {
        for name in [
            "energy.total",
            "ipc",
            "residency.C6",
            "event.stalls",
            "ops_per_joule",
            "nic.sent",
            "server.cpu",
            "server.latency",
            "server.syscalls_per_mop",
        ] {
            assert_eq!(check_name(name), Ok(()), "{name}");
        }
        let why = check_name("server.latncy").unwrap_err();
        assert!(why.contains("did you mean `server.latency`?"), "{why}");
        let why = check_name("ipcc").unwrap_err();
        assert!(why.contains("did you mean `ipc`?"), "{why}");
        assert!(check_name("residency.").is_err());
    }
}
