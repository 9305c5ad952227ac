//! Questions that a study cannot answer at the scale at which it was run.

use model::Design;
use model::design::{AS_FOUND, Factor, Question};

/// Takes the questions out of a design that its scale leaves nothing to answer from: it has one
/// level of their factors, or none of the levels that they are about. What the machine lacks is not
/// the scale's doing, and stays.
pub fn take_unscaled(design: &mut Design) -> Vec<Question> {
    if design.scale.is_none() {
        return Vec::new();
    }
    let questions = std::mem::take(&mut design.questions);
    let (asked, left) = questions.into_iter().partition(|question| is_asked(design, question));
    design.questions = asked;
    left
}

fn is_asked(design: &Design, question: &Question) -> bool {
    let whole = |name: &str| design.factor(name).filter(|factor| is_as_designed(design, factor));
    let varies = |name: &String| whole(name).is_none_or(|factor| factor.levels.len() > 1);
    let mut varied = question.factor.iter().chain(&question.factors).chain(&question.graduated);
    let mut conditions = question.within.0.iter();
    varied.all(varies)
        && conditions.all(|(name, wanted)| {
            whole(name)
                .is_none_or(|factor| factor.levels.iter().any(|level| wanted.contains(level)))
        })
}

/// Whether its levels are those of the study, not what the machine left of them.
fn is_as_designed(design: &Design, factor: &Factor) -> bool {
    let skipped = design.skipped.iter().any(|cell| cell.levels.contains_key(&factor.name));
    !skipped && factor.levels.iter().all(|level| level != AS_FOUND)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn design() -> Design {
        serde_json::from_value(serde_json::json!({
            "factors": [
                { "name": "rate", "sets": ["measure.rate"], "levels": ["1k"] },
                { "name": "idle", "sets": ["knobs.idle"], "levels": ["all", "none"] },
                { "name": "smt", "sets": ["knobs.smt"], "levels": ["as found"] },
            ],
            "questions": [
                { "ask": "load?", "metric": "power_w", "factor": "rate" },
                { "ask": "idle?", "metric": "power_w", "factor": "idle" },
                { "ask": "high?", "metric": "power_w", "factor": "idle", "where": { "rate": "9k" } },
                { "ask": "low?", "metric": "power_w", "factor": "idle", "where": { "rate": "1k" } },
                { "ask": "smt?", "metric": "power_w", "factor": "smt" },
                { "ask": "which?", "best": "power_w" },
            ],
        }))
        .unwrap()
    }

    fn asks(questions: &[Question]) -> Vec<&str> {
        questions.iter().map(|question| question.ask.as_str()).collect()
    }

    #[test]
    fn questions_without_levels_wait_for_another_scale() {
        let mut whole = design();
        assert!(take_unscaled(&mut whole).is_empty(), "without a scale all are asked");
        let scale = serde_json::json!({ "name": "small", "note": "", "set": {} });
        whole.scale = Some(serde_json::from_value(scale).unwrap());
        let left = take_unscaled(&mut whole);
        assert_eq!(asks(&left), ["load?", "high?"]);
        assert_eq!(asks(&whole.questions), ["idle?", "low?", "smt?", "which?"]);
    }
}
