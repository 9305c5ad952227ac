//! Notes on runs: invalidity and warnings.

use std::collections::HashMap;

use model::{Execution, Failures, Run};

use super::grouped_notes::{MAX_NAMED, NumberedSentence};
use crate::overview::is_many;
use crate::run_names;
use crate::table::Tone;

/// The severity of a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NoteWeight {
    /// The runs are invalid.
    Invalid,
    /// The runs are valid, but their measurements contradict each other.
    Finding,
    /// The runs are valid.
    Warning,
}

/// A sentence and its runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Note {
    pub weight: NoteWeight,
    pub text: String,
    /// Their names; of very many the first ones.
    pub runs: Vec<String>,
    /// How many they are.
    pub count: usize,
}

/// The most notes on many runs.
const MAX_NOTES: usize = 200;

/// Reasons for invalidity first, then wrong answers, then breaches of the checks of client and
/// server and of meters, then warnings; equal ones grouped. For many runs also those that differ only in numbers,
/// with the least and the greatest: `1.0 to 2.3 %`.
pub fn notes(runs: &[(&Execution, &Run)]) -> Vec<Note> {
    let mut gathered = NoteGroups { many: is_many(runs), ..NoteGroups::default() };
    let names = run_names::names(runs);
    for ((_, run), name) in runs.iter().zip(&names) {
        for reason in &run.invalid_because {
            gathered.add(NoteWeight::Invalid, reason, name);
        }
    }
    for ((_, run), name) in runs.iter().zip(&names) {
        let is_new =
            |failure: &&Failures| !run.invalid_because.iter().any(|r| names_failure(r, failure));
        for failure in run.failures.iter().filter(is_new) {
            let weight = if run.valid() { NoteWeight::Warning } else { NoteWeight::Invalid };
            let count = crate::format::count(failure.count);
            let text = format!("{count} answers `{}`; the first: {}", failure.kind, failure.first);
            gathered.add(weight, &text, name);
        }
    }
    for ((_, run), name) in runs.iter().zip(&names) {
        for breach in super::sides::breaches(run) {
            gathered.add(NoteWeight::Finding, &breach, name);
        }
    }
    let contradicts = |warning: &&String| warning.starts_with(analyse::meter_checks::BREACH);
    for ((_, run), name) in runs.iter().zip(&names) {
        for breach in run.warnings.iter().filter(contradicts) {
            gathered.add(NoteWeight::Finding, breach, name);
        }
    }
    for ((_, run), name) in runs.iter().zip(&names) {
        for warning in run.warnings.iter().filter(|warning| !contradicts(warning)) {
            gathered.add(NoteWeight::Warning, warning, name);
        }
    }
    gathered.notes()
}

#[derive(Default)]
struct NoteGroups {
    many: bool,
    /// The position in `entries` of each sentence, by its shape.
    places: HashMap<(NoteWeight, String), usize>,
    entries: Vec<(NoteWeight, NumberedSentence, Vec<String>, usize)>,
    /// Notes beyond the limit.
    omitted: usize,
}

impl NoteGroups {
    fn add(&mut self, weight: NoteWeight, text: &str, name: &str) {
        let sentence = NumberedSentence::of(text);
        let shape = if self.many { sentence.shape() } else { text.to_owned() };
        match self.places.get(&(weight, shape)) {
            Some(place) => {
                let (_, known, names, count) = &mut self.entries[*place];
                known.widen(&sentence);
                *count += 1;
                if !self.many || names.len() < MAX_NAMED {
                    names.push(name.to_owned());
                }
            }
            None if self.many && self.entries.len() >= MAX_NOTES => self.omitted += 1,
            None => {
                let shape = if self.many { sentence.shape() } else { text.to_owned() };
                self.places.insert((weight, shape), self.entries.len());
                self.entries.push((weight, sentence, vec![name.to_owned()], 1));
            }
        }
    }

    fn notes(self) -> Vec<Note> {
        let omitted = (self.omitted > 0).then(|| Note {
            weight: NoteWeight::Warning,
            text: format!(
                "{} more remarks are not shown here: `kvmeter export` has those of every run",
                crate::format::count(self.omitted as u64)
            ),
            runs: vec!["other runs".to_owned()],
            count: 1,
        });
        let notes = self.entries.into_iter().map(|(weight, sentence, runs, count)| Note {
            weight,
            text: sentence.written(),
            runs,
            count,
        });
        notes.chain(omitted).collect()
    }
}

/// Whether a reason for invalidity already names these failures.
fn names_failure(reason: &str, failure: &Failures) -> bool {
    reason.contains(&format!("({})", failure.kind)) && reason.contains(&failure.first)
}

impl Note {
    /// `INVALID`, `finding` or `warning`.
    pub fn word(&self) -> &'static str {
        match self.weight {
            NoteWeight::Invalid => "INVALID",
            NoteWeight::Finding => "finding",
            NoteWeight::Warning => "warning",
        }
    }

    pub fn tone(&self) -> Tone {
        match self.weight {
            NoteWeight::Invalid | NoteWeight::Finding => Tone::Bad,
            NoteWeight::Warning => Tone::Warning,
        }
    }

    /// The names of the runs: all up to three, else the first and how many more.
    pub fn subjects(&self) -> String {
        match self.runs.first() {
            Some(first) if self.count > MAX_NAMED => format!("{first} and {} more", self.count - 1),
            _ => self.runs.join(", "),
        }
    }

    /// All known names of the runs.
    pub fn names(&self) -> String {
        match self.count - self.runs.len() {
            0 => self.runs.join(", "),
            more => format!("{} and {} more", self.runs.join(", "), more),
        }
    }
}
