//! What `--resume` needs to know of a study on other machines.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::exit::request;
use crate::hosts::new_folder_id;

const NAME: &str = "fleet.json";
const MAX_BYTES: u64 = 1 << 20;

/// Kept beside the hosts' results.
#[derive(Debug, Serialize, Deserialize)]
pub struct FleetState {
    /// Names the folders on the hosts.
    pub id: String,
    /// Hosts whose results are whole and here.
    pub done: BTreeSet<String>,
    /// The job of each host that a scheduler gave.
    #[serde(default)]
    pub jobs: BTreeMap<String, String>,
    #[serde(skip)]
    folder: PathBuf,
}

impl FleetState {
    /// Begins with a new number, or finds that of the study that is resumed.
    pub fn open(folder: &Path, resume: bool) -> anyhow::Result<FleetState> {
        let file = folder.join(NAME);
        let place = file.display();
        if resume {
            let text = safe_file::read_text(&file, MAX_BYTES).map_err(|error| {
                request(format!("{error}; leave out --resume to begin, or name its --out"))
            })?;
            let state: FleetState = serde_json::from_str(&text)
                .map_err(|error| request(format!("{place}: is not kvmeter's: {error}")))?;
            if state.id.is_empty() || !state.id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                return Err(request(format!("{place}: is not kvmeter's: it has no number")));
            }
            return Ok(FleetState { folder: folder.to_owned(), ..state });
        }
        if file.exists() {
            return Err(request(format!(
                "{place} exists already; continue with --resume, or name another --out"
            )));
        }
        safe_file::make_private_folder(folder).map_err(|error| request(error.to_string()))?;
        let state = FleetState::temporary(folder)?;
        state.write()?;
        Ok(state)
    }

    /// With a new number, and not kept.
    pub fn temporary(folder: &Path) -> anyhow::Result<FleetState> {
        Ok(FleetState {
            id: new_folder_id()?,
            done: BTreeSet::new(),
            jobs: BTreeMap::new(),
            folder: folder.to_owned(),
        })
    }

    pub fn write(&self) -> anyhow::Result<()> {
        let text = serde_json::to_string_pretty(self)?;
        Ok(safe_file::replace_private(&self.folder.join(NAME), text.as_bytes())?)
    }

    /// Forgets a study of which nothing is kept.
    pub fn remove(&self) -> anyhow::Result<()> {
        std::fs::remove_file(self.folder.join(NAME))?;
        // Results of an earlier run may lie in it.
        let _ = std::fs::remove_dir(&self.folder);
        Ok(())
    }
}
