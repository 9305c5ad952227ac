//! Why a process cannot be traced here, and what to do about it.

use bpf::BpfError;
use model::Unavailable;

/// Why system calls cannot be traced here. As an [`Unavailable`] it has a remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnavailableReason {
    #[error("this processor architecture's system call registers are not known")]
    Architecture,
    #[error(transparent)]
    Bpf(#[from] BpfError),
    #[error("there is no process {0}")]
    NoProcess(u32),
    #[error("process {0} runs 32-bit code, whose system calls have other numbers")]
    ThirtyTwoBit(u32),
}

impl From<UnavailableReason> for Unavailable {
    fn from(reason: UnavailableReason) -> Unavailable {
        let remedy = match &reason {
            UnavailableReason::Architecture => "run the server on x86-64 or Arm (64-bit)",
            UnavailableReason::Bpf(BpfError::Lockdown) => {
                "start the machine without lockdown=confidentiality, or preload the \
                 timing library into the server instead"
            }
            UnavailableReason::Bpf(error) => &error.remedy(),
            UnavailableReason::NoProcess(_) => "check the process number, as seen in this /proc",
            UnavailableReason::ThirtyTwoBit(_) => "trace a 64-bit build of the server",
        };
        Unavailable::new(reason.to_string(), remedy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_reasons_have_their_remedy() {
        let shown = Unavailable::from(UnavailableReason::from(BpfError::NoBpf)).to_string();
        assert!(shown.contains("bpf(2)") && shown.contains("CONFIG_BPF_SYSCALL"), "{shown}");
        let locked = Unavailable::from(UnavailableReason::from(BpfError::Lockdown)).to_string();
        assert!(locked.contains("timing library"), "{locked}");
    }
}
