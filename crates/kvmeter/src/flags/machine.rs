//! Flags for probes and knobs around a measurement.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::OnceLock;

use anyhow::Context;
use clap::{Args, ValueHint};
use execute::{knobs::KnobEffects, knobs::Supervisor};
use host::Root;
use host::knob::{KnobError, parse_level, state_folder, trust_register};
use model::Span;
use study::KnobLevels;
use study::ProbesConfig;
use tempfile::TempDir;

use crate::exit::request;
use crate::output::Output;
use crate::recording::unpack;

const MACHINE: &str = "The machine";

#[derive(Debug, Args)]
pub struct MachineFlags {
    /// Probes: auto, off, or a list of probes and their settings, such as
    /// rapl,counters,meter=/dev/ttyUSB0 or model=40:120 (watts idle and full), cachegrind,
    /// event=r412e, scope=machine, every=200ms [default: auto]
    #[arg(long, value_name = "LIST", help_heading = MACHINE)]
    pub probes: Vec<String>,
    /// Fail if this signal cannot be read: energy.total, ipc, ops_per_joule, ...
    #[arg(long, value_name = "SIGNAL", help_heading = MACHINE)]
    pub require: Vec<String>,
    /// Measured time of the idle power before a run, if energy can be read; 0s skips it [default:
    /// 5s]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, help_heading = MACHINE)]
    pub idle_power: Option<Span>,
    /// Turn a knob of the machine for this measurement, and restore it: idle=none, turbo=off, ...
    /// (kvmeter knob list)
    #[arg(long = "knob", value_name = "KNOB=LEVEL", help_heading = MACHINE)]
    pub knobs: Vec<String>,
    #[command(flatten)]
    pub host: MachineRoot,
}

/// The machine that is measured.
#[derive(Debug, Args)]
pub struct MachineRoot {
    #[command(flatten)]
    pub trust: TrustFlag,
    /// A recorded machine instead of this one: a folder, or a file of `doctor --record`
    #[arg(long, hide = true, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub root: Option<PathBuf>,
    /// The folder of a file, as long as these flags live.
    #[arg(skip)]
    unpacked: OnceLock<TempDir>,
}

#[derive(Debug, Args)]
pub struct TrustFlag {
    /// Let knobs write registers that are not documented for this CPU, at your own risk: its model
    /// name as in /proc/cpuinfo
    #[arg(long, value_name = "MODEL", help_heading = MACHINE)]
    pub trust_register: Option<String>,
}

impl TrustFlag {
    /// The machine, with what the user answers for.
    pub fn of(&self, root: Root) -> Result<Root, KnobError> {
        match &self.trust_register {
            Some(model) => trust_register(root, model),
            None => Ok(root),
        }
    }
}

impl MachineRoot {
    pub fn root(&self) -> anyhow::Result<Root> {
        let root = self.folder()?.map_or_else(Root::live, Root::at);
        root.check().map_err(|error| request(format!("--root: {error}")))?;
        Ok(self.trust.of(root)?)
    }

    /// The folder of the recorded machine, if there is one.
    fn folder(&self) -> anyhow::Result<Option<&Path>> {
        let Some(root) = self.root.as_deref().filter(|root| root.is_file()) else {
            return Ok(self.root.as_deref());
        };
        if self.unpacked.get().is_none() {
            let _ = self.unpacked.set(unpack(root)?);
        }
        Ok(self.unpacked.get().map(TempDir::path))
    }

    /// Starts the process that restores the knobs if this one is killed.
    pub fn supervisor(&self) -> anyhow::Result<Supervisor> {
        let program = this_program()?;
        // Without a state folder no journal is opened, and no supervisor is started.
        let folder = state_folder().unwrap_or_default();
        let root = self.folder()?.map(Path::to_owned);
        Ok(Arc::new(move || supervisor(&program, &folder, root.as_deref())))
    }

    /// Runs `work` with the knobs at `levels`, and reports their restoration.
    pub fn with_knobs<T>(
        &self,
        levels: &KnobLevels,
        show: &Output,
        work: impl FnOnce(&KnobEffects) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let supervisor = self.supervisor()?;
        let with_effects = |effects: &KnobEffects| {
            effects.proofs.iter().for_each(|proof| show.note(&proof.to_string()));
            work(effects)
        };
        let (done, restored) =
            execute::knobs::with_levels(&self.root()?, levels, &supervisor, with_effects)?;
        if let Some(restored) = restored {
            show.note(&restored.to_string());
        }
        Ok(done)
    }
}

impl MachineFlags {
    pub fn probes(&self) -> anyhow::Result<ProbesConfig> {
        let mut probes = ProbesConfig { root: self.host.root()?, ..ProbesConfig::default() };
        for list in &self.probes {
            probes.take(list)?;
        }
        for signal in &self.require {
            probes.require(signal)?;
        }
        if let Some(Span(idle)) = self.idle_power {
            probes.idle = idle;
        }
        probes.pass = pass()?;
        Ok(probes)
    }

    pub fn levels(&self) -> anyhow::Result<KnobLevels> {
        let mut levels = KnobLevels::default();
        for text in &self.knobs {
            let (knob, level) =
                parse_level(text).map_err(|error| request(format!("--knob {text}: {error}")))?;
            levels.0.push((knob.to_owned(), level.to_owned()));
        }
        Ok(levels)
    }
}

/// The command line of a pass under a simulator.
pub fn pass() -> anyhow::Result<Vec<std::ffi::OsString>> {
    Ok(vec![this_program()?.into_os_string(), "simulated-pass".into()])
}

pub fn this_program() -> anyhow::Result<PathBuf> {
    std::env::current_exe().context("kvmeter cannot find its own executable")
}

/// The command of the supervisor process for the knobs.
fn supervisor(program: &Path, folder: &Path, root: Option<&Path>) -> Command {
    let mut command = Command::new(program);
    command.args(["knob", "supervise"]).arg(folder);
    if let Some(root) = root {
        command.arg("--root").arg(root);
    }
    command
}

/// The command of the supervisor of knobs that `knob set` turns.
pub fn supervisor_command(folder: &Path, root: Option<&Path>) -> anyhow::Result<Command> {
    Ok(supervisor(&this_program()?, folder, root))
}
