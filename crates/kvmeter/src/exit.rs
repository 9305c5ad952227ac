//! How the process ends: 0 done, 1 the measurement failed or is invalid or a gate proved a
//! regression, 2 the request was wrong, 3 the data do not suffice for a gate.

use std::process::ExitCode;

use record::export::ExportError;

/// How a verb that did not fail ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitOutcome {
    Done,
    /// It ran, and the result is marked invalid or was cut short.
    Invalid,
    /// A gate proved a regression.
    Regression,
    /// The data do not suffice for a gate.
    Undecided,
    /// A command ran for the user and ended with this code.
    Code(u8),
}

impl ExitOutcome {
    /// The exit code of the process.
    pub const fn code(self) -> u8 {
        match self {
            ExitOutcome::Done => 0,
            ExitOutcome::Invalid | ExitOutcome::Regression => 1,
            ExitOutcome::Undecided => 3,
            ExitOutcome::Code(code) => code,
        }
    }
}

/// An error in the user's request.
#[derive(Debug)]
pub struct RequestError(pub String);

impl std::fmt::Display for RequestError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for RequestError {}

/// An error in the user's request.
pub fn request(words: impl Into<String>) -> anyhow::Error {
    anyhow::Error::new(RequestError(words.into()))
}

/// Reports a usage error, without secrets of the command line; or prints help or version.
pub fn report_usage(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        error.exit();
    }
    crate::output::write_stderr(error.render().to_string().trim_end());
    ExitCode::from(2)
}

/// Reports an error and returns its exit code.
pub fn report(error: &anyhow::Error) -> ExitCode {
    if is_closed_pipe(error) {
        return ExitCode::SUCCESS;
    }
    crate::output::write_stderr(&format!("error: {}", sentence(error)));
    ExitCode::from(code(error))
}

/// The error with its causes, each once: many errors already end with the words of their cause.
fn sentence(error: &anyhow::Error) -> String {
    error.chain().skip(1).fold(error.to_string(), |text, cause| {
        let cause = cause.to_string();
        if text.ends_with(&cause) { text } else { format!("{text}: {cause}") }
    })
}

/// Whether the reader of the output has closed its end.
pub fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<std::io::Error>();
    io.is_some_and(|io| io.kind() == std::io::ErrorKind::BrokenPipe)
}

fn code(error: &anyhow::Error) -> u8 {
    for cause in error.chain() {
        if cause.is::<RequestError>()
            || cause.is::<cachesim::SimError>()
            || cause.is::<workload::SpecError>()
            || cause.is::<analyse::CompareError>()
            || cause.is::<analyse::gate::GateConditionError>()
            || cause.is::<analyse::gate::GateError>()
            || cause.is::<analyse::cost::PlatformError>()
            || cause.is::<record::table::UnknownTable>()
            || matches!(
                cause.downcast_ref::<ExportError>(),
                Some(
                    ExportError::UnknownFormat { .. }
                        | ExportError::UnknownTable(_)
                        | ExportError::NoTables(_)
                        | ExportError::NoLatencies
                        | ExportError::NoProfile(_)
                        | ExportError::SeveralConfigurations { .. }
                )
            )
            || cause.downcast_ref::<record::RecordError>().is_some_and(|e| e.is_request())
            || cause.downcast_ref::<micro::MicroError>().is_some_and(|e| e.is_request())
            || cause.downcast_ref::<host::knob::KnobError>().is_some_and(|e| e.is_request())
            || cause.downcast_ref::<study::StudyError>().is_some_and(|e| e.is_request())
            || cause.downcast_ref::<fleet::FleetError>().is_some_and(|e| e.is_request())
            || cause.downcast_ref::<execute::ExecuteError>().is_some_and(|e| e.is_request())
            || matches!(
                cause.downcast_ref::<store::StoreError>(),
                Some(store::StoreError::Request(_) | store::StoreError::Directory { .. })
            )
        {
            return 2;
        }
    }
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_named_once() {
        let source = std::io::Error::other("the disk is gone");
        let known = record::RecordError::Io { path: "r.sqlite".into(), source };
        assert_eq!(sentence(&known.into()), "r.sqlite: the disk is gone");
        let outer = anyhow::Error::from(std::io::Error::other("no route")).context("agent 2");
        assert_eq!(sentence(&outer), "agent 2: no route");
    }
}
