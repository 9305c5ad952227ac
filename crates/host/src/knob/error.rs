//! Errors of knobs.

use model::Unavailable;
use thiserror::Error;

use crate::root::RootError;

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum KnobError {
    #[error("there is no knob `{name}`; the knobs are {known}")]
    Unknown { name: String, known: String },
    #[error("`{text}` is not KNOB=LEVEL; write for example idle=none")]
    Form { text: String },
    #[error("the knob {name} is given twice; give it one level")]
    Twice { name: String },
    #[error("{knob}={level}: {why}; the levels here are {levels}")]
    NoSuchLevel { knob: String, level: String, why: String, levels: String },
    #[error("{knob} cannot be turned here: {why}")]
    NotHere { knob: String, why: Unavailable },
    #[error(
        "--trust-register {model:?}: this machine's CPU is {here:?}; give exactly that name to \
         accept the risk"
    )]
    OtherModel { model: String, here: String },
    #[error(
        "{first} and {second} both write {place}, with different values ({a}, {b}); leave one of \
         them out"
    )]
    Conflict { first: String, second: String, place: String, a: String, b: String },
    #[error("refused, and nothing was turned: {0}")]
    Refused(String),
    #[error("{write}: {why}; knobs turned before it are restored")]
    Write { write: String, why: RootError },
    #[error(
        "{place} reads {found} after {new} was written: the kernel or the hardware does not accept \
         this level; knobs turned before it are restored"
    )]
    ReadBack { place: String, new: String, found: String },
    #[error(
        "{knob}={level} ends with the process that set it; give a command to run under it: kvmeter \
         knob set {knob}={level} -- COMMAND"
    )]
    CannotKeep { knob: String, level: String },
    #[error("knobs are being turned by {who} ({lock} is locked); wait until it has ended")]
    Busy { who: String, lock: String },
    #[error("{path}: {why}; name a folder that can be written to in KVMETER_STATE_DIR")]
    Journal { path: String, why: String },
    #[error(
        "kvmeter restores what a journal of knobs says, so only this user may be able to write it: \
         {0}; or name a folder of your own in KVMETER_STATE_DIR"
    )]
    ForeignJournal(String),
    #[error(
        "neither HOME nor XDG_STATE_HOME is set, so the journal of knobs has no folder; name one \
         of your own in KVMETER_STATE_DIR"
    )]
    NoFolder,
    #[error(
        "{places} could not be restored; fix that and run `kvmeter knob restore`, or remove \
         {journal} if those places no longer exist"
    )]
    NotRestored { places: String, journal: String },
    #[error("{places} could not be restored for this process; the setting ends with it")]
    OwnNotRestored { places: String },
    #[error(
        "no process can watch over the knobs ({why}), so a kill would leave them turned; nothing \
         was turned"
    )]
    Supervisor { why: String },
    #[error("{command} could not be run: {why}")]
    Command { command: String, why: String },
    #[error("the knobs have no effect, so nothing was run: {0}")]
    Refuted(String),
}

impl KnobError {
    /// Whether the user can mend it by another request.
    pub fn is_request(&self) -> bool {
        matches!(
            self,
            KnobError::Unknown { .. }
                | KnobError::Form { .. }
                | KnobError::Twice { .. }
                | KnobError::NoSuchLevel { .. }
                | KnobError::NotHere { .. }
                | KnobError::OtherModel { .. }
                | KnobError::Conflict { .. }
                | KnobError::CannotKeep { .. }
                | KnobError::Command { .. }
                | KnobError::ForeignJournal(_)
                | KnobError::NoFolder
        )
    }
}

/// Why a knob makes no plan: the level is not valid, or the knob is unavailable.
#[derive(Debug)]
pub enum KnobRefusal {
    Level(String),
    Unavailable(Unavailable),
}

impl From<Unavailable> for KnobRefusal {
    fn from(why: Unavailable) -> KnobRefusal {
        KnobRefusal::Unavailable(why)
    }
}

impl From<RootError> for KnobRefusal {
    fn from(error: RootError) -> KnobRefusal {
        KnobRefusal::Unavailable(error.into())
    }
}
