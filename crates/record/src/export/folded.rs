//! Folded stacks of profiled runs, for other drawers of flame graphs: a line for each stack, its
//! functions separated by semicolons, and its samples, or the microseconds that it waited.

use std::io::Write;

use model::{Execution, Run, Stack, ThreadState};

use super::{ExportError, Exporter};
use crate::table::DataTable;

/// Stacks of CPU time, else those of threads that wait.
pub(super) struct Folded {
    pub waits: bool,
}

impl Exporter for Folded {
    fn name(&self) -> &'static str {
        if self.waits { "folded-waits" } else { "folded" }
    }

    fn about(&self) -> &'static str {
        match self.waits {
            true => "stacks of profiled runs in which threads wait, in microseconds",
            false => "stacks of profiled runs with their samples of CPU time",
        }
    }

    fn table(&self, _: &DataTable, _: &mut dyn Write) -> Result<(), ExportError> {
        Err(ExportError::NoTables(self.name()))
    }

    fn runs(&self, runs: &[(&Execution, &Run)], out: &mut dyn Write) -> Result<(), ExportError> {
        let profiled: Vec<_> =
            runs.iter().filter_map(|(_, run)| Some((run, run.profile.as_ref()?))).collect();
        if profiled.is_empty() {
            return Err(ExportError::NoProfile(self.name()));
        }
        for (run, profile) in &profiled {
            // One run needs no name.
            let root = match profiled.len() {
                1 => String::new(),
                _ => format!("{};", run.label.replace([';', '\n'], ":")),
            };
            for stack in profile.stacks.iter().filter(|stack| self.includes(stack)) {
                let value = match self.waits {
                    true => (stack.seconds * 1e6).round() as u64,
                    false => stack.samples,
                };
                writeln!(out, "{root}{} {value}", stack.folded())?;
            }
        }
        Ok(())
    }
}

impl Folded {
    fn includes(&self, stack: &Stack) -> bool {
        match stack.state {
            ThreadState::OnCpu => !self.waits,
            ThreadState::Blocked => self.waits,
            ThreadState::Preempted => false,
        }
    }
}
