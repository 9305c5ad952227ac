//! Files that hold one word of a few.

use super::error::KnobRefusal;
use super::target::KnobTarget;
use super::plan::KnobChange;
use super::proof::{ProofOutcome, Prove};
use super::write::KnobWrite;
use crate::root::Root;

/// Writes the same word to every place.
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

/// An error for a word that is none of the levels.
pub(super) fn check(level: &str, levels: &[String]) -> Result<(), KnobRefusal> {
    match levels.iter().any(|known| known == level) {
        true => Ok(()),
        false => Err(KnobRefusal::Level("there is no such level here".to_owned())),
    }
}

/// The words of a file, without the brackets of the chosen one.
pub(super) fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(|word| word.trim_matches(['[', ']']).to_owned()).collect()
}

/// For a knob whose effect no single look can show.
pub(super) fn unverified(why: &'static str) -> Prove {
    Box::new(move |_| ProofOutcome::Unverified(why.to_owned()))
}
