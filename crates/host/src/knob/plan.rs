//! Plans: from levels to writes.

use super::error::{KnobError, KnobRefusal};
use super::proof::Prove;
use super::target::{KnobTarget, TargetPart};
use super::write::{KnobWrite, RestoreAction};
use super::{KNOBS, Knob};
use crate::root::{Root, RootError};

/// The writes of one knob, and the proof of their effect.
pub struct KnobChange {
    pub writes: Vec<KnobWrite>,
    pub prove: Prove,
}

/// A knob of a plan.
pub(super) struct PlannedKnob {
    pub knob: &'static str,
    pub level: String,
    pub writes: Vec<KnobWrite>,
    pub prove: Prove,
}

/// Every write of some knobs, in order; nothing is written yet.
pub struct KnobPlan {
    pub(super) root: Root,
    pub(super) changes: Vec<PlannedKnob>,
}

/// The knobs of this build.
pub struct Knobs;

impl Knobs {
    /// The knob of this name.
    pub fn find(name: &str) -> Result<&'static dyn Knob, KnobError> {
        let knob_found = KNOBS.iter().find(|knob| knob.info().name == name);
        knob_found.copied().ok_or_else(|| {
            let names: Vec<&str> = KNOBS.iter().map(|knob| knob.info().name).collect();
            KnobError::Unknown { name: name.to_owned(), known: names.join(", ") }
        })
    }

    /// Plans levels such as `("idle", "none")` on this machine. The order is that of [`KNOBS`], whatever
    /// the order given: CPUs are taken offline after the knobs that need them, and put back before
    /// them. A target that already holds its value is not written.
    pub fn plan(root: &Root, levels: &[(&str, &str)]) -> Result<KnobPlan, KnobError> {
        for (at, (name, _)) in levels.iter().enumerate() {
            Knobs::find(name)?;
            if levels[..at].iter().any(|(before, _)| before == name) {
                return Err(KnobError::Twice { name: (*name).to_owned() });
            }
        }
        let mut plan = KnobPlan { root: root.clone(), changes: Vec::new() };
        for knob in KNOBS {
            let name = knob.info().name;
            let Some((_, level)) = levels.iter().find(|(asked, _)| *asked == name) else {
                continue;
            };
            let KnobChange { mut writes, prove } =
                knob.plan(root, level).map_err(|no| refusal(*knob, root, level, no))?;
            plan.drop_planned_writes(name, &mut writes)?;
            plan.changes.push(PlannedKnob {
                knob: name,
                level: (*level).to_owned(),
                writes,
                prove,
            });
        }
        Ok(plan)
    }
}

/// `KNOB=LEVEL` as a name and a level.
pub fn parse_level(text: &str) -> Result<(&str, &str), KnobError> {
    let pair = text.split_once('=').map(|(name, level)| (name.trim(), level.trim()));
    pair.filter(|(name, level)| !name.is_empty() && !level.is_empty())
        .ok_or_else(|| KnobError::Form { text: text.to_owned() })
}

fn refusal(knob: &dyn Knob, root: &Root, level: &str, no: KnobRefusal) -> KnobError {
    let name = knob.info().name.to_owned();
    match no {
        KnobRefusal::Unavailable(why) => KnobError::NotHere { knob: name, why },
        KnobRefusal::Level(why) => {
            let levels = knob.levels(root).unwrap_or_default().join(", ");
            KnobError::NoSuchLevel { knob: name, level: level.to_owned(), why, levels }
        }
    }
}

impl KnobPlan {
    /// Every write with its knob and level.
    pub fn writes(&self) -> impl Iterator<Item = (&str, &str, &KnobWrite)> {
        self.changes.iter().flat_map(|turn| {
            turn.writes.iter().map(|write| (turn.knob, turn.level.as_str(), write))
        })
    }

    /// The knobs and levels in the order in which they are turned.
    pub fn levels(&self) -> impl Iterator<Item = (&str, &str)> {
        self.changes.iter().map(|turn| (turn.knob, turn.level.as_str()))
    }

    /// The writes that this user may not make, or whose target does not exist, each with its reason.
    /// Nothing is written to find out.
    pub fn refused(&self) -> Vec<(&KnobWrite, RootError)> {
        let mut groups: Vec<String> = Vec::new();
        let mut refused = Vec::new();
        for (_, _, write) in self.writes() {
            let KnobTarget { path, within } = &write.place;
            let result = match within {
                TargetPart::Affinity | TargetPart::MemoryPolicy => Ok(()),
                TargetPart::Group => {
                    groups.push(format!("{path}/"));
                    let above = path.rsplit_once('/').map_or("/", |(above, _)| above);
                    self.root.may_write(above)
                }
                // It is created with its group.
                _ if groups.iter().any(|group| path.starts_with(group)) => Ok(()),
                _ => self.root.may_write(path),
            };
            if let Err(why) = result {
                refused.push((write, why));
            }
        }
        refused
    }

    /// Whether the levels can outlive this process.
    pub fn check_keepable(&self) -> Result<(), KnobError> {
        for turn in &self.changes {
            // A task in a group ends with its process, too.
            let ends =
                |write: &KnobWrite| write.place.is_own() || write.place.path.ends_with("/tasks");
            if turn.writes.iter().any(ends) {
                let (knob, level) = (turn.knob.to_owned(), turn.level.clone());
                return Err(KnobError::CannotKeep { knob, level });
            }
        }
        Ok(())
    }

    /// Drops writes that another knob has planned already, as two knobs may need the same one. A
    /// group's task list is exempt, as it has many values.
    fn drop_planned_writes(
        &self,
        knob: &str,
        writes: &mut Vec<KnobWrite>,
    ) -> Result<(), KnobError> {
        let mut conflict = None;
        writes.retain(|write| {
            let many = write.place.path.ends_with("/tasks");
            let other = self.writes().find(|(_, _, other)| {
                let same = other.place == write.place && other.after != RestoreAction::Kept;
                same && (!many || other.new == write.new)
            });
            let Some((first, _, other)) = other else { return true };
            if other.new != write.new && write.after != RestoreAction::Kept {
                conflict.get_or_insert_with(|| KnobError::Conflict {
                    first: first.to_owned(),
                    second: knob.to_owned(),
                    place: write.place.to_string(),
                    a: other.new.clone(),
                    b: write.new.clone(),
                });
            }
            // A value that is lost must be written back even where an earlier knob writes it.
            write.after == RestoreAction::Kept
        });
        conflict.map_or(Ok(()), Err)
    }
}
