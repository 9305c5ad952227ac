//! A store that the user brings: a shared library with the functions of `include/kvmeter_store.h`.

mod library;
mod session;
mod table;
mod watchdog;

use std::ffi::{CString, c_char, c_int, c_void};
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

use model::{Span, Unavailable, Unit};

use self::library::{PluginLibrary, c_path, installed, load, short_name};

pub use self::session::PluginSession;
use self::table::{
    DURABLE, EVICTS, ErrorBuffer, FULL, INVALID, OK, RawDatabase, RawOption, SCANS, Status,
    UNSETTLED, text,
};
use self::watchdog::{CallSlot, Function};
use crate::{
    Capabilities, DataLocation, EmbeddedAdapter, LongestValue, OptionInfo, Statistic, Store,
    StoreDescription, StoreError, StoreOptions, StoreUrl, Survives,
};

/// kvmeter's own options. `path` is the directory and no option here.
const OPTIONS: &[OptionInfo] = &[
    OptionInfo::new(StoreUrl::LIBRARY, "none", "path of the plug-in, or its name").shaping(),
    OptionInfo::new("limit", "60s", "a call that lasts longer ends the process"),
    OptionInfo::new("trusted", "no", "yes: without a process of its own; see docs/stores.md"),
];
const DEFAULT_LIMIT: Duration = Duration::from_secs(60);
/// The most statistics or options in force that are taken.
const MOST_TOLD: usize = 1000;

/// An open plug-in.
pub struct Plugin {
    library: &'static PluginLibrary,
    db: RawDatabase,
    slot: Arc<CallSlot>,
    limit: Duration,
    given: Vec<(String, String)>,
}

// SAFETY: `kvmeter_store.h` promises that sessions are opened and work in parallel.
#[allow(unsafe_code)]
unsafe impl Send for Plugin {}
// SAFETY: as above.
#[allow(unsafe_code)]
unsafe impl Sync for Plugin {}

/// The library of a URL, and kvmeter's own options.
struct Config {
    library: &'static PluginLibrary,
    limit: Duration,
}

impl Config {
    fn read(url: &StoreUrl) -> Result<Config, StoreError> {
        let named = url.options.iter().find(|(name, _)| name == StoreUrl::LIBRARY);
        let Some((_, name)) = named else {
            return Err(StoreError::Request(
                "`plugin` names no library; write `plugin:LIB.so`, or `library = \"LIB.so\"` in a \
                 study"
                    .to_owned(),
            ));
        };
        let library = load(name, OPTIONS)?;
        let options = StoreOptions::new(url, library.options)?;
        options.choice("trusted", &[("yes", true), ("no", false)])?;
        let limit = options.span("limit")?.unwrap_or(DEFAULT_LIMIT);
        Ok(Config { library, limit })
    }
}

impl EmbeddedAdapter for Plugin {
    const OPTIONS: &'static [OptionInfo] = OPTIONS;
    const LOCATION: DataLocation = DataLocation::Library;

    fn describe(url: &StoreUrl) -> Result<StoreDescription, StoreError> {
        let PluginLibrary { options, on_disk, longest_key, .. } = *Config::read(url)?.library;
        Ok(StoreDescription { options, on_disk, longest_key })
    }

    fn longest_value(url: &StoreUrl) -> Result<Option<LongestValue>, StoreError> {
        let bytes = Config::read(url)?.library.longest_value;
        Ok(bytes.map(|bytes| LongestValue { bytes, raised_by: None }))
    }

    fn check(url: &StoreUrl) -> Result<(), StoreError> {
        Config::read(url).map(drop)
    }

    fn linked() -> Result<String, Unavailable> {
        let files = installed();
        let here: Vec<&str> = files.iter().filter_map(|path| short_name(path)).collect();
        let found = match here.is_empty() {
            true => "no plug-in installed".to_owned(),
            false => format!("installed: {}", here.join(", ")),
        };
        Ok(format!("kvmeter_store.h, version {}; {found}", table::ABI))
    }
}

impl Store for Plugin {
    type Session<'a> = PluginSession<'a>;

    fn open(url: &StoreUrl) -> Result<Self, StoreError> {
        let Config { library, limit } = Config::read(url)?;
        let directory = match (library.on_disk, url.path.as_os_str().is_empty()) {
            (false, _) => None,
            (true, false) => Some(c_path(&url.data_path())?),
            (true, true) => {
                return Err(StoreError::Request(format!(
                    "{} lives in a directory; name one: `plugin:{}?path=DIR`",
                    library.name,
                    library.path.display()
                )));
            }
        };
        let own = |name: &str| OPTIONS.iter().any(|option| option.name == name);
        let given = url.options.clone();
        let texts: Vec<(CString, CString)> = given
            .iter()
            .filter(|(name, _)| !own(name))
            .map(|(name, value)| Ok((c_text(name)?, c_text(value)?)))
            .collect::<Result<_, StoreError>>()?;
        let settings: Vec<RawOption> = texts
            .iter()
            .map(|(name, value)| RawOption {
                name: name.as_ptr(),
                value: value.as_ptr(),
                what: ptr::null(),
            })
            .collect();
        let slot = CallSlot::new(&named(library), limit);
        let (mut db, mut error) = (ptr::null_mut(), ErrorBuffer::new());
        let directory = directory.as_ref().map_or(ptr::null(), |path| path.as_ptr());
        let status = slot.call(Function::Open, || {
            // SAFETY: the function is the plug-in's by its table, and what is passed lives until it
            // returns.
            #[allow(unsafe_code)]
            unsafe {
                (library.functions.open)(
                    directory,
                    settings.as_ptr(),
                    settings.len(),
                    &raw mut db,
                    &raw mut error,
                )
            }
        });
        if status != OK {
            return Err(failed(library, Function::Open, status, &mut error));
        }
        if db.is_null() {
            return Err(broken(library, Function::Open, "succeeded without a database"));
        }
        Ok(Plugin { library, db, slot, limit, given })
    }

    fn capabilities(&self) -> Capabilities {
        // SAFETY: the database is open.
        #[allow(unsafe_code)]
        let flags = unsafe { (self.library.functions.capabilities)(self.db) };
        let survives = if flags & DURABLE != 0 { Survives::ProcessKill } else { Survives::Nothing };
        Capabilities {
            scan: flags & SCANS != 0 && self.library.functions.scan.is_some(),
            survives: Some(survives),
            stores_values: true,
            may_evict: flags & EVICTS != 0,
        }
    }

    fn version(&self) -> String {
        self.library.version.clone()
    }

    fn options(&self) -> Vec<(String, String)> {
        let mut told: Vec<(String, String)> = Vec::new();
        if let Some(options) = self.library.functions.options_in_force {
            // SAFETY: the database is open, and the context is what the call-back casts it to.
            #[allow(unsafe_code)]
            unsafe {
                options(self.db, on_option, ptr::from_mut(&mut told).cast())
            };
        }
        let value = |option: &OptionInfo| {
            let of = |all: &[(String, String)]| {
                let found = all.iter().find(|(name, _)| name == option.name);
                found.map(|(_, value)| value.clone())
            };
            of(&told).or_else(|| of(&self.given)).unwrap_or_else(|| option.default.to_owned())
        };
        let all = self.library.options.iter();
        all.map(|option| {
            let value = match option.name {
                StoreUrl::LIBRARY => self.library.path.display().to_string(),
                "limit" => Span(self.limit).to_string(),
                _ => value(option),
            };
            (option.name.to_owned(), value)
        })
        .collect()
    }

    fn session(&self) -> Result<PluginSession<'_>, StoreError> {
        PluginSession::open(self)
    }

    fn settle(&self, limit: Duration) -> Result<(), StoreError> {
        let Some(settle) = self.library.functions.settle else { return Ok(()) };
        let slot = CallSlot::new(&named(self.library), limit.saturating_add(self.limit));
        let mut error = ErrorBuffer::new();
        let milliseconds = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        let status = slot.call(Function::Settle, || {
            // SAFETY: the database is open, and the buffer lives until it returns.
            #[allow(unsafe_code)]
            unsafe {
                settle(self.db, milliseconds, &raw mut error)
            }
        });
        match status {
            OK => Ok(()),
            status => Err(failed(self.library, Function::Settle, status, &mut error)),
        }
    }

    fn statistics(&self) -> Vec<Statistic> {
        let mut told: Vec<Statistic> = Vec::new();
        if let Some(statistics) = self.library.functions.statistics {
            let slot = CallSlot::new(&named(self.library), self.limit);
            slot.call(Function::Statistics, || {
                // SAFETY: the database is open, and the context is what the call-back casts it to.
                #[allow(unsafe_code)]
                unsafe {
                    statistics(self.db, on_statistic, ptr::from_mut(&mut told).cast())
                }
            });
        }
        told
    }
}

impl Drop for Plugin {
    fn drop(&mut self) {
        self.slot.call(Function::Close, || {
            // SAFETY: it is open and closed once; sessions borrow the store and are closed.
            #[allow(unsafe_code)]
            unsafe {
                (self.library.functions.close)(self.db)
            }
        });
    }
}

/// # Safety
/// The context is a `Vec<(String, String)>`; strings end with a NUL.
#[allow(unsafe_code)]
unsafe extern "C" fn on_option(context: *mut c_void, name: *const c_char, value: *const c_char) {
    // SAFETY: as the caller says.
    let (told, name, value) =
        unsafe { (&mut *context.cast::<Vec<(String, String)>>(), text(name), text(value)) };
    if let (Some(name), Some(value), true) = (name, value, told.len() < MOST_TOLD) {
        told.push((name, value));
    }
}

/// # Safety
/// The context is a `Vec<Statistic>`; the name ends with a NUL.
#[allow(unsafe_code)]
unsafe extern "C" fn on_statistic(
    context: *mut c_void,
    name: *const c_char,
    value: f64,
    unit: c_int,
) {
    // SAFETY: as the caller says.
    let (told, name) = unsafe { (&mut *context.cast::<Vec<Statistic>>(), text(name)) };
    let unit = match unit {
        1 => Unit::Bytes,
        2 => Unit::Seconds,
        3 => Unit::Ratio,
        _ => Unit::Count,
    };
    let is_new = |name: &String| told.iter().all(|other| other.name != *name);
    if let Some(name) = name.filter(is_new)
        && value.is_finite()
        && told.len() < MOST_TOLD
    {
        told.push(Statistic { name, value, unit });
    }
}

fn c_text(text: &str) -> Result<CString, StoreError> {
    CString::new(text).map_err(|_| StoreError::Request(format!("the option {text:?} holds a NUL")))
}

fn named(library: &PluginLibrary) -> String {
    format!("plug-in {} ({})", library.name, library.path.display())
}

/// The error of a function that answered with `status`.
#[cold]
fn failed(
    library: &PluginLibrary,
    function: Function,
    status: Status,
    error: &mut ErrorBuffer,
) -> StoreError {
    let words = format!("{}: {}: {}", library.name, function.name(), error.take());
    match status {
        table::FAILED => StoreError::Failed(words),
        FULL => StoreError::Full(words),
        INVALID => StoreError::Request(words),
        UNSETTLED if function == Function::Settle => StoreError::Unsettled(words),
        other => broken(library, function, &format!("answered {other}, which means nothing here")),
    }
}

/// The error of a function that did what `kvmeter_store.h` rules out.
#[cold]
fn broken(library: &PluginLibrary, function: Function, what: &str) -> StoreError {
    StoreError::Broken(format!("{}: `{}` {what}", named(library), function.name()))
}
