//! How the process ends: 0 done, 1 the measurement failed or is invalid, 2 the request was wrong.

use std::process::ExitCode;

use record::export::ExportError;

/// How a verb that did not fail ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Done,
    /// It ran, and the result is marked invalid or was cut short.
    Invalid,
    /// A command ran for the user and ended with this code.
    Code(u8),
}

/// A mistake in what was asked.
#[derive(Debug)]
pub struct Request(pub String);

impl std::fmt::Display for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Request {}

/// An error that is the user's to mend.
pub fn request(words: impl Into<String>) -> anyhow::Error {
    anyhow::Error::new(Request(words.into()))
}

/// Says what is wrong with the command line, which may hold a secret; or the help or the version
/// that it asks for.
pub fn misread(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        error.exit();
    }
    crate::show::complain(error.render().to_string().trim_end());
    ExitCode::from(2)
}

/// Says what went wrong, and with which exit code to end.
pub fn report(error: &anyhow::Error) -> ExitCode {
    if let Some(io) = error.downcast_ref::<std::io::Error>()
        && io.kind() == std::io::ErrorKind::BrokenPipe
    {
        // Whoever read our output has seen enough.
        return ExitCode::SUCCESS;
    }
    crate::show::complain(&format!("error: {error:#}"));
    ExitCode::from(code(error))
}

fn code(error: &anyhow::Error) -> u8 {
    for cause in error.chain() {
        if cause.is::<Request>()
            || cause.is::<record::Error>()
            || cause.is::<cachesim::SimError>()
            || cause.is::<workload::SpecError>()
            || cause.is::<analyse::CompareError>()
            || cause.is::<platform::PlatformError>()
            || cause.is::<record::table::UnknownTable>()
            || matches!(
                cause.downcast_ref::<ExportError>(),
                Some(ExportError::UnknownFormat { .. } | ExportError::UnknownTable(_))
            )
            || cause.downcast_ref::<micro::MicroError>().is_some_and(|e| e.is_request())
            || cause.downcast_ref::<host::knob::KnobError>().is_some_and(|e| e.is_request())
            || cause.downcast_ref::<study::StudyError>().is_some_and(|e| e.is_request())
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
