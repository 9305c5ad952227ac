//! Files that hold one word of a few.

use super::error::No;
use super::place::Place;
use super::plan::Turn;
use super::proof::{Outcome, Prove};
use super::write::Write;
use crate::root::Root;

/// Writes the same word to every place.
pub(super) fn turn(
    root: &Root,
    places: impl IntoIterator<Item = String>,
    word: &str,
    prove: Prove,
) -> Result<Turn, No> {
    let mut writes = Vec::new();
    for path in places {
        writes.extend(Write::turn(root, Place::file(path), word)?);
    }
    Ok(Turn { writes, prove })
}

/// An error for a word that is none of the levels.
pub(super) fn check(level: &str, levels: &[String]) -> Result<(), No> {
    match levels.iter().any(|known| known == level) {
        true => Ok(()),
        false => Err(No::Level("there is no such level here".to_owned())),
    }
}

/// The words of a file, without the brackets of the chosen one.
pub(super) fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(|word| word.trim_matches(['[', ']']).to_owned()).collect()
}

/// For a knob whose effect no single look can show.
pub(super) fn unverified(why: &'static str) -> Prove {
    Box::new(move |_| Outcome::Unverified(why.to_owned()))
}
