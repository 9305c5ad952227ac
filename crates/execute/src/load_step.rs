use std::ops::Deref;

use study::{Step, StoreLoad};

use crate::error::ExecuteError;

/// A run that loads a store: what sessions run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LoadStep<'a> {
    pub(crate) step: &'a Step,
    pub(crate) load: &'a StoreLoad,
}

impl Deref for LoadStep<'_> {
    type Target = Step;

    fn deref(&self) -> &Step {
        self.step
    }
}

impl<'a> LoadStep<'a> {
    /// # Errors
    /// A run without a store stands among runs on one.
    pub(crate) fn of(step: &'a Step) -> Result<LoadStep<'a>, ExecuteError> {
        match step.activity.load() {
            Some(load) => Ok(LoadStep { step, load }),
            None => Err(ExecuteError::Failed(format!("{}: a run without a store", step.label))),
        }
    }
}
