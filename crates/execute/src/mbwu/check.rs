//! Checks before a device is written to.

use std::collections::BTreeMap;
use std::path::PathBuf;

use host::Root;
use store::{Directory, DirectoryState, StoreUrl};

use crate::error::ExecuteError;
use crate::load_step::LoadStep;

/// Checks that the devices are different.
pub(super) fn devices(root: &Root, devices: &[PathBuf]) -> Result<(), ExecuteError> {
    if devices.is_empty() {
        return Err(ExecuteError::Request(
            "no device is named: --device PATH, a folder on the device's file system, once for \
             each device"
                .to_owned(),
        ));
    }
    let mut known: BTreeMap<String, &PathBuf> = BTreeMap::new();
    for device in devices {
        if !device.is_dir() {
            let words = "is not a folder; name one on the device's file system";
            return Err(ExecuteError::Request(format!("--device {}: {words}", device.display())));
        }
        let volume = host::volume_of(root, device).map_err(|why| {
            ExecuteError::Request(format!(
                "--device {}: {why}; name a folder on a file system of a block device",
                device.display()
            ))
        })?;
        if let Some(other) = known.insert(volume.clone(), device) {
            return Err(ExecuteError::Request(format!(
                "--device {}: lies on {volume}, as {} does; name one folder for each device",
                device.display(),
                other.display()
            )));
        }
    }
    Ok(())
}

/// Refuses a device without room for the data of its databases, or that cannot be written.
pub(super) fn room(databases: &[StoreUrl], step: LoadStep<'_>) -> Result<(), ExecuteError> {
    let needed: u64 = databases.iter().map(|url| needed(url, step)).sum();
    Ok(databases.iter().try_for_each(|url| Directory::check(url, needed))?)
}

/// Bytes that a load needs: none where the data exists.
pub(super) fn needed(url: &StoreUrl, step: LoadStep<'_>) -> u64 {
    match holds(url, step) {
        Ok(true) => 0,
        // Half as much again for compactions of a log-structured store.
        _ => step.load.workload.data_bytes().saturating_add(step.load.workload.data_bytes() / 2),
    }
}

/// Whether a folder has the complete data of a step.
pub(super) fn holds(url: &StoreUrl, step: LoadStep<'_>) -> Result<bool, ExecuteError> {
    let dataset = step.load.workload.dataset().to_string();
    Ok(match Directory::inspect(&url.path)? {
        DirectoryState::Ours(_) => {
            let directory = Directory::claim(url, 0)?;
            directory.holds(&dataset) && directory.marker().records == step.load.workload.records.0
        }
        _ => false,
    })
}
