//! The devices of `--device`: folders that are used as they are, and block devices that are
//! preconditioned, formatted and mounted while kvmeter runs.

use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use micro::precondition::volume::{MadeFileSystem, MountedVolume, own_mounts};
use micro::precondition::{
    Consent, DeviceSystem, JobEnd, PreconditionJob, PreconditionRequest, Target,
};
use model::Fact;
use study::MbwuTable;

use super::args::RunArgs;
use super::results::resumable;
use crate::cmd::precondition::{PreconditionProgress, RULE, failed, how_to_confirm, state_file};
use crate::exit::request;
use crate::output::Output;

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

/// Devices with a file system, mounted until this is dropped.
pub struct DeviceFolders {
    paths: Vec<PathBuf>,
    /// With the number of the device, counted from 1.
    volumes: Vec<(usize, MountedVolume)>,
    /// Where they are mounted.
    _folder: Option<TemporaryFolder>,
}

/// The machine fact with the UUID of the file system that an execution made on a device.
fn uuid_fact(number: usize) -> String {
    format!("mbwu.volume.{number}")
}

/// A folder that is removed on drop if it is empty.
struct TemporaryFolder(PathBuf);

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

impl DeviceFolders {
    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// Facts by which a resumed evaluation recognises its own file systems.
    pub fn facts(&self) -> Vec<Fact> {
        let fact = |(number, volume): &(usize, MountedVolume)| Fact {
            name: uuid_fact(*number),
            value: Ok(volume.uuid().to_owned()),
            source: "mkfs.ext4 -U".to_owned(),
        };
        self.volumes.iter().map(fact).collect()
    }
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

    /// Prepares and mounts the block devices. Mounts are in a private namespace, so that none is
    /// left behind however the process ends.
    pub fn prepare_all(self, stop: &AtomicBool, show: &Output) -> anyhow::Result<DeviceFolders> {
        let blocks = self.named.iter().any(|named| !matches!(named, DeviceKind::Folder(_)));
        let folder = match blocks {
            false => None,
            true => {
                own_mounts().map_err(request)?;
                // A unique name; other users' servers may traverse it.
                let made = tempfile::Builder::new()
                    .prefix("kvmeter-mbwu.")
                    .permissions(std::fs::Permissions::from_mode(0o755))
                    .tempdir();
                let above = std::env::temp_dir();
                let made =
                    made.map_err(|error| request(format!("{}: {error}", above.display())))?;
                Some(TemporaryFolder(made.keep()))
            }
        };
        let (mut paths, mut volumes) = (Vec::new(), Vec::new());
        for (at, named) in self.named.into_iter().enumerate() {
            let made = match named {
                DeviceKind::Folder(path) => {
                    paths.push(path);
                    continue;
                }
                DeviceKind::Prepared(made) => *made,
                DeviceKind::Block(target) => {
                    prepare(*target, self.order.as_ref(), &self.consent, stop, show)?
                }
            };
            let Some(TemporaryFolder(folder)) = &folder else { continue };
            let volume = made.mount(&folder.join(at.to_string())).map_err(failed)?;
            paths.push(volume.path().to_owned());
            volumes.push((at + 1, volume));
        }
        Ok(DeviceFolders { paths, volumes, _folder: folder })
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

/// Preconditions a device, if configured, and formats it.
fn prepare(
    target: Target,
    order: Option<&PreconditionRequest>,
    consent: &Consent,
    stop: &AtomicBool,
    show: &Output,
) -> anyhow::Result<MadeFileSystem> {
    match order {
        Some(order) => {
            let state = state_file(&target)?;
            let job = PreconditionJob::new(&target, order.clone(), consent, state, false);
            let mut shown = PreconditionProgress::new(show);
            let report_progress = &mut |progress: &_| shown.update(progress);
            let report =
                job.map_err(failed)?.run(None, RULE, stop, report_progress).map_err(failed)?;
            if report.ended == JobEnd::NotSteady {
                show.warn(&format!(
                    "{}: random writes were not steady in {RANDOM_ROUNDS} rounds",
                    target.path.display()
                ));
            }
        }
        None => target.check_unchanged().map_err(failed)?,
    }
    if stop.load(Ordering::Relaxed) {
        return Err(anyhow::anyhow!("stopped; {} is not prepared", target.path.display()));
    }
    MadeFileSystem::format(target, consent).map_err(failed)
}

/// The UUID of the file system that the evaluation of a results file made on a device.
fn uuid_made_before(out: &Path, device: &Path, number: usize) -> anyhow::Result<String> {
    let execution = match out.exists() {
        true => resumable(out)?,
        false => None,
    };
    let uuid = execution.as_ref().and_then(|execution| execution.machine.fact(&uuid_fact(number)));
    uuid.map(str::to_owned).ok_or_else(|| {
        request(format!(
            "--device {}: {} records no file system of this evaluation on it, so none was mounted; \
             name the devices in their original order, or start again without --resume",
            device.display(),
            out.display()
        ))
    })
}
