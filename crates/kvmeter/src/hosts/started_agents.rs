//! Agents that a command starts on other machines, and ends: `--agents-on`.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use agents::TlsFiles;
use fleet::{FleetHost, FleetTarget, Hosted, Launcher};
use model::Address;
use model::text::shell_word;
use store::{MachineResource, StoreUrl};

use super::credentials::{MemoryFiles, SessionAuthority};
use super::hosted_verb::{VerbStart, keep};
use super::program::GivenPrograms;
use super::{acquire, host_address, names_of, new_folder_id, target_of};
use crate::exit::request;
use crate::flags::agents::AGENTS_ON;
use crate::output::{Output, write_stderr};

/// Before the address of an agent in its first line.
const LISTENING: &str = "listening on ";

/// The agents that a command wants.
pub struct WantedAgents<'a> {
    /// The value of `--agents-on`.
    pub on: &'a str,
    /// kvmeter for hosts of other architectures.
    pub binaries: &'a [PathBuf],
    pub knobs: &'a [String],
    pub probes: &'a [String],
    /// What they load. They may use the variables and files that these URLs name.
    pub stores: Vec<&'a StoreUrl>,
}

/// Running agents; dropped, they end and leave nothing on their hosts.
pub struct StartedAgents {
    /// Name of each host, and where its agent listens.
    pub agents: Vec<(String, Address)>,
    credentials: MemoryFiles,
    stop: Arc<AtomicBool>,
    leases: Vec<JoinHandle<()>>,
    launcher: Arc<dyn Launcher>,
}

/// What every agent of a session is started with.
struct AgentStart<'a> {
    target: &'a FleetTarget,
    authority: SessionAuthority,
    binaries: &'a [PathBuf],
    allowed: String,
    id: String,
}

/// The names of the hosts of `--agents-on`.
///
/// # Errors
/// It names no host, or one that cannot be used.
pub fn agent_names(on: &str) -> anyhow::Result<Vec<String>> {
    names_of(&target_of(on, AGENTS_ON)?, AGENTS_ON)
}

impl StartedAgents {
    /// Starts one agent a host, all at the same time.
    ///
    /// # Errors
    /// The first host that is not reached or cannot run an agent. None is left running.
    pub fn start(wanted: &WantedAgents<'_>, show: &Output) -> anyhow::Result<StartedAgents> {
        let mut target = target_of(wanted.on, AGENTS_ON)?;
        acquire(&mut target, AGENTS_ON, show)?;
        let start = AgentStart {
            target: &target,
            authority: SessionAuthority::new()?,
            binaries: wanted.binaries,
            allowed: allowed(wanted)?,
            id: new_folder_id()?,
        };
        let credentials = MemoryFiles::of(&start.authority)?;
        let begun: Vec<anyhow::Result<(Hosted, Address)>> = thread::scope(|scope| {
            let threads: Vec<_> = target
                .hosts
                .iter()
                .map(|host| {
                    let start = &start;
                    scope.spawn(move || start.agent(host))
                })
                .collect();
            let failed = |_| Err(anyhow::anyhow!("a thread that starts agents panicked"));
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(failed)).collect()
        });
        let mut all = StartedAgents {
            agents: Vec::new(),
            credentials,
            stop: Arc::default(),
            leases: Vec::new(),
            launcher: Arc::clone(&target.launcher),
        };
        let mut failure = None;
        for (host, begun) in target.hosts.iter().zip(begun) {
            match begun {
                Ok((hosted, address)) => {
                    show.note(&format!("{}: its agent listens at {address}", host.name));
                    let (stop, name, quiet) =
                        (Arc::clone(&all.stop), host.name.clone(), show.is_quiet());
                    let launcher = Arc::clone(&target.launcher);
                    all.leases.push(thread::spawn(move || {
                        let end = keep(hosted, &stop);
                        if end.by_itself.is_some() && !quiet {
                            write_stderr(&format!("{name}: its agent ended: {}", end.last));
                        }
                        // Without the shared connection nothing is lost.
                        let _ = launcher.release(&name);
                    }));
                    all.agents.push((host.name.clone(), address));
                }
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        match failure {
            Some(error) => Err(request(format!("{AGENTS_ON}: {error:#}"))),
            None => Ok(all),
        }
    }

    /// The coordinator's credentials, while `self` lives.
    pub fn credentials(&self) -> TlsFiles {
        self.credentials.paths()
    }
}

impl Drop for StartedAgents {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for lease in self.leases.drain(..) {
            // It ends the agent on its host even where its own thread panicked.
            let _ = lease.join();
        }
        if let Err(error) = self.launcher.release_all() {
            write_stderr(&format!("warning: {error}"));
        }
    }
}

impl AgentStart<'_> {
    /// Starts the agent of one host, and waits until it listens.
    fn agent(&self, host: &FleetHost) -> anyhow::Result<(Hosted, Address)> {
        let address = host_address(self.target, host)?;
        let identity = self.authority.sign(&address)?;
        let start = VerbStart {
            target: self.target,
            host,
            folder: format!("agent-{}-{}", self.id, host.name),
            programs: GivenPrograms { files: self.binaries, flag: "--agents-binary" },
            what: "its agent",
        };
        let ca = self.authority.certificate();
        let files = [
            ("ca.pem", &*ca),
            ("agent.pem", &*identity.certificate),
            ("agent.key", &*identity.key),
        ];
        let listen = match &host.listen {
            Some(address) => bracketed(address),
            None if address.contains(':') => "[::]".to_owned(),
            None => "0.0.0.0".to_owned(),
        };
        let verb = format!(
            "agent --listen {} --agent-ca ca.pem --agent-cert agent.pem --agent-key agent.key{}",
            shell_word(&format!("{listen}:0")),
            self.allowed,
        );
        let started = start.start(&files, &verb, port_of);
        let (hosted, port) = started.map_err(|failure| anyhow::anyhow!(failure.words))?;
        Ok((hosted, Address::Tcp { host: address, port }))
    }
}

/// The port of `listening on 0.0.0.0:PORT (mutual TLS)`.
fn port_of(line: &str) -> Option<u16> {
    let (address, _) = line.strip_prefix(LISTENING)?.split_once(' ')?;
    address.rsplit_once(':')?.1.parse().ok()
}

/// The flags that let agents do what the command orders.
fn allowed(wanted: &WantedAgents<'_>) -> anyhow::Result<String> {
    let mut flags = String::new();
    let mut allow = |flag: &str, value: &str| {
        let word = format!(" {flag} {}", shell_word(value));
        if !flags.contains(&word) {
            flags += &word;
        }
    };
    wanted.knobs.iter().for_each(|knob| allow("--allow-knob", knob));
    wanted.probes.iter().for_each(|probe| allow("--allow-probe", probe));
    for store in &wanted.stores {
        let named = store.local()?;
        for (_, resource, value) in &named {
            match resource {
                MachineResource::Variable => allow("--allow-env", value),
                MachineResource::File => allow("--allow-file", value),
            }
        }
        for server in &store.servers {
            if !named.is_empty() || matches!(server, Address::Unix(_)) {
                allow("--allow-server", &server.to_string());
            }
        }
    }
    Ok(flags)
}

fn bracketed(address: &str) -> String {
    if address.contains(':') { format!("[{address}]") } else { address.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags_for(urls: &[&str]) -> String {
        let stores: Vec<StoreUrl> = urls.iter().map(|url| url.parse().expect("a URL")).collect();
        let wanted = WantedAgents {
            on: "local",
            binaries: &[],
            knobs: &["ddio".to_owned()],
            probes: &[],
            stores: stores.iter().collect(),
        };
        allowed(&wanted).expect("flags")
    }

    #[test]
    fn agents_may_use_what_the_command_names() {
        assert_eq!(flags_for(&["memcached://m1", "memcached://m2"]), " --allow-knob ddio");
        assert_eq!(
            flags_for(&[
                "redis://m1:1?user=a&password_env=PW",
                "redis://m1:1?user=a&password_env=PW"
            ]),
            " --allow-knob ddio --allow-env PW --allow-server m1:1"
        );
        assert_eq!(
            flags_for(&["memcached:///run/m socket"]),
            " --allow-knob ddio --allow-server '/run/m socket'"
        );
    }

    #[test]
    fn the_port_stands_in_the_first_line() {
        assert_eq!(port_of("listening on 0.0.0.0:34567 (mutual TLS)"), Some(34567));
        assert_eq!(port_of("listening on [::]:80 (mutual TLS)"), Some(80));
        assert_eq!(port_of("error: listening on nothing"), None);
    }
}
