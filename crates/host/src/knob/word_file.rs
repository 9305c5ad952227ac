//! Files that hold one of a few words.

use super::error::KnobRefusal;
use super::plan::KnobChange;
use super::proof::{ProofOutcome, Prove};
use super::target::KnobTarget;
use super::write::KnobWrite;
use crate::root::Root;

/// The change that writes the same word to every file.
pub(super) fn plan_writes(
    root: &Root,
    places: impl IntoIterator<Item = String>,
    word: &str,
    prove: Prove,
) -> Result<KnobChange, KnobRefusal> {
    let mut writes = Vec::new();
    for path in places {
        writes.extend(KnobWrite::turn(root, KnobTarget::file(path), word)?);
    }
    Ok(KnobChange { writes, prove })
}

/// Refuses a word that is not a level.
pub(super) fn check(level: &str, levels: &[String]) -> Result<(), KnobRefusal> {
    match levels.iter().any(|known| known == level) {
        true => Ok(()),
        false => Err(KnobRefusal::Level("there is no such level here".to_owned())),
    }
}

/// The words of a file, without the brackets of the selected one.
pub(super) fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(|word| word.trim_matches(['[', ']']).to_owned()).collect()
}

/// The proof of a knob whose effect cannot be observed at once.
pub(super) fn unverified(why: &'static str) -> Prove {
    Box::new(move |_| ProofOutcome::Unverified(why.to_owned()))
}
