//! Devices with a file system, mounted, and how a resumed evaluation finds them again.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use micro::precondition::volume::MountedVolume;
use model::Fact;

use crate::cmd::run::results::resumable;
use crate::exit::request;

/// Devices with a file system, mounted until this is dropped.
pub struct DeviceFolders {
    pub(super) paths: Vec<PathBuf>,
    /// With the number of the device, counted from 1.
    pub(super) volumes: Vec<(usize, MountedVolume)>,
    /// Where they are mounted.
    pub(super) _folder: Option<TemporaryFolder>,
}

/// The machine fact with the UUID of the file system that an execution made on a device.
fn uuid_fact(number: usize) -> String {
    format!("mbwu.volume.{number}")
}

/// A folder that is removed on drop if it is empty.
pub(super) struct TemporaryFolder(PathBuf);

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

impl TemporaryFolder {
    /// A unique name; other users' servers may traverse it.
    pub(super) fn make() -> anyhow::Result<TemporaryFolder> {
        let made = tempfile::Builder::new()
            .prefix("kvmeter-mbwu.")
            .permissions(std::fs::Permissions::from_mode(0o755))
            .tempdir();
        let above = std::env::temp_dir();
        let made = made.map_err(|error| request(format!("{}: {error}", above.display())))?;
        Ok(TemporaryFolder(made.keep()))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
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

/// The UUID of the file system that the evaluation of a results file made on a device.
pub(super) fn uuid_made_before(out: &Path, device: &Path, number: usize) -> anyhow::Result<String> {
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
