//! Why processes cannot be sampled.

use std::io;

use model::Unavailable;

/// Why processes cannot be sampled. As an [`Unavailable`] it has a remedy.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    #[error("stacks cannot be unwound on this processor architecture")]
    Architecture,
    #[error("this user may not sample processes (perf_event_paranoid is {level})")]
    Privilege { level: String },
    #[error("there is no process {0} to sample, or it has ended")]
    NoProcess(u32),
    #[error("{step} failed: {error}")]
    Kernel { step: &'static str, error: io::Error },
}

impl From<ProfileError> for Unavailable {
    fn from(error: ProfileError) -> Unavailable {
        let remedy = match &error {
            ProfileError::Architecture => "run on x86-64 or Arm (64-bit)",
            ProfileError::Privilege { .. } => {
                "run as root, or set it to 2 or less: sysctl kernel.perf_event_paranoid=2"
            }
            ProfileError::NoProcess(_) => "see the last output of the server",
            ProfileError::Kernel { .. } => {
                "check the limits on descriptors (ulimit -n) and on locked memory (sysctl \
                 kernel.perf_event_mlock_kb)"
            }
        };
        Unavailable::new(error.to_string(), remedy)
    }
}
