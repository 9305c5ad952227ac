//! What a reader must know beside the numbers: why runs do not count, and warnings.

use record::{Execution, Failures, Run};

use crate::naming;
use crate::table::Tone;

/// How much a note takes from the runs that it is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    pub runs: Vec<String>,
}

/// Reasons for invalidity first, then wrong answers, then breaches of the checks of client and
/// server, then warnings; equal ones gathered.
pub fn notes(runs: &[(&Execution, &Run)]) -> Vec<Note> {
    let names = naming::names(runs);
    let mut notes: Vec<Note> = Vec::new();
    let mut add = |weight: Weight, text: String, name: &String| match notes
        .iter_mut()
        .find(|note| note.weight == weight && note.text == text)
    {
        Some(note) => note.runs.push(name.clone()),
        None => notes.push(Note { weight, text, runs: vec![name.clone()] }),
    };
    for ((_, run), name) in runs.iter().zip(&names) {
        for reason in &run.invalid_because {
            add(Weight::Invalid, reason.clone(), name);
        }
    }
    for ((_, run), name) in runs.iter().zip(&names) {
        let unsaid = |failure: &&Failures| !run.invalid_because.iter().any(|r| says(r, failure));
        for failure in run.failures.iter().filter(unsaid) {
            let weight = if run.valid() { Weight::Warning } else { Weight::Invalid };
            let count = crate::format::count(failure.count);
            let text = format!("{count} answers `{}`; the first: {}", failure.kind, failure.first);
            add(weight, text, name);
        }
    }
    for ((_, run), name) in runs.iter().zip(&names) {
        for breach in super::sides::breaches(run) {
            add(Weight::Finding, breach, name);
        }
    }
    for ((_, run), name) in runs.iter().zip(&names) {
        for warning in &run.warnings {
            add(Weight::Warning, warning.clone(), name);
        }
    }
    notes
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
        match self.runs.as_slice() {
            [first, .., _] if self.runs.len() > 3 => {
                format!("{first} and {} more", self.runs.len() - 1)
            }
            few => few.join(", "),
        }
    }
}
