//! A thread's session with a plug-in. What it answers is checked as far as that costs nothing.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::slice;
use std::sync::Arc;

use super::table::{
    ErrorBuffer, Functions, NOT_FOUND, OK, OnFound, Put, RawKey, RawSession, Status,
};
use super::watchdog::{CallSlot, Function};
use super::{Plugin, broken, failed, named};
use crate::{KeyBatch, Session, StoreError, read_each};

/// A session; closed when it is dropped.
pub struct PluginSession<'a> {
    plugin: &'a Plugin,
    raw: RawSession,
    slot: Arc<CallSlot>,
    error: Box<ErrorBuffer>,
    /// The keys of a multi-get, and whether each was found.
    keys: Vec<RawKey>,
    found: Vec<bool>,
}

impl<'a> PluginSession<'a> {
    pub(super) fn open(plugin: &'a Plugin) -> Result<Self, StoreError> {
        let library = plugin.library;
        let slot = CallSlot::new(&named(library), plugin.limit);
        let (mut raw, mut error) = (ptr::null_mut(), Box::new(ErrorBuffer::new()));
        let status = slot.call(Function::SessionOpen, || {
            // SAFETY: the database is open; what is passed lives until it returns.
            #[allow(unsafe_code)]
            unsafe {
                (library.functions.session_open)(plugin.db, &raw mut raw, &raw mut *error)
            }
        });
        if status != OK {
            return Err(failed(library, Function::SessionOpen, status, &mut error));
        }
        if raw.is_null() {
            return Err(broken(library, Function::SessionOpen, "succeeded without a session"));
        }
        Ok(Self { plugin, raw, slot, error, keys: Vec::new(), found: Vec::new() })
    }

    #[inline]
    fn functions(&self) -> &'static Functions {
        &self.plugin.library.functions
    }

    #[cold]
    fn failed(&mut self, function: Function, status: Status) -> StoreError {
        failed(self.plugin.library, function, status, &mut self.error)
    }

    #[cold]
    fn broken(&self, function: Function, what: &str) -> StoreError {
        broken(self.plugin.library, function, what)
    }

    #[inline]
    fn write(
        &mut self,
        function: Function,
        put: Put,
        key: &[u8],
        value: &[u8],
    ) -> Result<(), StoreError> {
        let (raw, error) = (self.raw, &raw mut *self.error);
        let status = self.slot.call(function, || {
            // SAFETY: the session is open and this thread's; key, value and buffer live until it
            // returns.
            #[allow(unsafe_code)]
            unsafe {
                put(raw, data(key), key.len(), data(value), value.len(), error)
            }
        });
        match status {
            OK => Ok(()),
            status => Err(self.failed(function, status)),
        }
    }
}

#[inline]
fn data(bytes: &[u8]) -> *const c_void {
    bytes.as_ptr().cast()
}

/// Bytes that a plug-in lends; `None` where they cannot be any.
///
/// # Safety
/// `length` bytes can be read at `start`, unless that is null.
#[allow(unsafe_code)]
#[inline]
unsafe fn lent<'a>(start: *const c_void, length: usize) -> Option<&'a [u8]> {
    match (start.is_null(), isize::try_from(length)) {
        (true, Ok(0)) => Some(&[]),
        // SAFETY: as the caller says.
        (false, Ok(_)) => Some(unsafe { slice::from_raw_parts(start.cast(), length) }),
        _ => None,
    }
}

/// What `get` called back.
struct Found<F> {
    on_value: F,
    calls: u32,
    is_lent: bool,
}

/// # Safety
/// The context is a `Found<F>`; the value can be read.
#[allow(unsafe_code)]
unsafe extern "C" fn found<F: FnMut(&[u8])>(
    context: *mut c_void,
    value: *const c_void,
    length: usize,
) {
    // SAFETY: as the caller says.
    let (found, value) = unsafe { (&mut *context.cast::<Found<F>>(), lent(value, length)) };
    found.calls += 1;
    match value {
        Some(value) if found.calls == 1 => (found.on_value)(value),
        value => found.is_lent &= value.is_some(),
    }
}

/// What `multi_get` called back.
struct FoundMany<'f, F> {
    on_value: F,
    found: &'f mut [bool],
    /// What the interface rules out.
    broken: Option<&'static str>,
}

/// # Safety
/// The context is a `FoundMany<F>`; the value can be read.
#[allow(unsafe_code)]
unsafe extern "C" fn found_one<F: FnMut(usize, &[u8])>(
    context: *mut c_void,
    index: usize,
    value: *const c_void,
    length: usize,
) {
    // SAFETY: as the caller says.
    let (many, value) = unsafe { (&mut *context.cast::<FoundMany<'_, F>>(), lent(value, length)) };
    let broken = match (many.found.get_mut(index), value) {
        (None, _) => "lent a value for a key beyond the last",
        (Some(true), _) => "lent several values for one key",
        (Some(_), None) => "lent a value that is nowhere",
        (Some(found), Some(value)) => {
            *found = true;
            return (many.on_value)(index, value);
        }
    };
    many.broken.get_or_insert(broken);
}

/// What `scan` called back.
struct Scanned<F> {
    on_pair: F,
    pairs: usize,
    limit: usize,
    is_lent: bool,
}

/// # Safety
/// The context is a `Scanned<F>`; key and value can be read.
#[allow(unsafe_code)]
unsafe extern "C" fn pair<F: FnMut(&[u8], &[u8])>(
    context: *mut c_void,
    key: *const c_void,
    key_length: usize,
    value: *const c_void,
    value_length: usize,
) -> c_int {
    // SAFETY: as the caller says.
    let (scanned, key, value) = unsafe {
        (&mut *context.cast::<Scanned<F>>(), lent(key, key_length), lent(value, value_length))
    };
    scanned.pairs += 1;
    match (key, value) {
        (Some(key), Some(value)) if scanned.pairs <= scanned.limit => {
            (scanned.on_pair)(key, value);
        }
        (key, value) => scanned.is_lent &= key.is_some() && value.is_some(),
    }
    c_int::from(scanned.pairs < scanned.limit)
}

#[allow(unsafe_code)]
impl Session for PluginSession<'_> {
    #[inline]
    fn read(&mut self, key: &[u8], on_value: impl FnMut(&[u8])) -> Result<bool, StoreError> {
        fn call_back<F: FnMut(&[u8])>(_: &Found<F>) -> super::table::OnValue {
            found::<F>
        }
        let mut found = Found { on_value, calls: 0, is_lent: true };
        let (raw, error, get) = (self.raw, &raw mut *self.error, self.functions().get);
        let on_value = call_back(&found);
        let status = self.slot.call(Function::Get, || {
            // SAFETY: the session is open and this thread's; the context is what the call-back casts
            // it to, and all that is passed lives until it returns.
            unsafe {
                let context = ptr::from_mut(&mut found).cast();
                get(raw, data(key), key.len(), on_value, context, error)
            }
        });
        match (status, found.calls) {
            (OK, 1) if found.is_lent => Ok(true),
            (NOT_FOUND, 0) => Ok(false),
            (OK, 1) => Err(self.broken(Function::Get, "lent a value that is nowhere")),
            (OK, 0) => Err(self.broken(Function::Get, "found the key and lent no value")),
            (OK, _) => Err(self.broken(Function::Get, "lent several values")),
            (NOT_FOUND, _) => Err(self.broken(Function::Get, "lent a value of a key not found")),
            (status, _) => Err(self.failed(Function::Get, status)),
        }
    }

    fn multi_get(
        &mut self,
        keys: &KeyBatch,
        on_value: impl FnMut(usize, &[u8]),
    ) -> Result<(), StoreError> {
        fn call_back<F: FnMut(usize, &[u8])>(_: &FoundMany<'_, F>) -> OnFound {
            found_one::<F>
        }
        let Some(multi_get) = self.functions().multi_get else {
            return read_each(self, keys, on_value);
        };
        self.keys.clear();
        self.keys.extend(keys.iter().map(|key| RawKey { bytes: data(key), length: key.len() }));
        self.found.clear();
        self.found.resize(keys.len(), false);
        let mut many = FoundMany { on_value, found: &mut self.found, broken: None };
        let (raw, error, keys) = (self.raw, &raw mut *self.error, self.keys.as_slice());
        let on_found = call_back(&many);
        let status = self.slot.call(Function::MultiGet, || {
            // SAFETY: as in `read`.
            unsafe {
                let context = ptr::from_mut(&mut many).cast();
                multi_get(raw, keys.as_ptr(), keys.len(), on_found, context, error)
            }
        });
        match (status, many.broken) {
            (OK, None) => Ok(()),
            (OK, Some(what)) => Err(self.broken(Function::MultiGet, what)),
            (status, _) => Err(self.failed(Function::MultiGet, status)),
        }
    }

    #[inline]
    fn update(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        self.write(Function::Put, self.functions().put, key, value)
    }

    #[inline]
    fn insert(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        self.write(Function::Insert, self.functions().insert, key, value)
    }

    #[inline]
    fn delete(&mut self, key: &[u8]) -> Result<(), StoreError> {
        let (raw, error, remove) = (self.raw, &raw mut *self.error, self.functions().remove);
        let status = self.slot.call(Function::Remove, || {
            // SAFETY: the session is open and this thread's; key and buffer live until it returns.
            unsafe { remove(raw, data(key), key.len(), error) }
        });
        match status {
            OK | NOT_FOUND => Ok(()),
            status => Err(self.failed(Function::Remove, status)),
        }
    }

    fn scan(
        &mut self,
        from: &[u8],
        limit: usize,
        on_pair: impl FnMut(&[u8], &[u8]),
    ) -> Result<usize, StoreError> {
        fn call_back<F: FnMut(&[u8], &[u8])>(_: &Scanned<F>) -> super::table::OnPair {
            pair::<F>
        }
        let Some(scan) = self.functions().scan else {
            let name = &self.plugin.library.name;
            return Err(StoreError::Request(format!("{name}: scan: it has none")));
        };
        if limit == 0 {
            return Ok(0);
        }
        let mut scanned = Scanned { on_pair, pairs: 0, limit, is_lent: true };
        let (raw, error) = (self.raw, &raw mut *self.error);
        let on_pair = call_back(&scanned);
        let status = self.slot.call(Function::Scan, || {
            // SAFETY: as in `read`.
            unsafe {
                let context = ptr::from_mut(&mut scanned).cast();
                scan(raw, data(from), from.len(), limit, on_pair, context, error)
            }
        });
        match status {
            OK if !scanned.is_lent => {
                Err(self.broken(Function::Scan, "lent a pair that is nowhere"))
            }
            OK if scanned.pairs > limit => {
                Err(self.broken(Function::Scan, "went on after its limit"))
            }
            OK => Ok(scanned.pairs),
            status => Err(self.failed(Function::Scan, status)),
        }
    }
}

impl Drop for PluginSession<'_> {
    fn drop(&mut self) {
        self.slot.call(Function::SessionClose, || {
            // SAFETY: it is open and closed once.
            #[allow(unsafe_code)]
            unsafe {
                (self.functions().session_close)(self.raw)
            }
        });
    }
}
