//! What `--device` names: folders that are used as they are, and block devices that get a file
//! system first.

use std::os::unix::fs::FileTypeExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use study::MbwuTable;

use crate::args;
use crate::exit::request;
use crate::show::Show;

/// Devices that were named and, if they will lose what is on them, confirmed.
pub struct Devices {
    folders: Vec<PathBuf>,
}

/// Devices with a file system, for as long as this is kept.
pub struct Folders {
    paths: Vec<PathBuf>,
}

impl Folders {
    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }
}

impl Devices {
    pub fn of(
        args: &args::Run,
        _table: &MbwuTable,
        _stop: &Arc<AtomicBool>,
        _show: &Show,
    ) -> anyhow::Result<Devices> {
        for device in &args.device {
            let kind = device.metadata().map_err(|error| {
                request(format!("--device {}: {error}", device.display()))
            })?;
            if kind.file_type().is_block_device() {
                return Err(request("block"));
            }
        }
        Ok(Devices { folders: args.device.clone() })
    }

    pub fn ready(self, _stop: &Arc<AtomicBool>, _show: &Show) -> anyhow::Result<Folders> {
        Ok(Folders { paths: self.folders })
    }

    /// One line for each.
    pub fn describe(&self) -> Vec<String> {
        self.folders.iter().map(|folder| format!("{}: used as it is", folder.display())).collect()
    }

    /// Where the stores will lie, if that is known before anything is done.
    pub fn folders(&self) -> Option<Vec<PathBuf>> {
        Some(self.folders.clone())
    }
}
