//! RocksDB's objects, safe to use: each destroys what it created, none outlives the library, which
//! stays loaded as long as the process runs.

use std::ffi::{CStr, CString, c_char};
use std::marker::PhantomData;
use std::path::Path;
use std::ptr::{self, NonNull};
use std::slice;

use super::functions::{self as c, Functions};
use crate::StoreError;

/// A type that owns one of RocksDB's objects and destroys it when it is dropped.
macro_rules! owned {
    ($(#[$doc:meta])* $name:ident($theirs:ty), $destroy:ident) => {
        $(#[$doc])*
        pub struct $name {
            functions: &'static Functions,
            raw: NonNull<$theirs>,
        }

        // SAFETY: RocksDB's objects of this kind belong to no thread.
        #[allow(unsafe_code)]
        unsafe impl Send for $name {}
        // SAFETY: what is called through a shared reference is safe from several threads at once,
        // as `rocksdb/c.h` says.
        #[allow(unsafe_code)]
        unsafe impl Sync for $name {}

        impl Drop for $name {
            fn drop(&mut self) {
                // SAFETY: made by the same library, and destroyed only here.
                #[allow(unsafe_code)]
                unsafe { (self.functions.$destroy)(self.raw.as_ptr()) }
            }
        }
    };
}

owned!(
    /// Options of a database.
    Options(c::Options), rocksdb_options_destroy
);
owned!(
    /// Options of the block-based table.
    Table(c::TableOptions), rocksdb_block_based_options_destroy
);
owned!(Cache(c::Cache), rocksdb_cache_destroy);
owned!(Reading(c::ReadOptions), rocksdb_readoptions_destroy);
owned!(Writing(c::WriteOptions), rocksdb_writeoptions_destroy);
owned!(Flushing(c::FlushOptions), rocksdb_flushoptions_destroy);

/// An open database with one column family. Safe from several threads.
pub struct Database {
    functions: &'static Functions,
    raw: NonNull<c::Db>,
    family: NonNull<c::ColumnFamily>,
}

// SAFETY: RocksDB's databases belong to no thread.
#[allow(unsafe_code)]
unsafe impl Send for Database {}
// SAFETY: its operations are safe from several threads at once, as `rocksdb/c.h` says.
#[allow(unsafe_code)]
unsafe impl Sync for Database {}

impl Drop for Database {
    fn drop(&mut self) {
        // SAFETY: made together, and destroyed only here; the family before its database.
        #[allow(unsafe_code)]
        unsafe {
            (self.functions.rocksdb_column_family_handle_destroy)(self.family.as_ptr());
            (self.functions.rocksdb_close)(self.raw.as_ptr());
        }
    }
}

/// Buffers of multi-gets, which a session keeps.
#[derive(Default)]
pub struct MultiGetBuffers {
    /// Positions of the keys in the batch.
    indices: Vec<usize>,
    keys: Vec<*const c_char>,
    lengths: Vec<usize>,
    values: Vec<*mut c::PinnableSlice>,
    errors: Vec<*mut c_char>,
}

/// No version of RocksDB returns null: it aborts when memory runs out.
const NOTHING: &str = "RocksDB returned neither an object nor an error";

fn made<T>(raw: *mut T) -> Result<NonNull<T>, StoreError> {
    NonNull::new(raw).ok_or_else(|| StoreError::Failed(NOTHING.to_owned()))
}

/// `rocksdb_statistics_level_except_histogram_or_timers`: counts, but without clocks and
/// histograms.
const TICKERS_ALONE: i32 = 1;

#[allow(unsafe_code)]
impl Options {
    pub fn new(functions: &'static Functions) -> Result<Self, StoreError> {
        // SAFETY: takes nothing.
        let raw = made(unsafe { (functions.rocksdb_options_create)() })?;
        Ok(Self { functions, raw })
    }

    pub fn create_if_missing(&mut self) {
        // SAFETY: the options are alive.
        unsafe { (self.functions.rocksdb_options_set_create_if_missing)(self.raw.as_ptr(), 1) }
    }

    pub fn set_table(&mut self, table: &Table) {
        // SAFETY: both are alive; RocksDB copies what the table's options say.
        unsafe {
            (self.functions.rocksdb_options_set_block_based_table_factory)(
                self.raw.as_ptr(),
                table.raw.as_ptr(),
            );
        }
    }

    /// These options, changed by a text of `name=value;`.
    ///
    /// # Errors
    /// A name or a value that RocksDB does not take, in its words.
    pub fn with(&self, text: &str) -> Result<Options, StoreError> {
        let text = c_string(text)?;
        let changed = Options::new(self.functions)?;
        // SAFETY: all are alive, and the text ends with a zero.
        outcome(self.functions, |error| unsafe {
            (self.functions.rocksdb_get_options_from_string)(
                self.raw.as_ptr(),
                text.as_ptr(),
                changed.raw.as_ptr(),
                error,
            );
        })?;
        Ok(changed)
    }

    /// Turns tickers on, without histograms and timers where the library can leave them out.
    pub fn count(&mut self) {
        // SAFETY: the options are alive.
        unsafe {
            (self.functions.rocksdb_options_enable_statistics)(self.raw.as_ptr());
            if let Some(set_level) = self.functions.rocksdb_options_set_statistics_level {
                set_level(self.raw.as_ptr(), TICKERS_ALONE);
            }
        }
    }

    /// The statistics as RocksDB's text, a line for each; nothing where they are not counted.
    pub fn statistics(&self) -> Option<String> {
        // SAFETY: the options are alive; the text is ours to free.
        unsafe {
            let text = (self.functions.rocksdb_options_statistics_get_string)(self.raw.as_ptr());
            take_text(self.functions, text)
        }
    }
}

#[allow(unsafe_code)]
impl Table {
    pub fn new(functions: &'static Functions) -> Result<Self, StoreError> {
        // SAFETY: takes nothing.
        let raw = made(unsafe { (functions.rocksdb_block_based_options_create)() })?;
        Ok(Self { functions, raw })
    }

    pub fn set_cache(&mut self, cache: &Cache) {
        // SAFETY: both are alive; RocksDB shares ownership of the cache.
        unsafe {
            (self.functions.rocksdb_block_based_options_set_block_cache)(
                self.raw.as_ptr(),
                cache.raw.as_ptr(),
            );
        }
    }
}

#[allow(unsafe_code)]
impl Cache {
    pub fn lru(functions: &'static Functions, bytes: usize) -> Result<Self, StoreError> {
        // SAFETY: takes a number.
        let raw = made(unsafe { (functions.rocksdb_cache_create_lru)(bytes) })?;
        Ok(Self { functions, raw })
    }

    /// `None` where this version cannot make one through its C interface.
    pub fn hyper_clock(
        functions: &'static Functions,
        bytes: usize,
    ) -> Option<Result<Self, StoreError>> {
        let create = functions.rocksdb_cache_create_hyper_clock?;
        // SAFETY: takes numbers; without an estimate of an entry's size the table grows.
        Some(made(unsafe { create(bytes, 0) }).map(|raw| Self { functions, raw }))
    }
}

#[allow(unsafe_code)]
impl Reading {
    pub fn new(functions: &'static Functions) -> Result<Self, StoreError> {
        // SAFETY: takes nothing.
        let raw = made(unsafe { (functions.rocksdb_readoptions_create)() })?;
        Ok(Self { functions, raw })
    }
}

#[allow(unsafe_code)]
impl Writing {
    pub fn new(functions: &'static Functions, wal: bool, sync: bool) -> Result<Self, StoreError> {
        // SAFETY: takes nothing.
        let raw = made(unsafe { (functions.rocksdb_writeoptions_create)() })?;
        // SAFETY: the options are alive.
        unsafe {
            (functions.rocksdb_writeoptions_disable_WAL)(raw.as_ptr(), (!wal).into());
            (functions.rocksdb_writeoptions_set_sync)(raw.as_ptr(), sync.into());
        }
        Ok(Self { functions, raw })
    }
}

#[allow(unsafe_code)]
impl Flushing {
    fn new(functions: &'static Functions, wait: bool) -> Result<Self, StoreError> {
        // SAFETY: takes nothing.
        let raw = made(unsafe { (functions.rocksdb_flushoptions_create)() })?;
        // SAFETY: the options are alive.
        unsafe { (functions.rocksdb_flushoptions_set_wait)(raw.as_ptr(), wait.into()) }
        Ok(Self { functions, raw })
    }
}

#[allow(unsafe_code)]
impl Database {
    pub fn open(options: &Options, path: &Path) -> Result<Self, StoreError> {
        use std::os::unix::ffi::OsStrExt;

        let functions = options.functions;
        let text = CString::new(path.as_os_str().as_bytes()).map_err(|_| has_zero())?;
        let (mut raw, mut family) = (ptr::null_mut(), ptr::null_mut());
        let (name, of_family) = (c"default".as_ptr(), options.raw.as_ptr().cast_const());
        // SAFETY: the options are alive, path and name end with a zero; one family.
        outcome(functions, |error| unsafe {
            raw = (functions.rocksdb_open_column_families)(
                of_family,
                text.as_ptr(),
                1,
                &name,
                &of_family,
                &mut family,
                error,
            );
        })?;
        Ok(Self { functions, raw: made(raw)?, family: made(family)? })
    }

    #[inline]
    pub fn put(&self, options: &Writing, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        // SAFETY: all are alive for the call; RocksDB copies key and value.
        outcome(self.functions, |error| unsafe {
            (self.functions.rocksdb_put)(
                self.raw.as_ptr(),
                options.raw.as_ptr(),
                key.as_ptr().cast(),
                key.len(),
                value.as_ptr().cast(),
                value.len(),
                error,
            );
        })
    }

    #[inline]
    pub fn delete(&self, options: &Writing, key: &[u8]) -> Result<(), StoreError> {
        // SAFETY: all are alive for the call.
        outcome(self.functions, |error| unsafe {
            (self.functions.rocksdb_delete)(
                self.raw.as_ptr(),
                options.raw.as_ptr(),
                key.as_ptr().cast(),
                key.len(),
                error,
            );
        })
    }

    /// The value of a key, borrowed from RocksDB.
    #[inline]
    pub fn get(
        &self,
        options: &Reading,
        key: &[u8],
    ) -> Result<Option<PinnedValue<'_>>, StoreError> {
        let mut raw = ptr::null_mut();
        // SAFETY: all are alive for the call.
        outcome(self.functions, |error| unsafe {
            raw = (self.functions.rocksdb_get_pinned)(
                self.raw.as_ptr(),
                options.raw.as_ptr(),
                key.as_ptr().cast(),
                key.len(),
                error,
            );
        })?;
        let value = |raw| PinnedValue { functions: self.functions, raw, of: PhantomData };
        Ok(NonNull::new(raw).map(value))
    }

    /// Looks up keys together, each with its index for `on_value`. Fails with the first key that
    /// fails.
    pub fn multi_get<'k>(
        &self,
        batched: c::BatchedMultiGet,
        options: &Reading,
        keys: impl Iterator<Item = (usize, &'k [u8])>,
        buffers: &mut MultiGetBuffers,
        on_value: &mut impl FnMut(usize, &[u8]),
    ) -> Result<(), StoreError> {
        let MultiGetBuffers { indices, keys: starts, lengths, values, errors } = buffers;
        indices.clear();
        starts.clear();
        lengths.clear();
        for (index, key) in keys {
            indices.push(index);
            starts.push(key.as_ptr().cast());
            lengths.push(key.len());
        }
        values.clear();
        values.resize(indices.len(), ptr::null_mut());
        errors.clear();
        errors.resize(indices.len(), ptr::null_mut());
        // SAFETY: all are alive for the call; every list has room for all keys.
        unsafe {
            batched(
                self.raw.as_ptr(),
                options.raw.as_ptr(),
                self.family.as_ptr(),
                indices.len(),
                starts.as_ptr(),
                lengths.as_ptr(),
                values.as_mut_ptr(),
                errors.as_mut_ptr(),
                false,
            );
        }
        let mut all = Ok(());
        for (index, (value, error)) in indices.iter().zip(values.iter().zip(errors.iter())) {
            if !error.is_null() {
                all = all.and(Err(failed(self.functions, *error)));
            } else if let Some(raw) = NonNull::new(*value) {
                let value = PinnedValue { functions: self.functions, raw, of: PhantomData };
                on_value(*index, value.bytes());
            }
        }
        all
    }

    pub fn cursor(&self, options: &Reading) -> Result<RowIterator<'_>, StoreError> {
        // SAFETY: both are alive; the cursor does not outlive the database.
        let raw = unsafe {
            (self.functions.rocksdb_create_iterator)(self.raw.as_ptr(), options.raw.as_ptr())
        };
        Ok(RowIterator { functions: self.functions, raw: made(raw)?, of: PhantomData })
    }

    /// Has the memtable written; with `wait` also waits until it is, which no limit bounds.
    pub fn flush(&self, wait: bool) -> Result<(), StoreError> {
        let options = Flushing::new(self.functions, wait)?;
        // SAFETY: both are alive.
        outcome(self.functions, |error| unsafe {
            (self.functions.rocksdb_flush)(self.raw.as_ptr(), options.raw.as_ptr(), error);
        })
    }

    /// Changes an option of the running database.
    pub fn set_option(&self, name: &CStr, value: &str) -> Result<(), StoreError> {
        let value = c_string(value)?;
        // SAFETY: one name and one value, which end with a zero.
        outcome(self.functions, |error| unsafe {
            (self.functions.rocksdb_set_options)(
                self.raw.as_ptr(),
                1,
                &name.as_ptr(),
                &value.as_ptr(),
                error,
            );
        })
    }

    /// A property that is a number; `None` where this version does not have it.
    pub fn number(&self, property: &CStr) -> Option<u64> {
        let mut value = 0;
        // SAFETY: the name ends with a zero, and there is room for the number.
        let answer = unsafe {
            (self.functions.rocksdb_property_int)(self.raw.as_ptr(), property.as_ptr(), &mut value)
        };
        (answer == 0).then_some(value)
    }

    /// A property that is a text; `None` where this version does not have it.
    pub fn text(&self, property: &CStr) -> Option<String> {
        // SAFETY: the name ends with a zero; the text is ours to free.
        unsafe {
            let text =
                (self.functions.rocksdb_property_value)(self.raw.as_ptr(), property.as_ptr());
            take_text(self.functions, text)
        }
    }
}

/// A value borrowed from RocksDB, mostly bytes of a cached block.
pub struct PinnedValue<'a> {
    functions: &'static Functions,
    raw: NonNull<c::PinnableSlice>,
    of: PhantomData<&'a Database>,
}

#[allow(unsafe_code)]
impl PinnedValue<'_> {
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        let mut length = 0;
        // SAFETY: the slice is alive, and its bytes are valid until it is destroyed.
        unsafe {
            let bytes =
                (self.functions.rocksdb_pinnableslice_value)(self.raw.as_ptr(), &mut length);
            borrowed_bytes(bytes, length)
        }
    }
}

impl Drop for PinnedValue<'_> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: it is ours, and destroyed once.
        #[allow(unsafe_code)]
        unsafe {
            (self.functions.rocksdb_pinnableslice_destroy)(self.raw.as_ptr());
        }
    }
}

/// An iterator over a database's keys. Belongs to one thread.
pub struct RowIterator<'a> {
    functions: &'static Functions,
    raw: NonNull<c::Iterator>,
    of: PhantomData<&'a Database>,
}

#[allow(unsafe_code)]
impl RowIterator<'_> {
    /// Makes writes since its creation visible; `None` where this version cannot.
    pub fn refresh(&mut self) -> Option<Result<(), StoreError>> {
        let refresh = self.functions.rocksdb_iter_refresh?;
        // SAFETY: the iterator is alive.
        Some(outcome(self.functions, |error| unsafe { refresh(self.raw.as_ptr(), error) }))
    }

    pub fn seek(&mut self, key: &[u8]) {
        // SAFETY: the iterator and the key are alive for the call.
        unsafe {
            (self.functions.rocksdb_iter_seek)(self.raw.as_ptr(), key.as_ptr().cast(), key.len());
        }
    }

    /// Goes to the next pair; must be at a pair.
    pub fn step(&mut self) {
        debug_assert!(self.pair().is_some(), "RocksDB's iterator must be valid to go on");
        // SAFETY: the iterator is alive, and at a pair.
        unsafe { (self.functions.rocksdb_iter_next)(self.raw.as_ptr()) }
    }

    /// The current pair; `None` after the last one, and after an error.
    pub fn pair(&self) -> Option<(&[u8], &[u8])> {
        let (raw, mut of_key, mut of_value) = (self.raw.as_ptr(), 0, 0);
        // SAFETY: the iterator is alive; at a pair, both are valid until it is moved, which needs
        // exclusive access.
        unsafe {
            if (self.functions.rocksdb_iter_valid)(raw) == 0 {
                return None;
            }
            let key = (self.functions.rocksdb_iter_key)(raw, &mut of_key);
            let value = (self.functions.rocksdb_iter_value)(raw, &mut of_value);
            Some((borrowed_bytes(key, of_key), borrowed_bytes(value, of_value)))
        }
    }

    /// The error that ended the iteration, if any.
    pub fn status(&self) -> Result<(), StoreError> {
        // SAFETY: the iterator is alive.
        outcome(self.functions, |error| unsafe {
            (self.functions.rocksdb_iter_get_error)(self.raw.as_ptr(), error);
        })
    }
}

impl Drop for RowIterator<'_> {
    fn drop(&mut self) {
        // SAFETY: it is ours, and destroyed once.
        #[allow(unsafe_code)]
        unsafe {
            (self.functions.rocksdb_iter_destroy)(self.raw.as_ptr());
        }
    }
}

/// # Safety
/// `bytes` are `length` bytes that live as long as the answer is used.
#[inline]
#[allow(unsafe_code)]
unsafe fn borrowed_bytes<'a>(bytes: *const c_char, length: usize) -> &'a [u8] {
    match bytes.is_null() {
        true => &[],
        // SAFETY: the caller's word.
        false => unsafe { slice::from_raw_parts(bytes.cast(), length) },
    }
}

/// The result of a call that reports its error as a text.
#[inline]
fn outcome(
    functions: &'static Functions,
    call: impl FnOnce(*mut *mut c_char),
) -> Result<(), StoreError> {
    let mut error = ptr::null_mut();
    call(&mut error);
    if error.is_null() { Ok(()) } else { Err(failed(functions, error)) }
}

#[cold]
fn failed(functions: &'static Functions, error: *mut c_char) -> StoreError {
    // SAFETY: a call has just left it, and it is ours to free.
    #[allow(unsafe_code)]
    let text = unsafe { take_text(functions, error) }.unwrap_or_default();
    // Every call that meets a full disk, and every later write, reports it so.
    if text.contains("No space left on device") || text.contains("NoSpace") {
        StoreError::Full(text)
    } else {
        StoreError::Failed(text)
    }
}

/// Copies a text of RocksDB's and frees it.
///
/// # Safety
/// It is null, or ends with a zero and is freed only here.
#[allow(unsafe_code)]
unsafe fn take_text(functions: &'static Functions, text: *mut c_char) -> Option<String> {
    if text.is_null() {
        return None;
    }
    // SAFETY: the caller's word.
    unsafe {
        let copy = CStr::from_ptr(text).to_string_lossy().into_owned();
        (functions.rocksdb_free)(text.cast());
        Some(copy)
    }
}

fn c_string(text: &str) -> Result<CString, StoreError> {
    CString::new(text).map_err(|_| has_zero())
}

fn has_zero() -> StoreError {
    StoreError::Request("RocksDB takes no path and no option with a zero byte in it".to_owned())
}
