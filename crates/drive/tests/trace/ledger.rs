//! A store that writes down what it is asked, in the order in which it takes it.

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;
use std::time::Duration;

use store::{Capabilities, Session, Statistic, Store, StoreError, StoreUrl};

use crate::file::Asked;

#[derive(Debug, Default)]
struct Book {
    data: HashMap<Vec<u8>, Vec<u8>>,
    asked: BTreeMap<String, Vec<Asked>>,
}

#[derive(Debug, Default)]
pub struct Ledger(Mutex<Book>);

impl Book {
    fn note(&mut self, key: &[u8], asked: Asked) {
        let key = String::from_utf8(key.to_vec()).unwrap();
        self.asked.entry(key).or_default().push(asked);
    }
}

impl Ledger {
    /// What each key was asked, in its order.
    pub fn asked(&self) -> BTreeMap<String, Vec<Asked>> {
        self.0.lock().unwrap().asked.clone()
    }
}

impl Store for Ledger {
    type Session<'a> = &'a Ledger;

    fn open(_: &StoreUrl) -> Result<Self, StoreError> {
        Ok(Ledger::default())
    }
    fn capabilities(&self) -> Capabilities {
        Capabilities { scan: false, durable: false, stores_values: true, may_evict: false }
    }
    fn version(&self) -> String {
        "ledger".to_owned()
    }
    fn options(&self) -> Vec<(String, String)> {
        Vec::new()
    }
    fn session(&self) -> Result<&Ledger, StoreError> {
        Ok(self)
    }
    fn settle(&self, _: Duration) -> Result<(), StoreError> {
        Ok(())
    }
    fn statistics(&self) -> Vec<Statistic> {
        Vec::new()
    }
}

impl Session for &Ledger {
    fn read(&mut self, key: &[u8], mut seen: impl FnMut(&[u8])) -> Result<bool, StoreError> {
        let mut book = self.0.lock().unwrap();
        book.note(key, ('r', 0));
        let found = book.data.get(key);
        if let Some(value) = found {
            seen(value);
        }
        Ok(found.is_some())
    }

    fn update(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        let mut book = self.0.lock().unwrap();
        book.note(key, ('w', value.len()));
        book.data.insert(key.to_vec(), value.to_vec());
        Ok(())
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), StoreError> {
        let mut book = self.0.lock().unwrap();
        book.note(key, ('d', 0));
        book.data.remove(key);
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
