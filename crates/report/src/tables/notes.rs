//! What a reader must know beside the numbers: why runs do not count, and warnings.

use std::collections::HashMap;

use record::{Execution, Failures, Run};

use super::gathered::{NAMED, Sentence};
use crate::many::many;
use crate::naming;
use crate::table::Tone;

/// How much a note takes from the runs that it is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Weight {
    /// They do not count.
    Invalid,
    /// They stand, but what was measured contradicts itself.
    Finding,
    /// They stand.
    Warning,
}

/// One sentence and the runs that it is about.
#[derive(Debug, Clone, PartialEq)]
pub struct Note {
    pub weight: Weight,
    pub text: String,
    /// Their names; of very many the first ones.
    pub runs: Vec<String>,
    /// How many they are.
    pub count: usize,
}

/// So many sentences about many runs are told; runs that differ in numbers alone share one.
const MOST: usize = 200;

/// Reasons for invalidity first, then wrong answers, then breaches of the checks of client and
/// server, then warnings; equal ones gathered. Of many runs those too that differ in numbers
/// alone, with the least and the greatest: `1.0 to 2.3 %`.
pub fn notes(runs: &[(&Execution, &Run)]) -> Vec<Note> {
    let mut gathered = Gathering { many: many(runs), ..Gathering::default() };
    let names = naming::names(runs);
    for ((_, run), name) in runs.iter().zip(&names) {
        for reason in &run.invalid_because {
            gathered.add(Weight::Invalid, reason, name);
        }
    }
    for ((_, run), name) in runs.iter().zip(&names) {
        let unsaid = |failure: &&Failures| !run.invalid_because.iter().any(|r| says(r, failure));
        for failure in run.failures.iter().filter(unsaid) {
            let weight = if run.valid() { Weight::Warning } else { Weight::Invalid };
            let count = crate::format::count(failure.count);
            let text = format!("{count} answers `{}`; the first: {}", failure.kind, failure.first);
            gathered.add(weight, &text, name);
        }
    }
    for ((_, run), name) in runs.iter().zip(&names) {
        for breach in super::sides::breaches(run) {
            gathered.add(Weight::Finding, &breach, name);
        }
    }
    for ((_, run), name) in runs.iter().zip(&names) {
        for warning in &run.warnings {
            gathered.add(Weight::Warning, warning, name);
        }
    }
    gathered.notes()
}

#[derive(Default)]
struct Gathering {
    many: bool,
    /// The place in `told` of each sentence, by what is the same in all that share it.
    places: HashMap<(Weight, String), usize>,
    told: Vec<(Weight, Sentence, Vec<String>, usize)>,
    /// Remarks that found no place any more.
    left: usize,
}

impl Gathering {
    fn add(&mut self, weight: Weight, text: &str, name: &str) {
        let sentence = Sentence::of(text);
        let shape = if self.many { sentence.shape() } else { text.to_owned() };
        match self.places.get(&(weight, shape)) {
            Some(place) => {
                let (_, known, names, count) = &mut self.told[*place];
                known.widen(&sentence);
                *count += 1;
                if !self.many || names.len() < NAMED {
                    names.push(name.to_owned());
                }
            }
            None if self.many && self.told.len() >= MOST => self.left += 1,
            None => {
                let shape = if self.many { sentence.shape() } else { text.to_owned() };
                self.places.insert((weight, shape), self.told.len());
                self.told.push((weight, sentence, vec![name.to_owned()], 1));
            }
        }
    }

    fn notes(self) -> Vec<Note> {
        let left = (self.left > 0).then(|| Note {
            weight: Weight::Warning,
            text: format!(
                "{} more remarks are not shown here: `kvmeter export` has those of every run",
                crate::format::count(self.left as u64)
            ),
            runs: vec!["other runs".to_owned()],
            count: 1,
        });
        let told = self.told.into_iter().map(|(weight, sentence, runs, count)| Note {
            weight,
            text: sentence.written(),
            runs,
            count,
        });
        told.chain(left).collect()
    }
}

/// Whether a reason for invalidity is these failures: they are not told twice.
fn says(reason: &str, failure: &Failures) -> bool {
    reason.contains(&format!("({})", failure.kind)) && reason.contains(&failure.first)
}

impl Note {
    /// `INVALID`, `finding` or `warning`.
    pub fn word(&self) -> &'static str {
        match self.weight {
            Weight::Invalid => "INVALID",
            Weight::Finding => "finding",
            Weight::Warning => "warning",
        }
    }

    pub fn tone(&self) -> Tone {
        match self.weight {
            Weight::Invalid | Weight::Finding => Tone::Bad,
            Weight::Warning => Tone::Warning,
        }
    }

    /// The runs in few words: all names up to three, else the first and how many more.
    pub fn subjects(&self) -> String {
        match self.runs.first() {
            Some(first) if self.count > NAMED => format!("{first} and {} more", self.count - 1),
            _ => self.runs.join(", "),
        }
    }

    /// All of the runs that are known by name.
    pub fn names(&self) -> String {
        match self.count - self.runs.len() {
            0 => self.runs.join(", "),
            more => format!("{} and {} more", self.runs.join(", "), more),
        }
    }
}
