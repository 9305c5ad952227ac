//! Where it is noted what data a store holds, so that it is loaded once and not twice.

use std::sync::Arc;

use drive::Network;
use serde::{Deserialize, Serialize};
use store::{Directory, StoreError};

use crate::error::StudyError;
use crate::plan::Step;

/// Who keeps the note.
pub(crate) enum Keeper {
    /// The store keeps nothing.
    Nobody,
    /// The marker in its directory.
    Directory(Box<Directory>),
    /// A key of its own on every server.
    Servers(Arc<Network>),
}

/// What a store's data is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Name {
    pub(crate) dataset: String,
    pub(crate) records: u64,
    pub(crate) version: String,
}

impl Keeper {
    /// What the data is, as far as it is noted.
    pub(crate) fn name(&self) -> Result<Option<Name>, StoreError> {
        match self {
            Keeper::Nobody => Ok(None),
            Keeper::Directory(directory) => {
                let marker = directory.marker();
                Ok(marker.dataset.clone().map(|dataset| Name {
                    dataset,
                    records: marker.records,
                    version: String::new(),
                }))
            }
            Keeper::Servers(network) => {
                let note = network.marker()?;
                // A note that cannot be read is no note.
                Ok(note.and_then(|note| serde_json::from_str(&note).ok()))
            }
        }
    }

    /// Why a step cannot run on what is there; None if it can.
    pub(crate) fn must_load(&self, step: &Step) -> Result<Option<&'static str>, StoreError> {
        if matches!(self, Keeper::Nobody) {
            return Ok(None);
        }
        let Some(name) = self.name()? else {
            return Ok(Some("the store holds no complete data"));
        };
        let holds = match self {
            Keeper::Directory(directory) => directory.holds(&step.workload.dataset().to_string()),
            _ => name.dataset == step.workload.dataset().to_string(),
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
            Keeper::Nobody => Ok(()),
            Keeper::Directory(directory) => directory.clear(),
            Keeper::Servers(network) if network.remote().may_flush => network.flush(),
            // What is loaded replaces what is there under the same keys.
            Keeper::Servers(network) => network.unmark(),
        }
    }

    /// Brings the data that a step needs back from its copy, where there is one.
    pub(crate) fn bring_back(&mut self, step: &Step) -> Result<bool, StoreError> {
        match self {
            Keeper::Directory(directory) => {
                let dataset = step.workload.dataset().to_string();
                directory.bring_back(&dataset, step.workload.records.0)
            }
            Keeper::Nobody | Keeper::Servers(_) => Ok(false),
        }
    }

    /// Copies the data of a store that is closed; `false` where it cannot be copied.
    pub(crate) fn keep_prepared(&mut self) -> Result<bool, StoreError> {
        match self {
            Keeper::Directory(directory) => directory.keep_prepared(),
            Keeper::Nobody | Keeper::Servers(_) => Ok(false),
        }
    }

    /// The data is about to be changed.
    pub(crate) fn unset(&mut self) -> Result<(), StoreError> {
        match self {
            Keeper::Nobody => Ok(()),
            Keeper::Directory(directory) => directory.unset_dataset(),
            Keeper::Servers(network) => network.unmark(),
        }
    }

    pub(crate) fn set(&mut self, name: &Name) -> Result<(), StudyError> {
        match self {
            Keeper::Nobody => {}
            Keeper::Directory(directory) => {
                directory.set_dataset(&name.dataset, name.records, &name.version)?;
            }
            Keeper::Servers(network) => {
                let note = serde_json::to_string(name)
                    .map_err(|error| StudyError::Failed(error.to_string()))?;
                network.mark(&note)?;
            }
        }
        Ok(())
    }

    /// Whether the store has files of its own here.
    pub(crate) fn on_disk(&self) -> bool {
        matches!(self, Keeper::Directory(_))
    }

    pub(crate) fn disk_bytes(&self) -> Result<Option<u64>, StoreError> {
        match self {
            Keeper::Directory(directory) => directory.disk_bytes().map(Some),
            _ => Ok(None),
        }
    }
}
