//! `Debug` output of handles: it names them and shows no stored data.

use std::fmt::{Debug, Formatter, Result};
use std::sync::Arc;

use crate::batch::Batch;
use crate::scan::{Pairs, Range};
use crate::snapshot::Snapshot;
use crate::store::Store;
use crate::table::Table;

impl Debug for Store {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.debug_tuple("Store").field(&self.engine().dir).finish()
    }
}

impl Debug for Table {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.debug_tuple("Table").field(&self.name()).finish()
    }
}

impl Debug for Batch {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.debug_struct("Batch").field("len", &self.len()).finish()
    }
}

impl Debug for Snapshot {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let store = Store { open: Arc::clone(&self.open) };
        f.debug_struct("Snapshot").field("of", &store).finish_non_exhaustive()
    }
}

impl Debug for Range {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.debug_struct("Range").finish_non_exhaustive()
    }
}

impl Debug for Pairs {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.debug_struct("Pairs").finish_non_exhaustive()
    }
}
