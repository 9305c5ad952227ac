//! Top-down analysis: which share of the pipeline's slots retires operations, and what the others
//! wait for. The events and formulas are data ([`TopDownTable`]), as the vendors publish them.

mod amd;
mod arm;
mod count;
mod formula;
mod intel;
mod shares;
mod table;

pub(super) use amd::{ZEN_4, ZEN_5, ZEN_6};
pub(super) use arm::NEOVERSE;
pub use count::{CountedProcess, TopDownPlan, TopDownSession};
pub(super) use intel::{GOLDEN_COVE, ICE_LAKE, SKYLAKE};
pub use shares::{TopDownCounts, shares};
pub use table::TopDownTable;

#[cfg(test)]
mod tests {
    use model::{ReadingValue, SlotCategory};

    use super::*;
    use crate::perf::CountedEvent;

    fn tables() -> impl Iterator<Item = &'static TopDownTable> {
        [GOLDEN_COVE, ICE_LAKE, SKYLAKE, ZEN_4, ZEN_5, ZEN_6, NEOVERSE].into_iter().flatten()
    }

    fn counted(value: f64) -> CountedEvent {
        CountedEvent { value, running: 1.0, seconds: 1.0 }
    }

    #[test]
    fn each_formula_is_one_and_has_its_events() {
        for table in tables() {
            let leader = table.groups[0][0];
            assert!(table.groups.iter().all(|group| group[0] == leader), "{}", table.name);
            // Every event is used: without it a formula has no value.
            for (group, events) in table.groups.iter().enumerate() {
                for at in 0..events.len() {
                    let mut counts: TopDownCounts = table
                        .groups
                        .iter()
                        .map(|events| events.iter().map(|_| Ok(counted(1.0))).collect())
                        .collect();
                    let missing = model::Unavailable::new("the one that is missing", "-");
                    counts[group][at] = Err(missing);
                    let shares = shares(table, &counts);
                    let without = shares.iter().filter(|share| match &share.share {
                        ReadingValue::Unavailable { reason, .. } => {
                            assert!(!reason.contains("has no event"), "{}: {reason}", table.name);
                            assert!(!reason.contains("not a formula"), "{}: {reason}", table.name);
                            reason == "the one that is missing" || reason.contains("contradict")
                        }
                        ReadingValue::Value(_) => false,
                    });
                    assert!(without.count() > 0, "{}: {}", table.name, events[at].name);
                }
            }
            for (name, _) in table.formulas() {
                let lower = name.chars().all(|c| c.is_ascii_lowercase() || c == '_');
                assert!(lower, "{name}");
                if name.ends_with("_bound") || name.ends_with("_operations") {
                    let is_one = SlotCategory::ALL.iter().any(|category| category.key() == name);
                    assert!(is_one, "{name} is no category");
                }
            }
        }
    }
}
