//! Block devices are preconditioned, formatted and mounted.

use std::sync::atomic::{AtomicBool, Ordering};

use micro::precondition::volume::{MadeFileSystem, own_mounts};
use micro::precondition::{Consent, JobEnd, PreconditionJob, PreconditionRequest, Target};

use super::folders::{DeviceFolders, TemporaryFolder};
use super::{DeviceKind, NamedDevices, RANDOM_ROUNDS};
use crate::cmd::precondition::{PreconditionProgress, RULE, failed, state_file};
use crate::exit::request;
use crate::output::Output;

impl NamedDevices {
    /// Prepares and mounts the block devices. Mounts are in a private namespace, so that none is
    /// left behind however the process ends.
    pub fn prepare_all(self, stop: &AtomicBool, show: &Output) -> anyhow::Result<DeviceFolders> {
        let blocks = self.named.iter().any(|named| !matches!(named, DeviceKind::Folder(_)));
        let folder = match blocks {
            false => None,
            true => {
                own_mounts().map_err(request)?;
                Some(TemporaryFolder::make()?)
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
            let Some(folder) = &folder else { continue };
            let volume = made.mount(&folder.path().join(at.to_string())).map_err(failed)?;
            paths.push(volume.path().to_owned());
            volumes.push((at + 1, volume));
        }
        Ok(DeviceFolders { paths, volumes, _folder: folder })
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
