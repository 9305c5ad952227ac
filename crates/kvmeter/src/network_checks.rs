//! Checks of the doctor for networked stores: protocols, engines, and server latency.

use host::{DoctorCheck, DoctorState};
use model::{Engine, Unavailable};
use server::launch::{LaunchError, PROGRAMS, installed};
use server::tap::Tap;
use store::{ADAPTERS, Adapter, DataLocation};

/// The remedy for a lack of kernel features.
const ANOTHER_KERNEL: &str = "run on a machine whose kernel and container allow it";

/// Every check of the group `network`.
pub fn network_checks() -> Vec<DoctorCheck> {
    let mut checks: Vec<DoctorCheck> = ADAPTERS.iter().filter_map(protocols).collect();
    checks.extend(Engine::ALL.map(engine));
    checks.push(check(
        "receive-timestamps",
        "the kernel timestamps answers, which excludes the client's own wake-up",
        match reactor::stamps_available() {
            Ok(()) => Ok("SO_TIMESTAMPNS on TCP".to_owned()),
            Err(error) => Err(Unavailable::new(error.to_string(), ANOTHER_KERNEL)),
        },
    ));
    checks.push(check(
        "server-latency.tap",
        "times requests inside a server that kvmeter starts, by a preloaded library",
        match Tap::prepare() {
            Ok(_) => Ok("can be preloaded".to_owned()),
            Err(error) => Err(Unavailable::new(error.to_string(), "set TMPDIR to another folder")),
        },
    ));
    checks.push(check(
        "server-latency.ebpf",
        "times requests of a running server, by programs on its system calls",
        match syscall_trace::available() {
            Ok(()) => Ok("can be traced".to_owned()),
            Err(why) => Err(why.into()),
        },
    ));
    checks.extend(PROGRAMS.iter().map(|program| {
        let why = "kvmeter can start it for a measurement: `bench --server`, [server.NAME]";
        let found = installed(*program)
            .map(|(path, version)| format!("{version}, {}", path.display()))
            .map_err(|error| match error {
                LaunchError::NotInstalled { binary, package, .. } => Unavailable::new(
                    format!("`{binary}` is not on the PATH"),
                    format!("install the package `{package}`"),
                ),
                other => Unavailable::new(other.to_string(), "reinstall it"),
            });
        check(&format!("server.{}", program.name()), why, found)
    }));
    checks
}

/// The protocols of a store behind a network; none of the others.
fn protocols(adapter: &Adapter) -> Option<DoctorCheck> {
    if !matches!(adapter.location, DataLocation::Servers { .. }) {
        return None;
    }
    let option = adapter.options.iter().find(|option| option.name == "protocol")?;
    let why = format!("chosen by ?protocol=NAME in the URL; {} by default", option.default);
    let found = option.what.replace('`', "");
    Some(check(&format!("protocols.{}", adapter.scheme), &why, Ok(found)))
}

fn engine(engine: Engine) -> DoctorCheck {
    let why = "how one thread serves many connections: `bench --engine`";
    let found = match reactor::available(engine) {
        Ok(()) if engine == reactor::cheapest() => Ok("available, and used by default".to_owned()),
        Ok(()) => Ok("available".to_owned()),
        Err(not) => {
            let remedy = "nothing: epoll is used, and gives the same results";
            Err(Unavailable::new(not.why, remedy))
        }
    };
    check(&format!("engine.{engine}"), why, found)
}

/// A check: available, or the reason and remedy.
fn check(name: &str, why: &str, found: Result<String, Unavailable>) -> DoctorCheck {
    let (state, found, remedy) = match found {
        Ok(found) => (DoctorState::Ok, found, None),
        Err(not) => (DoctorState::Unavailable, not.reason, Some(not.remedy)),
    };
    let (name, group, why) = (name.to_owned(), "network".to_owned(), why.to_owned());
    DoctorCheck { name, group, state, found, why, remedy }
}
