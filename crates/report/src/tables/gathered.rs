//! Notes of many rows, each once.

use super::DifferenceRow;

/// So many rows are named.
const NAMED: usize = 3;

/// What rows share in words, and the rows.
struct Gathered<'r> {
    /// Each word with the least and the greatest that stood there, where it is a number.
    words: Vec<Word<'r>>,
    rows: Vec<&'r str>,
}

#[derive(Clone)]
struct Word<'r> {
    text: &'r str,
    /// The number of the word that is least, and of the one that is greatest.
    range: Option<(f64, f64)>,
    greatest: &'r str,
}

/// Each distinct note once, with the rows that it is about. Notes that differ in numbers alone
/// are one, with the least and the greatest number: `1.0 to 2.3 degrees of freedom`.
pub fn notes(rows: &[DifferenceRow]) -> Vec<String> {
    let mut all: Vec<Gathered> = Vec::new();
    for row in rows {
        let Some(note) = &row.note else { continue };
        let words: Vec<Word> = note.split_whitespace().map(Word::of).collect();
        match all.iter_mut().find(|known| alike(&known.words, &words)) {
            Some(known) => {
                known.rows.push(&row.what);
                for (known, word) in known.words.iter_mut().zip(&words) {
                    known.widen(word);
                }
            }
            None => all.push(Gathered { words, rows: vec![&row.what] }),
        }
    }
    all.iter()
        .map(|note| {
            let words: Vec<String> = note.words.iter().map(Word::written).collect();
            format!("{}: {}", subjects(&note.rows, rows.len()), words.join(" "))
        })
        .collect()
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

fn alike(a: &[Word], b: &[Word]) -> bool {
    let same = |(a, b): (&Word, &Word)| {
        a.text == b.text || (a.range.is_some() && b.range.is_some() && a.end() == b.end())
    };
    a.len() == b.len() && a.iter().zip(b).all(same)
}

impl<'r> Word<'r> {
    fn of(text: &'r str) -> Self {
        let number = text.trim_end_matches([',', ';', '.']).parse::<f64>().ok();
        let range = number.filter(|number| number.is_finite()).map(|number| (number, number));
        Word { text, range, greatest: text }
    }

    /// What is not the number: a comma, or nothing.
    fn end(&self) -> &'r str {
        &self.text[self.text.trim_end_matches([',', ';', '.']).len()..]
    }

    fn widen(&mut self, other: &Word<'r>) {
        let (Some((low, high)), Some((value, _))) = (&mut self.range, other.range) else { return };
        if value < *low {
            *low = value;
            self.text = other.text;
        }
        if value > *high {
            *high = value;
            self.greatest = other.text;
        }
    }

    fn written(&self) -> String {
        if self.text == self.greatest {
            return self.text.to_owned();
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
