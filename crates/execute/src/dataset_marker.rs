//! The marker that names a store's dataset, so that data is loaded only once.

use std::sync::Arc;

use model::{Op, Phase};
use serde::{Deserialize, Serialize};
use store::{Directory, ServedData, StoreError};
use workload::Workload;

use crate::error::ExecuteError;
use crate::load_step::LoadStep;

/// Where the marker is stored.
pub(crate) enum MarkerLocation {
    /// The store is not persistent.
    Nowhere,
    /// In the directory of each store.
    Directories(Vec<Directory>),
    /// Under a reserved key on every server.
    Servers(Arc<dyn ServedData>),
}

/// The dataset of a store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DatasetName {
    pub(crate) dataset: String,
    pub(crate) records: u64,
    pub(crate) version: String,
}

impl MarkerLocation {
    /// The marked dataset, if all stores have the same.
    pub(crate) fn name(&self) -> Result<Option<DatasetName>, StoreError> {
        match self {
            MarkerLocation::Nowhere => Ok(None),
            MarkerLocation::Directories(directories) => {
                let name = |directory: &Directory| {
                    let marker = directory.marker();
                    let records = marker.records;
                    let name = |dataset| DatasetName { dataset, records, version: String::new() };
                    marker.dataset.clone().map(name)
                };
                let first = directories.first().and_then(name);
                let alike = directories.iter().all(|directory| name(directory) == first);
                Ok(first.filter(|_| alike))
            }
            MarkerLocation::Servers(data) => {
                let marker = data.marker()?;
                // An unreadable marker counts as none.
                Ok(marker.and_then(|marker| serde_json::from_str(&marker).ok()))
            }
        }
    }

    /// Why a step cannot use the existing data; None if it can.
    pub(crate) fn must_load(&self, step: LoadStep<'_>) -> Result<Option<&'static str>, StoreError> {
        if matches!(self, MarkerLocation::Nowhere) {
            return Ok(None);
        }
        let Some(name) = self.name()? else {
            return Ok(Some("the store holds no complete data"));
        };
        let dataset = step.load.workload.dataset().to_string();
        let holds = match self {
            MarkerLocation::Directories(directories) => {
                directories.iter().all(|one| one.holds(&dataset))
            }
            _ => name.dataset == dataset,
        };
        if !holds {
            return Ok(Some("the store holds other data"));
        }
        let added = name.records != step.load.workload.records.0;
        Ok(added.then_some("an earlier run has added records"))
    }

    /// Clears the store for a load; servers only where that is allowed.
    pub(crate) fn clear(&mut self) -> Result<(), StoreError> {
        match self {
            MarkerLocation::Nowhere => Ok(()),
            MarkerLocation::Directories(directories) => {
                directories.iter_mut().try_for_each(Directory::clear)
            }
            MarkerLocation::Servers(data) => data.clear(),
        }
    }

    /// A warning where a step inserts keys that already exist on a server: its inserts then replace
    /// records of an earlier run and add none.
    pub(crate) fn overwrites(&self, step: LoadStep<'_>, workload: &Workload) -> Option<String> {
        /// Number of keys that are checked.
        const CHECKED_KEYS: u64 = 16;
        let MarkerLocation::Servers(data) = self else { return None };
        let records = workload.spec().records.0;
        let inserted = match step.phase() {
            Phase::Load => 0..records.min(CHECKED_KEYS),
            _ if step.activity.trace().is_none() && step.load.workload.mix.contains(Op::Insert) => {
                records..records + CHECKED_KEYS
            }
            _ => return None,
        };
        let (mut key, mut there, all) = (Vec::new(), 0, inserted.end - inserted.start);
        for record in inserted {
            workload.key(record, &mut key);
            // An error here is left to the run itself.
            there += u64::from(data.contains(&key).ok()?);
        }
        (there > 0).then(|| {
            format!(
                "the server already has {there} of the first {all} keys to insert, so inserts \
                 replace records of an earlier run; empty it before each run (`clear=flush` in its \
                 URL), or let kvmeter start one (--server, `[server.NAME]` of a study)"
            )
        })
    }

    /// Restores the data of a step from its copy, if there is one.
    pub(crate) fn bring_back(&mut self, step: LoadStep<'_>) -> Result<bool, StoreError> {
        match self {
            MarkerLocation::Directories(directories) => {
                let dataset = step.load.workload.dataset().to_string();
                for directory in directories {
                    if !directory.restore_prepared(&dataset, step.load.workload.records.0)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            MarkerLocation::Nowhere | MarkerLocation::Servers(_) => Ok(false),
        }
    }

    /// Copies the data of a closed store; false where it cannot be copied.
    pub(crate) fn keep_prepared(&mut self) -> Result<bool, StoreError> {
        match self {
            MarkerLocation::Directories(directories) => {
                for directory in directories {
                    if !directory.save_prepared()? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            MarkerLocation::Nowhere | MarkerLocation::Servers(_) => Ok(false),
        }
    }

    /// Removes the marker before the data changes.
    pub(crate) fn unset(&mut self) -> Result<(), StoreError> {
        match self {
            MarkerLocation::Nowhere => Ok(()),
            MarkerLocation::Directories(directories) => {
                directories.iter_mut().try_for_each(Directory::unset_dataset)
            }
            MarkerLocation::Servers(data) => data.unmark(),
        }
    }

    pub(crate) fn set(&mut self, name: &DatasetName) -> Result<(), ExecuteError> {
        match self {
            MarkerLocation::Nowhere => {}
            MarkerLocation::Directories(directories) => {
                for directory in directories {
                    directory.set_dataset(&name.dataset, name.records, &name.version)?;
                }
            }
            MarkerLocation::Servers(data) => {
                let marker = serde_json::to_string(name)
                    .map_err(|error| ExecuteError::Failed(error.to_string()))?;
                data.mark(&marker)?;
            }
        }
        Ok(())
    }

    /// What happened to the servers since this was last called.
    pub(crate) fn warnings(&self) -> Vec<String> {
        match self {
            MarkerLocation::Servers(data) => data.warnings(),
            MarkerLocation::Nowhere | MarkerLocation::Directories(_) => Vec::new(),
        }
    }

    /// Whether the store has files on this machine.
    pub(crate) fn on_disk(&self) -> bool {
        matches!(self, MarkerLocation::Directories(_))
    }

    pub(crate) fn disk_bytes(&self) -> Result<Option<u64>, StoreError> {
        match self {
            MarkerLocation::Directories(directories) => {
                let mut all = 0;
                for directory in directories {
                    all += directory.disk_bytes()?;
                }
                Ok(Some(all))
            }
            _ => Ok(None),
        }
    }
}
