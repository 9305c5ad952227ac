//! Notes of many rows, grouped.

use std::collections::HashMap;

/// The most rows or runs that are named.
pub(super) const MAX_NAMED: usize = 3;

/// Each distinct note once, with the names of its rows. Notes that differ only in numbers are merged, with the
/// least and the greatest number: `1.0 to 2.3 degrees of freedom`.
pub(super) fn notes(rows: &[(&str, Option<&str>)]) -> Vec<String> {
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut all: Vec<(NumberedSentence, Vec<&str>)> = Vec::new();
    for (name, note) in rows {
        let Some(note) = note else { continue };
        let sentence = NumberedSentence::of(note);
        let place = *places.entry(sentence.shape()).or_insert(all.len());
        match all.get_mut(place) {
            Some((known, named)) => {
                known.widen(&sentence);
                named.push(*name);
            }
            None => all.push((sentence, vec![*name])),
        }
    }
    let text_of = |(sentence, named): &(NumberedSentence, Vec<&str>)| {
        format!("{}: {}", subjects(named, rows.len()), sentence.written())
    };
    all.iter().map(text_of).collect()
}

/// The names of the first rows, and how many more.
fn subjects(named: &[&str], of: usize) -> String {
    if named.len() == of && of > 1 {
        return "all rows".to_owned();
    }
    let first = named[..named.len().min(MAX_NAMED)].join("; ");
    match named.len().saturating_sub(MAX_NAMED) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

/// A sentence with its numbers left out.
pub(crate) fn shape(text: &str) -> String {
    NumberedSentence::of(text).shape().replace('\u{0}', "…")
}

/// A sentence whose numbers may be ranges.
pub(super) struct NumberedSentence {
    words: Vec<SentenceWord>,
}

struct SentenceWord {
    text: String,
    /// For a number: the least and the greatest value, and the text of the greatest.
    range: Option<(f64, f64)>,
    greatest: String,
}

impl NumberedSentence {
    pub fn of(text: &str) -> NumberedSentence {
        NumberedSentence { words: text.split(' ').map(SentenceWord::of).collect() }
    }

    /// The sentence without its numbers, as a key.
    pub fn shape(&self) -> String {
        let part = |word: &SentenceWord| match word.range {
            Some(_) => format!("\u{0}{}", word.end()),
            None => word.text.clone(),
        };
        self.words.iter().map(part).collect::<Vec<_>>().join(" ")
    }

    /// `other` has the same shape.
    pub fn widen(&mut self, other: &NumberedSentence) {
        for (known, word) in self.words.iter_mut().zip(&other.words) {
            known.widen(word);
        }
    }

    pub fn written(&self) -> String {
        self.words.iter().map(SentenceWord::written).collect::<Vec<_>>().join(" ")
    }
}

impl SentenceWord {
    fn of(text: &str) -> Self {
        let number = text.trim_end_matches([',', ';', '.']).parse::<f64>().ok();
        let range = number.filter(|number| number.is_finite()).map(|number| (number, number));
        SentenceWord { text: text.to_owned(), range, greatest: text.to_owned() }
    }

    /// The punctuation after a number.
    fn end(&self) -> &str {
        &self.text[self.text.trim_end_matches([',', ';', '.']).len()..]
    }

    fn widen(&mut self, other: &SentenceWord) {
        let (Some((low, high)), Some((value, _))) = (&mut self.range, other.range) else { return };
        if value < *low {
            *low = value;
            self.text.clone_from(&other.text);
        }
        if value > *high {
            *high = value;
            self.greatest.clone_from(&other.text);
        }
    }

    fn written(&self) -> String {
        if self.text == self.greatest {
            return self.text.clone();
        }
        let least = self.text.trim_end_matches([',', ';', '.']);
        format!("{least} to {}", self.greatest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_of_all_rows_are_merged() {
        let between = |df: &str| format!("Welch's t on logarithms, {df} degrees of freedom");
        let (a, b, c) = (between("4.0"), between("1.2"), between("11.9"));
        let rows = [("a", Some(a.as_str())), ("b", Some(b.as_str())), ("c", Some(c.as_str()))];
        let text = "all rows: Welch's t on logarithms, 1.2 to 11.9 degrees of freedom";
        assert_eq!(notes(&rows), [text]);
        assert_eq!(notes(&rows[..1]), [format!("a: {a}")]);
    }

    #[test]
    fn notes_of_different_words_are_separate() {
        let few = "30 samples are too few for p99;";
        let rows = [
            ("a p99", Some(few)),
            ("b p99", Some("40 samples are too few for p99;")),
            ("c p99", Some("7 samples are too few for p99;")),
            ("d p99", Some(few)),
            ("e p99.9", Some("40 samples are too few for p99.9;")),
            ("f", None),
        ];
        assert_eq!(
            notes(&rows),
            [
                "a p99; b p99; c p99 and 1 more: 7 to 40 samples are too few for p99;",
                "e p99.9: 40 samples are too few for p99.9;",
            ]
        );
    }

    #[test]
    fn a_number_keeps_its_punctuation() {
        let rows = [("a", Some("got 3, not 4")), ("b", Some("got 2, not 4"))];
        assert_eq!(notes(&rows), ["all rows: got 2 to 3, not 4"]);
    }
}
