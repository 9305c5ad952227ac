//! Does nothing: measures the harness alone.

use std::time::Duration;

use model::Unavailable;

use crate::{
    Capabilities, DataLocation, EmbeddedAdapter, OptionInfo, Session, Statistic, Store, StoreError,
    StoreOptions, StoreUrl,
};

/// The store that does nothing. Reads and scans report every key as found without calling back, so
/// that only the harness is on the path.
#[derive(Debug)]
pub struct Null;

impl EmbeddedAdapter for Null {
    const OPTIONS: &'static [OptionInfo] = &[];
    const LOCATION: DataLocation = DataLocation::Nowhere;

    fn check(url: &StoreUrl) -> Result<(), StoreError> {
        StoreOptions::new(url, Self::OPTIONS).map(|_| ())
    }

    fn linked() -> Result<String, Unavailable> {
        Ok(format!("null {}", env!("CARGO_PKG_VERSION")))
    }
}

impl Store for Null {
    type Session<'a> = NullSession;

    fn open(url: &StoreUrl) -> Result<Self, StoreError> {
        Self::check(url)?;
        Ok(Self)
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { scan: true, survives: None, stores_values: false, may_evict: false }
    }

    fn version(&self) -> String {
        format!("null {}", env!("CARGO_PKG_VERSION"))
    }

    fn options(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    fn session(&self) -> Result<NullSession, StoreError> {
        Ok(NullSession)
    }

    fn settle(&self, _limit: Duration) -> Result<(), StoreError> {
        Ok(())
    }

    fn statistics(&self) -> Vec<Statistic> {
        Vec::new()
    }
}

/// A session that does nothing.
#[derive(Debug)]
pub struct NullSession;

impl Session for NullSession {
    #[inline(always)]
    fn read(&mut self, _key: &[u8], _on_value: impl FnMut(&[u8])) -> Result<bool, StoreError> {
        Ok(true)
    }

    #[inline(always)]
    fn update(&mut self, _key: &[u8], _value: &[u8]) -> Result<(), StoreError> {
        Ok(())
    }

    #[inline(always)]
    fn delete(&mut self, _key: &[u8]) -> Result<(), StoreError> {
        Ok(())
    }

    #[inline(always)]
    fn scan(
        &mut self,
        _from: &[u8],
        limit: usize,
        _on_pair: impl FnMut(&[u8], &[u8]),
    ) -> Result<usize, StoreError> {
        Ok(limit)
    }
}
