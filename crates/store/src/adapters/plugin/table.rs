//! The table of functions that a plug-in exports: `include/kvmeter_store.h` in Rust.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::offset_of;
use std::ptr;

/// The version of the interface (`KVMETER_STORE_ABI`).
pub const ABI: u32 = 1;

/// What a function answers.
pub type Status = i32;
pub const OK: Status = 0;
pub const NOT_FOUND: Status = 1;
pub const FAILED: Status = 2;
pub const FULL: Status = 3;
pub const INVALID: Status = 4;
pub const UNSETTLED: Status = 5;

pub const SCANS: u32 = 1;
pub const DURABLE: u32 = 1 << 1;
pub const EVICTS: u32 = 1 << 2;

/// Bytes of an error's sentence (`KVMETER_MESSAGE`).
const MESSAGE: usize = 512;
/// The longest string of a table in bytes.
const LONGEST_TEXT: usize = 256;

/// Where a failed function writes its sentence (`kvmeter_error`).
#[repr(C)]
pub struct ErrorBuffer {
    message: [u8; MESSAGE],
}

impl ErrorBuffer {
    pub const fn new() -> Self {
        Self { message: [0; MESSAGE] }
    }

    /// The sentence, without its end where that is missing; it is empty from now on.
    pub fn take(&mut self) -> String {
        let text = self.message.split(|byte| *byte == 0).next().unwrap_or_default();
        let text = String::from_utf8_lossy(text).trim().to_owned();
        self.message[0] = 0;
        if text.is_empty() { "it gave no reason".to_owned() } else { text }
    }
}

/// `kvmeter_option`.
#[repr(C)]
pub struct RawOption {
    pub name: *const c_char,
    pub value: *const c_char,
    pub what: *const c_char,
}

pub type OnValue = unsafe extern "C" fn(*mut c_void, *const c_void, usize);
pub type OnFound = unsafe extern "C" fn(*mut c_void, usize, *const c_void, usize);
pub type OnPair =
    unsafe extern "C" fn(*mut c_void, *const c_void, usize, *const c_void, usize) -> c_int;
pub type OnOption = unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char);
pub type OnStatistic = unsafe extern "C" fn(*mut c_void, *const c_char, f64, c_int);

/// `kvmeter_key`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct RawKey {
    pub bytes: *const c_void,
    pub length: usize,
}

/// An open database and a session of it, which are the plug-in's.
pub type RawDatabase = *mut c_void;
pub type RawSession = *mut c_void;

pub type Put = unsafe extern "C" fn(
    RawSession,
    *const c_void,
    usize,
    *const c_void,
    usize,
    *mut ErrorBuffer,
) -> Status;
pub type Scan = unsafe extern "C" fn(
    RawSession,
    *const c_void,
    usize,
    usize,
    OnPair,
    *mut c_void,
    *mut ErrorBuffer,
) -> Status;
pub type Get = unsafe extern "C" fn(
    RawSession,
    *const c_void,
    usize,
    OnValue,
    *mut c_void,
    *mut ErrorBuffer,
) -> Status;
pub type MultiGet = unsafe extern "C" fn(
    RawSession,
    *const RawKey,
    usize,
    OnFound,
    *mut c_void,
    *mut ErrorBuffer,
) -> Status;
pub type Remove =
    unsafe extern "C" fn(RawSession, *const c_void, usize, *mut ErrorBuffer) -> Status;
pub type Open = unsafe extern "C" fn(
    *const c_char,
    *const RawOption,
    usize,
    *mut RawDatabase,
    *mut ErrorBuffer,
) -> Status;
pub type Close = unsafe extern "C" fn(RawDatabase);
pub type CapabilitiesOf = unsafe extern "C" fn(RawDatabase) -> u32;
pub type OptionsInForce = unsafe extern "C" fn(RawDatabase, OnOption, *mut c_void);
pub type SessionOpen =
    unsafe extern "C" fn(RawDatabase, *mut RawSession, *mut ErrorBuffer) -> Status;
pub type SessionClose = unsafe extern "C" fn(RawSession);
pub type Settle = unsafe extern "C" fn(RawDatabase, u64, *mut ErrorBuffer) -> Status;
pub type StatisticsOf = unsafe extern "C" fn(RawDatabase, OnStatistic, *mut c_void);

/// `kvmeter_store_table`, whose first two members say whether the others are there.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct RawTable {
    pub abi: u32,
    pub size: u32,
    pub name: *const c_char,
    pub version: *const c_char,
    pub on_disk: u32,
    pub option_count: u32,
    pub options: *const RawOption,
    pub longest_key: usize,
    pub longest_value: usize,
    pub open: Option<Open>,
    pub close: Option<Close>,
    pub capabilities: Option<CapabilitiesOf>,
    pub options_in_force: Option<OptionsInForce>,
    pub session_open: Option<SessionOpen>,
    pub session_close: Option<SessionClose>,
    pub get: Option<Get>,
    pub put: Option<Put>,
    pub insert: Option<Put>,
    pub remove: Option<Remove>,
    pub scan: Option<Scan>,
    pub settle: Option<Settle>,
    pub statistics: Option<StatisticsOf>,
    // Appended to version 1.
    pub multi_get: Option<MultiGet>,
}

impl RawTable {
    /// Bytes of the members that every table has.
    pub const LEAST: usize = offset_of!(RawTable, multi_get);

    /// A table of `size` bytes, without the members that it does not have.
    ///
    /// # Safety
    /// At least [`RawTable::LEAST`] and `size` bytes can be read at `table`.
    #[allow(unsafe_code)]
    pub unsafe fn read(table: *const c_void, size: usize) -> RawTable {
        // SAFETY: zeros are a table of null pointers and absent functions.
        let mut read: RawTable = unsafe { std::mem::zeroed() };
        let known = size.min(size_of::<RawTable>());
        // SAFETY: as the caller says, and the destination has room for a whole table.
        unsafe {
            ptr::copy_nonoverlapping(table.cast::<u8>(), ptr::from_mut(&mut read).cast(), known);
        }
        read
    }
}

/// The functions of a plug-in; those that it must have are there.
#[derive(Clone, Copy)]
pub struct Functions {
    pub open: Open,
    pub close: Close,
    pub capabilities: CapabilitiesOf,
    pub options_in_force: Option<OptionsInForce>,
    pub session_open: SessionOpen,
    pub session_close: SessionClose,
    pub get: Get,
    pub put: Put,
    pub insert: Put,
    pub remove: Remove,
    pub scan: Option<Scan>,
    pub settle: Option<Settle>,
    pub statistics: Option<StatisticsOf>,
    pub multi_get: Option<MultiGet>,
}

impl Functions {
    /// # Errors
    /// The name of a function that is missing.
    pub fn of(table: &RawTable) -> Result<Functions, &'static str> {
        let put = table.put.ok_or("put")?;
        Ok(Functions {
            open: table.open.ok_or("open")?,
            close: table.close.ok_or("close")?,
            capabilities: table.capabilities.ok_or("capabilities")?,
            options_in_force: table.options_in_force,
            session_open: table.session_open.ok_or("session_open")?,
            session_close: table.session_close.ok_or("session_close")?,
            get: table.get.ok_or("get")?,
            put,
            insert: table.insert.unwrap_or(put),
            remove: table.remove.ok_or("remove")?,
            scan: table.scan,
            settle: table.settle,
            statistics: table.statistics,
            multi_get: table.multi_get,
        })
    }
}

/// A string of a plug-in; `None` where it is missing, too long or empty.
///
/// # Safety
/// A pointer that is not null leads to a string with its final NUL.
#[allow(unsafe_code)]
pub unsafe fn text(string: *const c_char) -> Option<String> {
    if string.is_null() {
        return None;
    }
    // SAFETY: as the caller says.
    let bytes = unsafe { CStr::from_ptr(string) }.to_bytes();
    let fits = !bytes.is_empty() && bytes.len() <= LONGEST_TEXT;
    fits.then(|| String::from_utf8_lossy(bytes).chars().filter(|c| !c.is_control()).collect())
}
