//! A plug-in's library: loaded once a process, and checked before anything of it is called.

use std::collections::BTreeMap;
use std::ffi::{CString, c_void};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use model::suggest::hint;

use super::super::shared_library::{SharedLibrary, described};
use super::table::{ABI, Functions, RawTable, text};
use crate::{OptionInfo, StoreError};

/// The function that a plug-in exports.
const ENTRY: &[u8] = b"kvmeter_store\0";
/// The most options of a plug-in.
const MOST_OPTIONS: u32 = 256;
/// Folders of plug-ins, between colons, before the usual ones.
const FOLDERS_VARIABLE: &str = "KVMETER_PLUGINS";
const USUAL_FOLDERS: [&str; 2] = ["/usr/local/lib/kvmeter/plugins", "/usr/lib/kvmeter/plugins"];

/// A loaded plug-in.
pub struct PluginLibrary {
    pub path: PathBuf,
    pub functions: Functions,
    /// The engine's name, version and a hash of the file.
    pub version: String,
    pub name: String,
    pub on_disk: bool,
    /// kvmeter's own options, then the plug-in's.
    pub options: &'static [OptionInfo],
    pub longest_key: usize,
    pub longest_value: Option<u64>,
}

/// Each library once: loading it again would give the same one, and options live as long.
static LOADED: Mutex<BTreeMap<PathBuf, &'static PluginLibrary>> = Mutex::new(BTreeMap::new());

/// Loads the library of this name, unless it is loaded already.
///
/// # Errors
/// It is not there, cannot be loaded, is no plug-in or one of another version of the interface.
pub fn load(name: &str, own: &[OptionInfo]) -> Result<&'static PluginLibrary, StoreError> {
    let file = find(name)?;
    let refused = |why: String| StoreError::Request(format!("plug-in {}: {why}", file.display()));
    let real = file.canonicalize().map_err(|error| refused(error.to_string()))?;
    let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(library) = loaded.get(&real) {
        return Ok(library);
    }
    let SharedLibrary { library, sha256 } = SharedLibrary::load(&real).map_err(refused)?;
    // SAFETY: a library that exports this name does so by `kvmeter_store.h`.
    #[allow(unsafe_code)]
    let entry = unsafe { library.get::<unsafe extern "C" fn() -> *const c_void>(ENTRY) };
    let Ok(entry) = entry else {
        return Err(refused(
            "it has no function `kvmeter_store`, so it is no plug-in; \
             docs/your-own-store.md makes one"
                .to_owned(),
        ));
    };
    // SAFETY: as above; it takes nothing and returns a table.
    #[allow(unsafe_code)]
    let table = unsafe { entry() };
    // SAFETY: the table is never freed, for the library is never unloaded.
    #[allow(unsafe_code)]
    let plugin = unsafe { checked(table, own) }.map_err(refused)?;
    std::mem::forget(library);
    let version = described(&plugin.name, &plugin.version, &sha256);
    let plugin: &'static PluginLibrary =
        Box::leak(Box::new(PluginLibrary { path: real.clone(), version, ..plugin }));
    loaded.insert(real, plugin);
    Ok(plugin)
}

/// The plug-in of a table; its version without the hash, its path empty.
///
/// # Safety
/// `table` is null or leads to two numbers and, where these fit this interface, to the rest.
#[allow(unsafe_code)]
unsafe fn checked(table: *const c_void, own: &[OptionInfo]) -> Result<PluginLibrary, String> {
    if table.is_null() || !table.cast::<RawTable>().is_aligned() {
        return Err("`kvmeter_store` returned no table".to_owned());
    }
    // SAFETY: as the caller says.
    let [abi, size] = unsafe { *table.cast::<[u32; 2]>() };
    if abi != ABI {
        return Err(format!(
            "it was built for version {abi} of the plug-in interface, and this kvmeter has version \
             {ABI}; build it again with this kvmeter's include/kvmeter_store.h"
        ));
    }
    if (size as usize) < RawTable::LEAST {
        return Err(format!(
            "its table has {size} bytes, and version {ABI} of the interface has at least {}; set `size` to \
             sizeof(kvmeter_store_table)",
            RawTable::LEAST
        ));
    }
    // SAFETY: version and size say which members are there.
    let table = unsafe { RawTable::read(table, size as usize) };
    let functions =
        Functions::of(&table).map_err(|missing| format!("its function `{missing}` is missing"))?;
    // SAFETY: strings of the table end with a NUL and live as long as the library.
    let (name, version) = unsafe { (text(table.name), text(table.version)) };
    // SAFETY: `option_count` options, as the table says.
    let options = unsafe { options_of(&table, own) }?;
    Ok(PluginLibrary {
        path: PathBuf::new(),
        functions,
        version: version.ok_or("its version is missing")?,
        name: name.ok_or("its name is missing")?,
        on_disk: table.on_disk != 0,
        options,
        longest_key: if table.longest_key == 0 { usize::MAX } else { table.longest_key },
        longest_value: (table.longest_value > 0).then_some(table.longest_value as u64),
    })
}

/// # Safety
/// The table has `option_count` options whose strings live as long as the library.
#[allow(unsafe_code)]
unsafe fn options_of(
    table: &RawTable,
    own: &[OptionInfo],
) -> Result<&'static [OptionInfo], String> {
    let mut all = own.to_vec();
    if table.option_count > MOST_OPTIONS {
        return Err(format!("it has {} options; at most {MOST_OPTIONS}", table.option_count));
    }
    if table.option_count > 0 && table.options.is_null() {
        return Err("its options are missing".to_owned());
    }
    let leaked = |text: String| -> &'static str { Box::leak(text.into_boxed_str()) };
    for at in 0..table.option_count as usize {
        // SAFETY: as the caller says.
        let option = unsafe { &*table.options.add(at) };
        // SAFETY: as the caller says.
        let (name, default, what) =
            unsafe { (text(option.name), text(option.value), text(option.what)) };
        let name = name.ok_or_else(|| format!("its option {} has no name", at + 1))?;
        if all.iter().any(|other| other.name == name) {
            return Err(format!("its option `{name}` is there twice, or is kvmeter's own"));
        }
        let default = leaked(default.unwrap_or_else(|| "the engine's".to_owned()));
        all.push(OptionInfo::new(leaked(name), default, leaked(what.unwrap_or_default())));
    }
    Ok(Box::leak(all.into_boxed_slice()))
}

/// The file that a URL names: a path, or a name in one of the folders of plug-ins.
fn find(name: &str) -> Result<PathBuf, StoreError> {
    let file = PathBuf::from(name);
    if name.contains('/') || file.exists() {
        return Ok(file);
    }
    let here = installed();
    let called = |path: &&PathBuf| short_name(path).is_some_and(|short| short == name);
    here.iter().find(called).cloned().ok_or_else(|| {
        let known: Vec<&str> = here.iter().filter_map(|path| short_name(path)).collect();
        let hint = match known.is_empty() {
            true => format!(
                "write its path, as in `plugin:./lib{name}.so`, or its folder in \
                 {FOLDERS_VARIABLE}"
            ),
            false => hint(name, known),
        };
        StoreError::Request(format!("there is no plug-in `{name}`; {hint}"))
    })
}

/// The libraries in the folders of plug-ins, in order. None of them is loaded.
pub fn installed() -> Vec<PathBuf> {
    let variable = std::env::var_os(FOLDERS_VARIABLE);
    let named: Vec<PathBuf> =
        variable.map(|list| std::env::split_paths(&list).collect()).unwrap_or_default();
    let folders = named.into_iter().chain(USUAL_FOLDERS.map(PathBuf::from));
    let mut all = Vec::new();
    for folder in folders {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        let mut here: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        here.retain(|path| short_name(path).is_some());
        here.sort();
        all.extend(here);
    }
    all
}

/// `leveldb` of `libleveldb.so`.
pub fn short_name(path: &Path) -> Option<&str> {
    let name = path.file_name()?.to_str()?.strip_suffix(".so")?;
    Some(name.strip_prefix("lib").unwrap_or(name))
}

/// A path for C.
pub fn c_path(path: &Path) -> Result<CString, StoreError> {
    use std::os::unix::ffi::OsStrExt;
    CString::new(path.as_os_str().as_bytes())
        .map_err(|_| StoreError::Request(format!("{}: a path holds no NUL", path.display())))
}
