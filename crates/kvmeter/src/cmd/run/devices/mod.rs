//! The devices of `--device`: folders that are used as they are, and block devices that are
//! preconditioned, formatted and mounted while kvmeter runs.

mod folders;
mod prepare;

use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use micro::precondition::volume::MadeFileSystem;
use micro::precondition::{Consent, DeviceSystem, PreconditionJob, PreconditionRequest, Target};
use study::MbwuTable;

use self::folders::uuid_made_before;
use super::args::RunArgs;
use crate::cmd::precondition::{failed, how_to_confirm};
use crate::exit::request;

/// Length of a round of random writes after the sequential ones of a study.
const RANDOM_ROUND: Duration = Duration::from_secs(60);
const RANDOM_ROUNDS: u32 = 25;

/// The named devices; those that will be overwritten are confirmed.
pub struct NamedDevices {
    named: Vec<DeviceKind>,
    consent: Consent,
    /// What is done to block devices before they get a file system.
    order: Option<PreconditionRequest>,
    /// Whether they were prepared by the invocation that is resumed.
    resume: bool,
}

enum DeviceKind {
    Folder(PathBuf),
    Block(Box<Target>),
    /// Prepared before, only mounted now.
    Prepared(Box<MadeFileSystem>),
}

impl NamedDevices {
    /// Inspects the named devices without writing. `out` is the results file with the file systems
    /// of a resumed evaluation.
    pub fn of(args: &RunArgs, table: &MbwuTable, out: &Path) -> anyhow::Result<NamedDevices> {
        let system = DeviceSystem::live();
        let consent = Consent { names: args.confirm.clone(), overwrite: args.overwrite.clone() };
        let mut named = Vec::new();
        for (at, device) in args.device.iter().enumerate() {
            let metadata = device
                .metadata()
                .map_err(|error| request(format!("--device {}: {error}", device.display())))?;
            if !metadata.file_type().is_block_device() {
                named.push(DeviceKind::Folder(device.clone()));
                continue;
            }
            let target = Target::inspect(&system, device, None).map_err(failed)?;
            named.push(match args.resume {
                true => {
                    let uuid = uuid_made_before(out, device, at + 1)?;
                    DeviceKind::Prepared(Box::new(
                        MadeFileSystem::reopen(target, &uuid).map_err(failed)?,
                    ))
                }
                false => {
                    if !args.dry_run {
                        target.confirm(&consent).map_err(failed)?;
                    }
                    DeviceKind::Block(Box::new(target))
                }
            });
        }
        let order = table.precondition.map(|table| PreconditionRequest {
            share: table.share,
            random: table.random.then_some((RANDOM_ROUND, RANDOM_ROUNDS)),
            ..PreconditionRequest::default()
        });
        if let Some(order) = &order {
            for named in &named {
                if let DeviceKind::Block(target) = named {
                    PreconditionJob::describe(target, order).map_err(failed)?;
                }
            }
        }
        Ok(NamedDevices { named, consent, order, resume: args.resume })
    }

    /// The share of their addresses that is preconditioned; none where a folder is used as it is.
    pub fn preconditioned(&self) -> Option<f64> {
        let whole = !self.named.iter().any(|named| matches!(named, DeviceKind::Folder(_)));
        self.order.as_ref().filter(|_| whole).map(|order| order.share)
    }

    /// One line for each step that would be done.
    pub fn describe(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for named in &self.named {
            match named {
                DeviceKind::Folder(path) => {
                    lines.push(format!("{}: used as it is", path.display()))
                }
                DeviceKind::Prepared(made) => {
                    lines.push(format!("{}: mounted", made.path().display()))
                }
                DeviceKind::Block(target) => {
                    let path = target.path.display();
                    let steps =
                        self.order.as_ref().map(|order| PreconditionJob::describe(target, order));
                    match steps {
                        Some(Ok(steps)) => lines.extend(steps),
                        _ => lines.push(format!("{path}: not preconditioned")),
                    }
                    lines.push(format!(
                        "{path}: gets an ext4 file system, and loses all its content"
                    ));
                    let how = how_to_confirm(target);
                    lines.extend(how.lines().map(|line| format!("{path}: {line}")));
                }
            }
        }
        debug_assert!(!self.resume || !lines.iter().any(|line| line.contains("loses")));
        lines
    }

    /// The folders of the stores, if they are known before any preparation.
    pub fn folders(&self) -> Option<Vec<PathBuf>> {
        let folder = |named: &DeviceKind| match named {
            DeviceKind::Folder(path) => Some(path.clone()),
            _ => None,
        };
        self.named.iter().map(folder).collect()
    }
}
