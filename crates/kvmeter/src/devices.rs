//! What `--device` names: folders that are used as they are, and block devices that are brought to a
//! known state, get a file system and are mounted for as long as kvmeter runs.

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

use crate::args;
use crate::cmd::precondition::{RULE, Shown, failed, how_to_confirm, state_file};
use crate::cmd::run::begun;
use crate::exit::request;
use crate::show::Show;

/// Rounds of random writes behind the sequential ones of a study.
const RANDOM_ROUND: Duration = Duration::from_secs(60);
const RANDOM_ROUNDS: u32 = 25;

/// Devices that were named and, if they will lose what is on them, confirmed.
pub struct Devices {
    named: Vec<Named>,
    consent: Consent,
    /// What is done to block devices before they get a file system.
    order: Option<PreconditionRequest>,
    /// They were prepared by the invocation that is resumed.
    resume: bool,
}

enum Named {
    Folder(PathBuf),
    Block(Box<Target>),
    /// Prepared before: only mounted.
    Prepared(Box<MadeFileSystem>),
}

/// Devices with a file system, for as long as this is kept.
pub struct Folders {
    paths: Vec<PathBuf>,
    /// With the number of the device, counted from 1.
    volumes: Vec<(usize, MountedVolume)>,
    /// Where they are mounted.
    _folder: Option<Temporary>,
}

/// The fact of an execution that holds the UUID of the file system that it made on a device.
fn uuid_fact(number: usize) -> String {
    format!("mbwu.volume.{number}")
}

/// A folder that goes when this is dropped, if it is empty by then.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

impl Folders {
    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// By which file systems a resumed evaluation knows that they are its own.
    pub fn facts(&self) -> Vec<Fact> {
        let fact = |(number, volume): &(usize, MountedVolume)| Fact {
            name: uuid_fact(*number),
            value: Ok(volume.uuid().to_owned()),
            source: "mkfs.ext4 -U".to_owned(),
        };
        self.volumes.iter().map(fact).collect()
    }
}

impl Devices {
    /// Looks at what was named; nothing is written. `out` is the results file, which knows what a
    /// resumed evaluation has made.
    pub fn of(args: &args::Run, table: &MbwuTable, out: &Path) -> anyhow::Result<Devices> {
        let system = DeviceSystem::live();
        let consent = Consent { names: args.confirm.clone(), overwrite: args.overwrite.clone() };
        let mut named = Vec::new();
        for (at, device) in args.device.iter().enumerate() {
            let metadata = device
                .metadata()
                .map_err(|error| request(format!("--device {}: {error}", device.display())))?;
            if !metadata.file_type().is_block_device() {
                named.push(Named::Folder(device.clone()));
                continue;
            }
            let target = Target::inspect(&system, device, None).map_err(failed)?;
            named.push(match args.resume {
                true => {
                    let uuid = made_before(out, device, at + 1)?;
                    Named::Prepared(Box::new(
                        MadeFileSystem::reopen(target, &uuid).map_err(failed)?,
                    ))
                }
                false => {
                    if !args.dry_run {
                        target.confirm(&consent).map_err(failed)?;
                    }
                    Named::Block(Box::new(target))
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
                if let Named::Block(target) = named {
                    PreconditionJob::describe(target, order).map_err(failed)?;
                }
            }
        }
        Ok(Devices { named, consent, order, resume: args.resume })
    }

    /// Prepares and mounts the block devices. Mounts are this process's own, so that none stays
    /// behind however it ends.
    pub fn ready(self, stop: &AtomicBool, show: &Show) -> anyhow::Result<Folders> {
        let blocks = self.named.iter().any(|named| !matches!(named, Named::Folder(_)));
        let folder = match blocks {
            false => None,
            true => {
                own_mounts().map_err(request)?;
                // At a name that nobody can have taken. A server of another user finds its way.
                let made = tempfile::Builder::new()
                    .prefix("kvmeter-mbwu.")
                    .permissions(std::fs::Permissions::from_mode(0o755))
                    .tempdir();
                let above = std::env::temp_dir();
                let made =
                    made.map_err(|error| request(format!("{}: {error}", above.display())))?;
                Some(Temporary(made.keep()))
            }
        };
        let (mut paths, mut volumes) = (Vec::new(), Vec::new());
        for (at, named) in self.named.into_iter().enumerate() {
            let made = match named {
                Named::Folder(path) => {
                    paths.push(path);
                    continue;
                }
                Named::Prepared(made) => *made,
                Named::Block(target) => {
                    prepare(*target, self.order.as_ref(), &self.consent, stop, show)?
                }
            };
            let Some(Temporary(folder)) = &folder else { continue };
            let volume = made.mount(&folder.join(at.to_string())).map_err(failed)?;
            paths.push(volume.path().to_owned());
            volumes.push((at + 1, volume));
        }
        Ok(Folders { paths, volumes, _folder: folder })
    }

    /// One line for each thing that would be done.
    pub fn describe(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for named in &self.named {
            match named {
                Named::Folder(path) => lines.push(format!("{}: used as it is", path.display())),
                Named::Prepared(made) => lines.push(format!("{}: mounted", made.path().display())),
                Named::Block(target) => {
                    let path = target.path.display();
                    let steps =
                        self.order.as_ref().map(|order| PreconditionJob::describe(target, order));
                    match steps {
                        Some(Ok(steps)) => lines.extend(steps),
                        _ => lines.push(format!("{path}: not preconditioned")),
                    }
                    lines.push(format!("{path}: gets an ext4 file system, and loses all on it"));
                    let how = how_to_confirm(target);
                    lines.extend(how.lines().map(|line| format!("{path}: {line}")));
                }
            }
        }
        debug_assert!(!self.resume || !lines.iter().any(|line| line.contains("loses")));
        lines
    }

    /// Where the stores will lie, if that is known before anything is done.
    pub fn folders(&self) -> Option<Vec<PathBuf>> {
        let folder = |named: &Named| match named {
            Named::Folder(path) => Some(path.clone()),
            _ => None,
        };
        self.named.iter().map(folder).collect()
    }
}

/// Brings a device to a known state, if that is to be done, and gives it a file system.
fn prepare(
    target: Target,
    order: Option<&PreconditionRequest>,
    consent: &Consent,
    stop: &AtomicBool,
    show: &Show,
) -> anyhow::Result<MadeFileSystem> {
    match order {
        Some(order) => {
            let state = state_file(&target)?;
            let job = PreconditionJob::new(&target, order.clone(), consent, state, false);
            let mut shown = Shown::new(show);
            let told = &mut |progress: &_| shown.tell(progress);
            let report = job.map_err(failed)?.run(None, RULE, stop, told).map_err(failed)?;
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
fn made_before(out: &Path, device: &Path, number: usize) -> anyhow::Result<String> {
    let execution = match out.exists() {
        true => begun(out)?,
        false => None,
    };
    let uuid = execution.as_ref().and_then(|begun| begun.machine.fact(&uuid_fact(number)));
    uuid.map(str::to_owned).ok_or_else(|| {
        request(format!(
            "--device {}: {} knows of no file system that this evaluation made on it, so none is \
             mounted; name the devices in the order in which they were named first, or begin anew \
             without --resume",
            device.display(),
            out.display()
        ))
    })
}
