//! Notes of many rows, each once.

use std::collections::HashMap;

use super::DifferenceRow;

/// So many rows or runs are named.
pub(super) const NAMED: usize = 3;

/// Each distinct note once, with the rows that it is about. Notes that differ in numbers alone
/// are one, with the least and the greatest number: `1.0 to 2.3 degrees of freedom`.
pub fn notes(rows: &[DifferenceRow]) -> Vec<String> {
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut all: Vec<(Sentence, Vec<&str>)> = Vec::new();
    for row in rows {
        let Some(note) = &row.note else { continue };
        let sentence = Sentence::of(note);
        let place = *places.entry(sentence.shape()).or_insert(all.len());
        match all.get_mut(place) {
            Some((known, named)) => {
                known.widen(&sentence);
                named.push(&row.what);
            }
            None => all.push((sentence, vec![&row.what])),
        }
    }
    let told = |(sentence, named): &(Sentence, Vec<&str>)| {
        format!("{}: {}", subjects(named, rows.len()), sentence.written())
    };
    all.iter().map(told).collect()
}

/// The rows in few words.
fn subjects(named: &[&str], of: usize) -> String {
    if named.len() == of && of > 1 {
        return "all rows".to_owned();
    }
    let first = named[..named.len().min(NAMED)].join("; ");
    match named.len().saturating_sub(NAMED) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

/// A sentence with its numbers left out.
pub(crate) fn shape(text: &str) -> String {
    Sentence::of(text).shape().replace('\u{0}', "…")
}

/// A sentence whose numbers may be ranges.
pub(super) struct Sentence {
    words: Vec<Word>,
}

struct Word {
    text: String,
    /// Where it is a number: the least and the greatest that stood there, and how the greatest
    /// was written.
    range: Option<(f64, f64)>,
    greatest: String,
}

impl Sentence {
    pub fn of(text: &str) -> Sentence {
        Sentence { words: text.split(' ').map(Word::of).collect() }
    }

    /// What sentences that differ in numbers alone have in common.
    pub fn shape(&self) -> String {
        let part = |word: &Word| match word.range {
            Some(_) => format!("\u{0}{}", word.end()),
            None => word.text.clone(),
        };
        self.words.iter().map(part).collect::<Vec<_>>().join(" ")
    }

    /// `other` has the same shape.
    pub fn widen(&mut self, other: &Sentence) {
        for (known, word) in self.words.iter_mut().zip(&other.words) {
            known.widen(word);
        }
    }

    pub fn written(&self) -> String {
        self.words.iter().map(Word::written).collect::<Vec<_>>().join(" ")
    }
}

impl Word {
    fn of(text: &str) -> Self {
        let number = text.trim_end_matches([',', ';', '.']).parse::<f64>().ok();
        let range = number.filter(|number| number.is_finite()).map(|number| (number, number));
        Word { text: text.to_owned(), range, greatest: text.to_owned() }
    }

    /// What is not the number: a comma, or nothing.
    fn end(&self) -> &str {
        &self.text[self.text.trim_end_matches([',', ';', '.']).len()..]
    }

    fn widen(&mut self, other: &Word) {
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
    use model::Unit;

    use super::*;
    use crate::Verdict;

    fn row(what: &str, note: Option<&str>) -> DifferenceRow {
        DifferenceRow {
            what: what.to_owned(),
            unit: Unit::Ratio,
            a: None,
            b: None,
            ratio: None,
            low: None,
            high: None,
            verdict: Verdict::NotEnoughData,
            note: note.map(str::to_owned),
            n_a: 1,
            n_b: 1,
        }
    }

    #[test]
    fn one_note_of_all_rows() {
        let between = |df: &str| format!("Welch's t on logarithms, {df} degrees of freedom");
        let (a, b, c) = (between("4.0"), between("1.2"), between("11.9"));
        let rows = [row("a", Some(&a)), row("b", Some(&b)), row("c", Some(&c))];
        let text = "all rows: Welch's t on logarithms, 1.2 to 11.9 degrees of freedom";
        assert_eq!(notes(&rows), [text]);
        assert_eq!(notes(&rows[..1]), [format!("a: {a}")]);
    }

    #[test]
    fn other_words_are_other_notes() {
        let few = "30 samples are too few for p99;";
        let rows = [
            row("a p99", Some(few)),
            row("b p99", Some("40 samples are too few for p99;")),
            row("c p99", Some("7 samples are too few for p99;")),
            row("d p99", Some(few)),
            row("e p99.9", Some("40 samples are too few for p99.9;")),
            row("f", None),
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
    fn a_number_keeps_what_stands_behind_it() {
        let rows = [row("a", Some("got 3, not 4")), row("b", Some("got 2, not 4"))];
        assert_eq!(notes(&rows), ["all rows: got 2 to 3, not 4"]);
    }
}
