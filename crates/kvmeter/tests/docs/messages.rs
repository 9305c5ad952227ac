//! Every text that a user may see, in one file that a reviewer can read: messages, sentences of
//! reports, and the help of flags. `messages.txt` changes with the sources; written anew by
//! `KVMETER_WRITE_MESSAGES=1 cargo test --release --package kvmeter --test docs messages`.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use crate::tree::root;

/// Fewer words are names and parts.
const FEWEST_WORDS: usize = 4;
/// Derives whose documentation is help.
const HELP: [&str; 4] = ["Args", "Parser", "Subcommand", "ValueEnum"];

#[test]
fn messages_are_those_that_were_read() {
    let (mut found, file) = (String::new(), root().join("crates/kvmeter/tests/docs/messages.txt"));
    let mut sources = Vec::new();
    sources_below(&root().join("crates"), &mut sources);
    sources.sort();
    for source in sources {
        let tokens: TokenStream = fs::read_to_string(&source).unwrap().parse().unwrap();
        let mut texts = BTreeSet::new();
        collect(tokens, false, &mut texts);
        if !texts.is_empty() {
            writeln!(found, "\n== {}", source.strip_prefix(root()).unwrap().display()).unwrap();
            texts.iter().for_each(|text| writeln!(found, "{text}").unwrap());
        }
    }
    if std::env::var_os("KVMETER_WRITE_MESSAGES").is_some() {
        fs::write(&file, &found).unwrap();
    }
    let known = fs::read_to_string(&file).unwrap();
    let (known, found) = (lines(&known), lines(&found));
    let new: Vec<_> = found.difference(&known).collect();
    let gone: Vec<_> = known.difference(&found).collect();
    assert!(
        new.is_empty() && gone.is_empty(),
        "messages changed; read them, and write messages.txt anew with KVMETER_WRITE_MESSAGES=1\n\
         new: {new:#?}\ngone: {gone:#?}"
    );
}

/// Each text with its file.
fn lines(text: &str) -> BTreeSet<(&str, &str)> {
    let mut file = "";
    let mut all = BTreeSet::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        match line.strip_prefix("== ") {
            Some(name) => file = name,
            None => drop(all.insert((file, line))),
        }
    }
    all
}

fn sources_below(folder: &Path, paths: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        match path.is_dir() {
            true if !["target", "tests", "benches", "examples", "fixtures"].contains(&&*name) => {
                sources_below(&path, paths);
            }
            false if name.ends_with(".rs") && name != "build.rs" && name != "tests.rs" => {
                paths.push(path);
            }
            _ => {}
        }
    }
}

/// The texts of a stream: literals, and documentation where it is `help`.
fn collect(tokens: TokenStream, help: bool, texts: &mut BTreeSet<String>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    // What the attributes before an item say of it.
    let (mut is_help, mut is_test) = (false, false);
    let mut at = 0;
    while at < tokens.len() {
        // Attributes of a file are documentation of its code.
        if is(&tokens[at], '#') && tokens.get(at + 1).is_some_and(|next| is(next, '!')) {
            at += 3;
            continue;
        }
        if let (Some(attribute), true) = (group(tokens.get(at + 1)), is(&tokens[at], '#')) {
            let words = attribute.to_string();
            is_help |= words.starts_with("derive") && HELP.iter().any(|name| words.contains(name));
            is_test |= words == "cfg (test)" || words == "cfg(test)";
            let documentation = words.starts_with("doc");
            if !documentation || help || is_help {
                collect(attribute, false, texts);
            }
            at += 2;
            continue;
        }
        match &tokens[at] {
            TokenTree::Literal(literal) => texts.extend(text(&literal.to_string())),
            TokenTree::Group(inner) => {
                let body = inner.delimiter() == Delimiter::Brace;
                if !(body && is_test) {
                    collect(inner.stream(), help || is_help && body, texts);
                }
                if body {
                    (is_help, is_test) = (false, false);
                }
            }
            other if is(other, ';') => (is_help, is_test) = (false, false),
            _ => {}
        }
        at += 1;
    }
}

fn is(token: &TokenTree, sign: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == sign)
}

/// The stream of an attribute.
fn group(token: Option<&TokenTree>) -> Option<TokenStream> {
    match token {
        Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Bracket => {
            Some(group.stream())
        }
        _ => None,
    }
}

/// A literal as one line, where it is a text of some words.
fn text(literal: &str) -> Option<String> {
    let raw = literal.starts_with('r');
    let inner = literal.trim_start_matches('r').trim_matches('#');
    let inner = inner.strip_prefix('"')?.strip_suffix('"')?;
    let mut line = String::new();
    let mut rest = inner.chars().peekable();
    while let Some(letter) = rest.next() {
        match letter {
            '\\' if !raw => match rest.next() {
                // A line that goes on.
                Some('\n') => while rest.next_if(|next| next.is_whitespace()).is_some() {},
                Some('n' | 't') => line.push(' '),
                Some(other) => line.push(other),
                None => {}
            },
            '\n' => line.push(' '),
            other => line.push(other),
        }
    }
    let words = line.split_whitespace().filter(|word| word.chars().any(char::is_alphabetic));
    let is_sql = ["SELECT ", "INSERT ", "CREATE ", "WITH "].iter().any(|sql| line.contains(sql));
    (words.count() >= FEWEST_WORDS && !is_sql).then(|| line.trim().to_owned())
}
