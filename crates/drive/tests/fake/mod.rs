//! A store in memory with injected faults and stalls.

use std::collections::BTreeMap;
use std::sync::RwLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use store::{Capabilities, Session, Statistic, Store, StoreError, StoreUrl};

/// How an answer goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    Missing,
    /// The second half belongs to another version.
    Torn,
    OtherKey,
    Refused,
    Disorder,
}

#[derive(Debug, Default)]
pub struct Fake {
    data: RwLock<BTreeMap<Vec<u8>, Vec<u8>>>,
    reads: AtomicU64,
    written: AtomicU64,
    read_ns: AtomicU64,
    stall: RwLock<Option<(u64, Duration)>>,
    fault: RwLock<Option<(u64, Fault)>>,
    full_after: AtomicU64,
}

impl Fake {
    pub fn read_takes(&self, time: Duration) {
        self.read_ns.store(time.as_nanos() as u64, Ordering::Relaxed);
    }

    /// The `nth` read or scan from now takes this long.
    pub fn stall_once(&self, nth: u64, time: Duration) {
        self.reads.store(0, Ordering::Relaxed);
        *self.stall.write().unwrap() = Some((nth, time));
    }

    pub fn fails_every(&self, nth: u64, fault: Fault) {
        self.reads.store(0, Ordering::Relaxed);
        *self.fault.write().unwrap() = Some((nth, fault));
    }

    pub fn full_after(&self, writes: u64) {
        self.full_after.store(writes, Ordering::Relaxed);
    }

    pub fn keys(&self) -> Vec<Vec<u8>> {
        self.data.read().unwrap().keys().cloned().collect()
    }

    /// Takes the time of an answer; returns the fault to inject.
    fn answer(&self) -> Option<Fault> {
        let number = self.reads.fetch_add(1, Ordering::Relaxed) + 1;
        let busy = Duration::from_nanos(self.read_ns.load(Ordering::Relaxed));
        let begun = Instant::now();
        while begun.elapsed() < busy {
            std::hint::spin_loop();
        }
        if let Some((nth, time)) = *self.stall.read().unwrap()
            && nth == number
        {
            std::thread::sleep(time);
        }
        let (nth, fault) = (*self.fault.read().unwrap())?;
        number.is_multiple_of(nth).then_some(fault)
    }
}

impl Store for Fake {
    type Session<'a> = &'a Fake;

    fn open(_: &StoreUrl) -> Result<Self, StoreError> {
        Ok(Fake::default())
    }
    fn capabilities(&self) -> Capabilities {
        Capabilities { scan: true, survives: None, stores_values: true, may_evict: false }
    }
    fn version(&self) -> String {
        "fake".to_owned()
    }
    fn options(&self) -> Vec<(String, String)> {
        Vec::new()
    }
    fn session(&self) -> Result<&Fake, StoreError> {
        Ok(self)
    }
    fn settle(&self, _: Duration) -> Result<(), StoreError> {
        Ok(())
    }
    fn statistics(&self) -> Vec<Statistic> {
        Vec::new()
    }
}

impl Session for &Fake {
    fn read(&mut self, key: &[u8], mut visit: impl FnMut(&[u8])) -> Result<bool, StoreError> {
        let fault = self.answer();
        let data = self.data.read().unwrap();
        let Some(value) = data.get(key) else { return Ok(false) };
        match fault {
            Some(Fault::Missing) => return Ok(false),
            Some(Fault::Refused) => return Err(StoreError::Failed("as told".to_owned())),
            Some(Fault::Torn) => {
                let half = value.len() / 2;
                let mut torn = value.clone();
                torn[half..].iter_mut().for_each(|byte| *byte = byte.wrapping_add(1));
                visit(&torn);
            }
            Some(Fault::OtherKey) => {
                let other = data.iter().find(|(other, _)| other.as_slice() != key);
                visit(other.map(|(_, value)| value).expect("there is more than one key"));
            }
            _ => visit(value),
        }
        Ok(true)
    }

    fn update(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        let written = self.written.fetch_add(1, Ordering::Relaxed) + 1;
        let most = self.full_after.load(Ordering::Relaxed);
        if most > 0 && written > most {
            return Err(StoreError::Full("as told".to_owned()));
        }
        self.data.write().unwrap().insert(key.to_vec(), value.to_vec());
        Ok(())
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), StoreError> {
        self.data.write().unwrap().remove(key);
        Ok(())
    }

    fn scan(
        &mut self,
        from: &[u8],
        limit: usize,
        mut visit: impl FnMut(&[u8], &[u8]),
    ) -> Result<usize, StoreError> {
        let fault = self.answer();
        let data = self.data.read().unwrap();
        let mut found: Vec<_> = data.range(from.to_vec()..).take(limit.max(2)).collect();
        match fault {
            Some(Fault::Disorder) => found.reverse(),
            _ => found.truncate(limit),
        }
        found.iter().for_each(|(key, value)| visit(key, value));
        Ok(found.len().min(limit))
    }
}
