//! Where it is noted what data a store holds, so that it is loaded once and not twice.

use std::sync::Arc;

use drive::Network;
use model::Op;
use record::Phase;
use serde::{Deserialize, Serialize};
use store::{Directory, StoreError};
use workload::Workload;

use crate::error::StudyError;
use crate::plan::Step;

/// Who keeps the note.
pub(crate) enum MarkerLocation {
    /// The store keeps nothing.
    Nobody,
    /// The marker in its directory; in that of each, where several stores are asked at once.
    Directories(Vec<Directory>),
    /// A key of its own on every server.
    Servers(Arc<Network>),
}

/// What a store's data is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DatasetName {
    pub(crate) dataset: String,
    pub(crate) records: u64,
    pub(crate) version: String,
}

impl MarkerLocation {
    /// What the data is, as far as it is noted; of several stores what all of them hold.
    pub(crate) fn name(&self) -> Result<Option<DatasetName>, StoreError> {
        match self {
            MarkerLocation::Nobody => Ok(None),
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
            MarkerLocation::Servers(network) => {
                let note = network.marker()?;
                // A note that cannot be read is no note.
                Ok(note.and_then(|note| serde_json::from_str(&note).ok()))
            }
        }
    }

    /// Why a step cannot run on what is there; None if it can.
    pub(crate) fn must_load(&self, step: &Step) -> Result<Option<&'static str>, StoreError> {
        if matches!(self, MarkerLocation::Nobody) {
            return Ok(None);
        }
        let Some(name) = self.name()? else {
            return Ok(Some("the store holds no complete data"));
        };
        let dataset = step.workload.dataset().to_string();
        let holds = match self {
            MarkerLocation::Directories(directories) => {
                directories.iter().all(|one| one.holds(&dataset))
            }
            _ => name.dataset == dataset,
        };
        if !holds {
            return Ok(Some("the store holds other data"));
        }
        let added = name.records != step.workload.records.0;
        Ok(added.then_some("an earlier run has added records"))
    }

    /// Makes room for a load: a directory is emptied, servers only where that is allowed.
    pub(crate) fn clear(&mut self) -> Result<(), StoreError> {
        match self {
            MarkerLocation::Nobody => Ok(()),
            MarkerLocation::Directories(directories) => {
                directories.iter_mut().try_for_each(Directory::clear)
            }
            MarkerLocation::Servers(network) if network.remote().may_flush => network.flush(),
            // What is loaded replaces what is there under the same keys.
            MarkerLocation::Servers(network) => network.unmark(),
        }
    }

    /// What to know where a step inserts keys that are there already: then its inserts replace
    /// what an earlier run has left, and add nothing. Files are cleared before, servers only where
    /// that is allowed.
    pub(crate) fn overwrites(&self, step: &Step, workload: &Workload) -> Option<String> {
        /// Keys that are looked for, from the first that is inserted on.
        const LOOKED_FOR: u64 = 16;
        let MarkerLocation::Servers(network) = self else { return None };
        let records = workload.spec().records.0;
        let inserted = match step.phase {
            Phase::Load => 0..records.min(LOOKED_FOR),
            _ if step.trace.is_none() && step.workload.mix.contains(Op::Insert) => {
                records..records + LOOKED_FOR
            }
            _ => return None,
        };
        let (mut key, mut there, all) = (Vec::new(), 0, inserted.end - inserted.start);
        for record in inserted {
            workload.key(record, &mut key);
            // What cannot be looked for is not known to be there: the run itself will tell.
            there += u64::from(network.holds(&key).ok()?);
        }
        (there > 0).then(|| {
            format!(
                "{there} of the first {all} keys that are inserted are on the server already: such \
                 inserts replace what an earlier run left and add nothing; let the server be \
                 emptied before each run (`clear=flush` in the store's URL), or start one for it \
                 (--server, `[server.NAME]` of a study)"
            )
        })
    }

    /// Brings the data that a step needs back from its copy, where there is one.
    pub(crate) fn bring_back(&mut self, step: &Step) -> Result<bool, StoreError> {
        match self {
            MarkerLocation::Directories(directories) => {
                let dataset = step.workload.dataset().to_string();
                for directory in directories {
                    if !directory.restore_prepared(&dataset, step.workload.records.0)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            MarkerLocation::Nobody | MarkerLocation::Servers(_) => Ok(false),
        }
    }

    /// Copies the data of a store that is closed; `false` where it cannot be copied.
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
            MarkerLocation::Nobody | MarkerLocation::Servers(_) => Ok(false),
        }
    }

    /// The data is about to be changed.
    pub(crate) fn unset(&mut self) -> Result<(), StoreError> {
        match self {
            MarkerLocation::Nobody => Ok(()),
            MarkerLocation::Directories(directories) => {
                directories.iter_mut().try_for_each(Directory::unset_dataset)
            }
            MarkerLocation::Servers(network) => network.unmark(),
        }
    }

    pub(crate) fn set(&mut self, name: &DatasetName) -> Result<(), StudyError> {
        match self {
            MarkerLocation::Nobody => {}
            MarkerLocation::Directories(directories) => {
                for directory in directories {
                    directory.set_dataset(&name.dataset, name.records, &name.version)?;
                }
            }
            MarkerLocation::Servers(network) => {
                let note = serde_json::to_string(name)
                    .map_err(|error| StudyError::Failed(error.to_string()))?;
                network.mark(&note)?;
            }
        }
        Ok(())
    }

    /// Whether the store has files of its own here.
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
