//! What `--device` names: folders that are used as they are, and block devices that are brought to a
//! known state, get a file system and are mounted for as long as kvmeter runs.

use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use micro::precondition::volume::{Volume, own_mounts};
use micro::precondition::{Ended, Job, Order, System, Target};
use study::MbwuTable;

use crate::args;
use crate::cmd::precondition::{RULE, Shown, failed, state_file};
use crate::exit::request;
use crate::show::Show;

/// Rounds of random writes behind the sequential ones of a study.
const RANDOM_ROUND: Duration = Duration::from_secs(60);
const RANDOM_ROUNDS: u32 = 25;

/// Devices that were named and, if they will lose what is on them, confirmed.
pub struct Devices {
    named: Vec<Named>,
    confirmed: Vec<String>,
    /// What is done to block devices before they get a file system.
    order: Option<Order>,
    /// They were prepared by the invocation that is resumed.
    resume: bool,
}

enum Named {
    Folder(PathBuf),
    Block(Box<Target>),
    /// Prepared before: only mounted.
    Prepared(PathBuf),
}

/// Devices with a file system, for as long as this is kept.
pub struct Folders {
    paths: Vec<PathBuf>,
    _volumes: Vec<Volume>,
    /// Where they are mounted.
    _folder: Option<Temporary>,
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
}

impl Devices {
    /// Looks at what was named; nothing is written.
    pub fn of(args: &args::Run, table: &MbwuTable) -> anyhow::Result<Devices> {
        let system = System::live();
        let mut named = Vec::new();
        for device in &args.device {
            let metadata = device
                .metadata()
                .map_err(|error| request(format!("--device {}: {error}", device.display())))?;
            named.push(match metadata.file_type().is_block_device() {
                false => Named::Folder(device.clone()),
                true if args.resume => Named::Prepared(device.clone()),
                true => {
                    let target = Target::inspect(&system, device, None).map_err(failed)?;
                    if !args.dry_run {
                        target.confirm(&args.confirm).map_err(failed)?;
                    }
                    Named::Block(Box::new(target))
                }
            });
        }
        let order = table.precondition.map(|table| Order {
            share: table.share,
            random: table.random.then_some((RANDOM_ROUND, RANDOM_ROUNDS)),
            ..Order::default()
        });
        if let Some(order) = &order {
            for named in &named {
                if let Named::Block(target) = named {
                    Job::describe(target, order).map_err(failed)?;
                }
            }
        }
        Ok(Devices { named, confirmed: args.confirm.clone(), order, resume: args.resume })
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
        for (at, named) in self.named.iter().enumerate() {
            let device = match named {
                Named::Folder(path) => {
                    paths.push(path.clone());
                    continue;
                }
                Named::Prepared(path) => path,
                Named::Block(target) => {
                    self.prepare(target, stop, show)?;
                    &target.path
                }
            };
            let Some(Temporary(folder)) = &folder else { continue };
            let volume = Volume::mount(device, &folder.join(at.to_string())).map_err(failed)?;
            paths.push(volume.path().to_owned());
            volumes.push(volume);
        }
        Ok(Folders { paths, _volumes: volumes, _folder: folder })
    }

    fn prepare(&self, target: &Target, stop: &AtomicBool, show: &Show) -> anyhow::Result<()> {
        if let Some(order) = &self.order {
            let state = state_file(target)?;
            let job = Job::new(target.clone(), order.clone(), &self.confirmed, state, false);
            let mut shown = Shown::new(show);
            let told = &mut |progress: &_| shown.tell(progress);
            let report = job.map_err(failed)?.run(None, RULE, stop, told).map_err(failed)?;
            if report.ended == Ended::NotSteady {
                show.warn(&format!(
                    "{}: random writes were not steady in {RANDOM_ROUNDS} rounds",
                    target.path.display()
                ));
            }
        }
        if stop.load(Ordering::Relaxed) {
            return Err(anyhow::anyhow!("stopped; {} is not prepared", target.path.display()));
        }
        Volume::format(target, &self.confirmed).map_err(failed)
    }

    /// One line for each thing that would be done.
    pub fn describe(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for named in &self.named {
            match named {
                Named::Folder(path) => lines.push(format!("{}: used as it is", path.display())),
                Named::Prepared(path) => lines.push(format!("{}: mounted", path.display())),
                Named::Block(target) => {
                    let path = target.path.display();
                    let steps = self.order.as_ref().map(|order| Job::describe(target, order));
                    match steps {
                        Some(Ok(steps)) => lines.extend(steps),
                        _ => lines.push(format!("{path}: not preconditioned")),
                    }
                    lines.push(format!("{path}: gets an ext4 file system, and loses all on it"));
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
