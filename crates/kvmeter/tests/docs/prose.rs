//! Plain English: no private dialect, no sentence that is read twice.

use std::path::Path;

use crate::markdown::{Block, Document};
use crate::tree::documents;

/// A line is `what must not stand there = what to write`, or a comment.
const WORDS: &str = include_str!("words.txt");

/// Aim at 25.
const LONGEST_SENTENCE: usize = 35;

/// Whose prose is not checked: notes on fixtures, and the studies, whose pages follow a paper.
fn is_left_out(document: &Document) -> bool {
    document.path.starts_with("studies")
        || document.path.components().any(|part| part.as_os_str() == "tests")
}

fn checked() -> impl Iterator<Item = (Document, Vec<Block>)> {
    let checked = documents().into_iter().filter(|document| !is_left_out(document));
    checked.map(|document| {
        let blocks = document.blocks();
        (document, blocks)
    })
}

#[test]
fn no_private_dialect() {
    let words: Vec<(&str, &str)> = WORDS
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| line.split_once(" = ").unwrap_or_else(|| panic!("no ` = ` in {line:?}")))
        .collect();
    let mut found = Vec::new();
    for (document, blocks) in checked() {
        for block in blocks {
            let text = spaced(&block.prose);
            for (word, instead) in &words {
                if text.contains(&spaced(word)) {
                    let place = place(&document.path, &block);
                    found.push(format!("{place}: \"{word}\"; write {instead}"));
                }
            }
        }
    }
    assert!(found.is_empty(), "private dialect:\n{}", found.join("\n"));
}

#[test]
fn no_sentence_is_too_long() {
    let mut found = Vec::new();
    for (document, blocks) in checked() {
        for block in blocks {
            for sentence in sentences(&block.prose) {
                let words = sentence.split_whitespace().filter(|word| is_word(word)).count();
                if words > LONGEST_SENTENCE {
                    let place = place(&document.path, &block);
                    found.push(format!("{place}: {words} words: {sentence}"));
                }
            }
        }
    }
    let most = LONGEST_SENTENCE;
    assert!(found.is_empty(), "sentences of more than {most} words:\n{}", found.join("\n"));
}

fn place(path: &Path, block: &Block) -> String {
    format!("{}:{}", path.display(), block.line)
}

/// A sentence ends at a full stop, a question or exclamation mark with a space behind it.
fn sentences(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(". ").flat_map(|part| part.split_inclusive("? ")).map(str::trim)
}

/// Signs and numbers alone are none.
fn is_word(word: &str) -> bool {
    word.chars().any(char::is_alphabetic) || word.contains(crate::markdown::CODE)
}

/// In lower case, with one space around each word and without punctuation, so that whole words match.
fn spaced(text: &str) -> String {
    let letters = |c: char| c.is_alphanumeric() || "'-".contains(c);
    let words = text.split(|c| !letters(c)).filter(|word| !word.is_empty());
    words.fold(String::from(" "), |line, word| line + &word.to_lowercase() + " ")
}
