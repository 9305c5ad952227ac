//! What became of the pipeline's slots in the further passes after runs.

use model::{Run, SlotEvent, SlotShare, TopDown, TopDownPass};

use super::{RunLoader, from_name, reading_value, real, text};
use crate::error::RecordError;

impl RunLoader<'_> {
    /// Reads the shares and counts of the runs whose profiles are there.
    pub(super) fn top_downs(&mut self) -> Result<(), RecordError> {
        if !self.runs.iter().any(|run| pass(run).is_some()) {
            return Ok(());
        }
        let path = self.path;
        self.read_rows(
            "top_down",
            "side, process, cpu, source, user_only",
            ", position",
            |row, _, _| {
                Ok(Some(TopDown {
                    side: from_name(path, "side", text(row, 1)?)?,
                    process: row.get(2)?,
                    cpu: row.get(3)?,
                    source: row.get(4)?,
                    user_only: row.get(5)?,
                    shares: Vec::new(),
                    events: Vec::new(),
                }))
            },
            |_, run, processes| {
                if let Some(pass) = pass_mut(run) {
                    pass.processes = processes.collect();
                }
            },
        )?;
        self.read_rows(
            "slot_share",
            "position, category, share, reason, remedy",
            ", position",
            |row, _, _| {
                let category = from_name(path, "category", text(row, 2)?)?;
                Ok(Some((
                    row.get::<_, usize>(1)?,
                    SlotShare { category, share: reading_value(row, 3)? },
                )))
            },
            |_, run, shares| {
                for (position, share) in shares {
                    if let Some(process) = process_mut(run, position) {
                        process.shares.push(share);
                    }
                }
                for process in pass_mut(run).into_iter().flat_map(|pass| &mut pass.processes) {
                    process.shares.sort_by_key(|share| share.category);
                }
            },
        )?;
        self.read_rows(
            "slot_event",
            "position, event, count, reason, remedy, running",
            ", position, nth",
            |row, _, _| {
                let event = SlotEvent {
                    event: row.get(2)?,
                    count: reading_value(row, 3)?,
                    running: real(row, 6)?,
                };
                Ok(Some((row.get::<_, usize>(1)?, event)))
            },
            |_, run, events| {
                for (position, event) in events {
                    if let Some(process) = process_mut(run, position) {
                        process.events.push(event);
                    }
                }
            },
        )
    }
}

fn pass(run: &Run) -> Option<&TopDownPass> {
    run.profile.as_ref()?.top_down.as_ref()
}

fn pass_mut(run: &mut Run) -> Option<&mut TopDownPass> {
    run.profile.as_mut()?.top_down.as_mut()
}

fn process_mut(run: &mut Run, position: usize) -> Option<&mut TopDown> {
    pass_mut(run)?.processes.get_mut(position)
}
