//! Questions without an answer, by the reason: a reader wants what was measured first.

use analyse::answer::{Answer, AnswerKind, Unanswered};
use model::design::Question;

use super::StudyReport;

/// Questions that have the same reason to be without an answer.
#[derive(Debug, PartialEq, Eq)]
pub struct UnansweredQuestions<'s> {
    /// `Not measurable here` or `Not enough data`.
    pub heading: &'static str,
    pub why: &'s str,
    pub asks: Vec<&'s str>,
}

/// The questions that have an answer, in their order.
pub fn answered<'s>(study: &'s StudyReport) -> impl Iterator<Item = (&'s Answer, &'s Question)> {
    let all = study.answers.iter().zip(&study.design.questions);
    all.filter(|(answer, _)| !matches!(answer.kind, AnswerKind::Nothing(_)))
}

/// The others, each reason once.
pub fn unanswered<'s>(study: &'s StudyReport) -> Vec<UnansweredQuestions<'s>> {
    let mut all: Vec<UnansweredQuestions> = Vec::new();
    for answer in &study.answers {
        let AnswerKind::Nothing(reason) = &answer.kind else { continue };
        let (heading, why) = match reason {
            Unanswered::NotMeasurable(why) => ("Not measurable here", why),
            Unanswered::NotEnough(why) => ("Not enough data", why),
        };
        match all.iter_mut().find(|known| known.heading == heading && known.why == why) {
            Some(known) => known.asks.push(&answer.ask),
            None => all.push(UnansweredQuestions { heading, why, asks: vec![&answer.ask] }),
        }
    }
    all
}
