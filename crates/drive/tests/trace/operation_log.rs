//! A store that logs its operations in order.

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;
use std::time::Duration;

use store::{Capabilities, Session, Statistic, Store, StoreError, StoreUrl};

use crate::file::LoggedOperation;

#[derive(Debug, Default)]
struct LogState {
    data: HashMap<Vec<u8>, Vec<u8>>,
    asked: BTreeMap<String, Vec<LoggedOperation>>,
}

#[derive(Debug, Default)]
pub struct OperationLog(Mutex<LogState>);

impl LogState {
    fn note(&mut self, key: &[u8], asked: LoggedOperation) {
        let key = String::from_utf8(key.to_vec()).unwrap();
        self.asked.entry(key).or_default().push(asked);
    }
}

impl OperationLog {
    /// The operations on each key, in order.
    pub fn operations(&self) -> BTreeMap<String, Vec<LoggedOperation>> {
        self.0.lock().unwrap().asked.clone()
    }
}

impl Store for OperationLog {
    type Session<'a> = &'a OperationLog;

    fn open(_: &StoreUrl) -> Result<Self, StoreError> {
        Ok(OperationLog::default())
    }
    fn capabilities(&self) -> Capabilities {
        Capabilities { scan: false, survives: None, stores_values: true, may_evict: false }
    }
    fn version(&self) -> String {
        "ledger".to_owned()
    }
    fn options(&self) -> Vec<(String, String)> {
        Vec::new()
    }
    fn session(&self) -> Result<&OperationLog, StoreError> {
        Ok(self)
    }
    fn settle(&self, _: Duration) -> Result<(), StoreError> {
        Ok(())
    }
    fn statistics(&self) -> Vec<Statistic> {
        Vec::new()
    }
}

impl Session for &OperationLog {
    fn read(&mut self, key: &[u8], mut visit: impl FnMut(&[u8])) -> Result<bool, StoreError> {
        let mut state = self.0.lock().unwrap();
        state.note(key, ('r', 0));
        let found = state.data.get(key);
        if let Some(value) = found {
            visit(value);
        }
        Ok(found.is_some())
    }

    fn update(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        let mut state = self.0.lock().unwrap();
        state.note(key, ('w', value.len()));
        state.data.insert(key.to_vec(), value.to_vec());
        Ok(())
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), StoreError> {
        let mut state = self.0.lock().unwrap();
        state.note(key, ('d', 0));
        state.data.remove(key);
        Ok(())
    }

    fn scan(
        &mut self,
        _: &[u8],
        _: usize,
        _: impl FnMut(&[u8], &[u8]),
    ) -> Result<usize, StoreError> {
        Err(StoreError::Failed("a trace does not scan".to_owned()))
    }
}
