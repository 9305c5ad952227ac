//! What a reader must know beside the numbers: why runs do not count, and warnings.

use record::{Execution, Failures, Run};

use crate::naming;
use crate::table::Tone;

/// One sentence and the runs that it is about.
#[derive(Debug, Clone, PartialEq)]
pub struct Note {
    /// [`Tone::Bad`]: the runs are invalid. [`Tone::Warning`]: they stand.
    pub tone: Tone,
    pub text: String,
    pub runs: Vec<String>,
}

/// Reasons for invalidity first, then wrong answers, then warnings; equal ones gathered.
pub fn notes(runs: &[(&Execution, &Run)]) -> Vec<Note> {
    let names = naming::names(runs);
    let mut notes: Vec<Note> = Vec::new();
    let mut add = |tone: Tone, text: String, name: &String| match notes
        .iter_mut()
        .find(|note| note.tone == tone && note.text == text)
    {
        Some(note) => note.runs.push(name.clone()),
        None => notes.push(Note { tone, text, runs: vec![name.clone()] }),
    };
    for ((_, run), name) in runs.iter().zip(&names) {
        for reason in &run.invalid_because {
            add(Tone::Bad, reason.clone(), name);
        }
    }
    for ((_, run), name) in runs.iter().zip(&names) {
        let unsaid = |failure: &&Failures| !run.invalid_because.iter().any(|r| says(r, failure));
        for failure in run.failures.iter().filter(unsaid) {
            let tone = if run.valid() { Tone::Warning } else { Tone::Bad };
            let count = crate::format::count(failure.count);
            let text = format!("{count} answers `{}`; the first: {}", failure.kind, failure.first);
            add(tone, text, name);
        }
    }
    for ((_, run), name) in runs.iter().zip(&names) {
        for warning in &run.warnings {
            add(Tone::Warning, warning.clone(), name);
        }
    }
    notes
}

/// Whether a reason for invalidity is these failures: they are not told twice.
fn says(reason: &str, failure: &Failures) -> bool {
    reason.contains(&format!("({})", failure.kind)) && reason.contains(&failure.first)
}

impl Note {
    /// `INVALID` or `warning`.
    pub fn word(&self) -> &'static str {
        if self.tone == Tone::Bad { "INVALID" } else { "warning" }
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
