//! Which RocksDB runs: a shared library that is found when a store is opened, or the one that is
//! linked in (feature `rocksdb-bundled`).

use std::collections::BTreeSet;
use std::ffi::{OsString, c_void};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use model::Unavailable;

use super::super::shared_library::{SharedLibrary, described};
use super::database::{Database, Options};
use super::functions::Functions;
use super::options_file::OptionsFile;
use crate::StoreError;

/// The name of the linked library in a URL.
pub const BUNDLED: &str = "bundled";
/// How shared libraries of RocksDB are called; a version may follow.
const NAME: &str = "librocksdb.so";
/// The loader's default folders on common distributions.
const USUAL: [&str; 6] =
    ["/usr/local/lib", "/usr/local/lib64", "/lib64", "/usr/lib64", "/lib", "/usr/lib"];
const LOADER_CONFIGURATION: &str = "/etc/ld.so.conf";
/// How deep files of the loader's configuration may include each other.
const DEEPEST: usize = 8;

/// A loaded library. It is never unloaded: RocksDB has threads of its own.
pub struct Library {
    pub functions: Functions,
    /// `None`: linked in.
    pub path: Option<PathBuf>,
    /// Of the file, in hexadecimal.
    sha256: Option<String>,
    version: OnceLock<Result<String, String>>,
}

/// The library that a URL names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LibraryChoice {
    /// The linked one if any, else the first that the loader would find.
    Any,
    Bundled,
    At(PathBuf),
}

impl LibraryChoice {
    pub fn of(text: Option<&str>) -> Self {
        match text {
            None | Some("auto") => Self::Any,
            Some(BUNDLED) => Self::Bundled,
            Some(path) => Self::At(path.into()),
        }
    }
}

/// Loads the library, unless it is loaded already.
///
/// # Errors
/// There is none, or none with all functions; another one is loaded in this process.
pub fn load(choice: &LibraryChoice) -> Result<&'static Library, StoreError> {
    match choice {
        LibraryChoice::Any => match linked() {
            Some(library) => Ok(library),
            None => {
                let path = libraries().into_iter().next().ok_or_else(library_missing)?;
                shared(&path)
            }
        },
        LibraryChoice::Bundled => linked().ok_or_else(|| {
            StoreError::Request(
                "option `library=bundled` of `rocksdb`: no RocksDB is linked into this kvmeter; \
                 build it with `--features rocksdb-bundled`, or name a shared library"
                    .to_owned(),
            )
        }),
        LibraryChoice::At(path) => shared(path),
    }
}

/// Whether there is neither a linked nor a shared library.
pub fn is_missing() -> bool {
    linked().is_none() && libraries().is_empty()
}

/// The reason and remedy where RocksDB is missing.
pub fn library_missing() -> Unavailable {
    Unavailable::new(
        "RocksDB's library was not found where the loader looks for one",
        "install it (Debian: `apt-get install librocksdb7.8`), or name one with \
         `rocksdb:PATH?library=/path/of/librocksdb.so`",
    )
}

fn linked() -> Option<&'static Library> {
    #[cfg(feature = "rocksdb-bundled")]
    {
        static LINKED: OnceLock<Library> = OnceLock::new();
        Some(LINKED.get_or_init(|| Library {
            functions: Functions::linked(),
            path: None,
            sha256: None,
            version: OnceLock::new(),
        }))
    }
    #[cfg(not(feature = "rocksdb-bundled"))]
    None
}

/// One shared library for each process. Two versions would share symbols that C++ makes unique in a
/// process (static variables of templates and inline functions) and crash.
static SHARED: Mutex<Option<(PathBuf, &'static Library)>> = Mutex::new(None);

fn shared(path: &Path) -> Result<&'static Library, StoreError> {
    let refused =
        |why: String| StoreError::Request(format!("RocksDB's library {}: {why}", path.display()));
    let real = path.canonicalize().map_err(|error| refused(error.to_string()))?;
    let mut slot = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((loaded, library)) = &*slot {
        if *loaded == real {
            return Ok(library);
        }
        return Err(refused(format!(
            "{} is loaded already, and two in one process would disturb each other; measure each \
             in a run of its own and put the results together with `kvmeter merge`",
            loaded.display()
        )));
    }
    let SharedLibrary { library, sha256 } = SharedLibrary::load(&real).map_err(refused)?;
    let find = |name: &'static str| -> Option<*mut c_void> {
        // SAFETY: only the address is taken.
        #[allow(unsafe_code)]
        let symbol = unsafe { library.get::<*mut c_void>(name.as_bytes()) };
        symbol.ok().map(|symbol| *symbol)
    };
    // SAFETY: a library that has `rocksdb_...` has it from `rocksdb/c.h`, where the functions of
    // this list are the same in 7.8 and 11.8. It is never unloaded.
    #[allow(unsafe_code)]
    let functions = unsafe { Functions::from_symbols(find) }.map_err(|missing| {
        refused(format!("it has no function `{missing}`; versions 7.8 to 11 have it"))
    })?;
    std::mem::forget(library);
    let library = Box::leak(Box::new(Library {
        functions,
        path: Some(real.clone()),
        sha256: Some(sha256),
        version: OnceLock::new(),
    }));
    *slot = Some((real, library));
    Ok(library)
}

impl Library {
    /// `7.8.3`. The C interface has no function for it, but the OPTIONS file of a database names
    /// it, so an empty one is created in a temporary folder.
    ///
    /// # Errors
    /// RocksDB's error for an empty database.
    pub fn version(&'static self) -> Result<&'static str, StoreError> {
        let version = self.version.get_or_init(|| self.read_version().map_err(|e| e.to_string()));
        version.as_deref().map_err(|error| StoreError::Failed(error.clone()))
    }

    fn read_version(&'static self) -> Result<String, StoreError> {
        let failed = |error: io::Error| StoreError::Failed(format!("a temporary folder: {error}"));
        let folder = tempfile::tempdir().map_err(failed)?;
        let mut options = Options::new(&self.functions)?;
        options.create_if_missing();
        drop(Database::open(&options, folder.path())?);
        let file = OptionsFile::in_force(folder.path());
        file.and_then(|file| file.version)
            .ok_or(StoreError::Failed("RocksDB does not report its version".to_owned()))
    }

    /// Version and, of a shared library, a hash of the file.
    pub fn describe(&self, version: &str) -> String {
        match &self.sha256 {
            Some(hash) => described("RocksDB", version, hash),
            None => format!("RocksDB {version}"),
        }
    }

    /// The library's name in a URL.
    pub fn name(&self) -> String {
        let path = self.path.as_ref().map(|path| path.display().to_string());
        path.unwrap_or_else(|| BUNDLED.to_owned())
    }
}

/// The shared libraries of RocksDB in the loader's order, for this processor, each file once.
pub fn libraries() -> Vec<PathBuf> {
    let variable = std::env::var_os("LD_LIBRARY_PATH");
    libraries_in(folders(variable, Path::new(LOADER_CONFIGURATION)))
}

fn libraries_in(folders: impl IntoIterator<Item = PathBuf>) -> Vec<PathBuf> {
    let mut known = BTreeSet::new();
    let mut all = Vec::new();
    for folder in folders {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        let mut here: Vec<(Vec<u64>, PathBuf)> = entries
            .filter_map(Result::ok)
            .filter_map(|entry| Some((version_of(entry.file_name().to_str()?)?, entry.path())))
            .collect();
        // The name without a version is what a linker takes, then the newest.
        here.sort_by(|(a, _), (b, _)| b.is_empty().cmp(&a.is_empty()).then(b.cmp(a)));
        for (_, path) in here {
            let Ok(real) = path.canonicalize() else { continue };
            if is_for_this_processor(&real) && known.insert(real.clone()) {
                all.push(real);
            }
        }
    }
    all
}

/// `[7, 8, 3]` of `librocksdb.so.7.8.3`; `None` for another file.
fn version_of(name: &str) -> Option<Vec<u64>> {
    let rest = name.strip_prefix(NAME)?;
    match rest.strip_prefix('.') {
        None => rest.is_empty().then(Vec::new),
        Some(version) => version.split('.').map(|part| part.parse().ok()).collect(),
    }
}

/// The folders of the loader in its order (`ld.so(8)`).
fn folders(variable: Option<OsString>, configuration: &Path) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = variable
        .map(|list| std::env::split_paths(&list).filter(|path| path.is_absolute()).collect())
        .unwrap_or_default();
    configured(configuration, 0, &mut all);
    all.extend(USUAL.map(PathBuf::from));
    all
}

/// The folders of a file such as `/etc/ld.so.conf`, and of those that it includes.
fn configured(file: &Path, depth: usize, all: &mut Vec<PathBuf>) {
    let Ok(text) = fs::read_to_string(file) else { return };
    for line in text.lines().map(str::trim) {
        match line.strip_prefix("include ") {
            Some(pattern) if depth < DEEPEST => {
                // `/etc/ld.so.conf.d/*.conf` is the one pattern that is used.
                let (folder, ending) = pattern.trim().split_once('*').unwrap_or((pattern, ""));
                let Ok(entries) = fs::read_dir(folder) else { continue };
                let mut files: Vec<PathBuf> =
                    entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
                files.retain(|file| file.to_string_lossy().ends_with(ending));
                files.sort();
                files.iter().for_each(|file| configured(file, depth + 1, all));
            }
            None if line.starts_with('/') => all.push(PathBuf::from(line)),
            _ => {}
        }
    }
}

/// The processor of an ELF file, from its header (`e_ident`, `e_machine`).
fn elf_machine(file: &Path) -> Option<([u8; 6], [u8; 2])> {
    let mut head = [0; 20];
    File::open(file).ok()?.read_exact(&mut head).ok()?;
    head.starts_with(b"\x7fELF").then_some(())?;
    Some((head[..6].try_into().ok()?, head[18..].try_into().ok()?))
}

fn is_for_this_processor(file: &Path) -> bool {
    let own = elf_machine(Path::new("/proc/self/exe"));
    own.is_some() && elf_machine(file) == own
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_versions_of_file_names() {
        assert_eq!(version_of("librocksdb.so"), Some(vec![]));
        assert_eq!(version_of("librocksdb.so.7.8.3"), Some(vec![7, 8, 3]));
        for other in ["librocksdb.so.x", "librocksdb.so-7", "librocksdb.a", "librocksdb.so."] {
            assert_eq!(version_of(other), None, "{other}");
        }
    }

    #[test]
    fn reads_loader_folders_from_configuration() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("conf.d");
        fs::create_dir(&folder).unwrap();
        let main = home.path().join("ld.so.conf");
        fs::write(&main, format!("# a comment\ninclude {}/*.conf\n/last\n", folder.display()))
            .unwrap();
        fs::write(folder.join("b.conf"), "/b\n").unwrap();
        // A file that includes itself ends.
        fs::write(folder.join("a.conf"), format!("/a\ninclude {}/a*.conf\n", folder.display()))
            .unwrap();
        fs::write(folder.join("c.other"), "/c\n").unwrap();
        let all = folders(Some("/first:relative:".into()), &main);
        assert_eq!(all[0], Path::new("/first"));
        let own: Vec<_> = all[1..].iter().take_while(|path| !path.starts_with("/usr")).collect();
        assert!(
            own.iter().all(|path| ["/a", "/b", "/last"].iter().any(|it| path.ends_with(&it[1..])))
        );
        let last = own.last().unwrap();
        assert_eq!(last.as_path(), Path::new("/last"));
    }

    #[test]
    fn orders_libraries_of_a_folder() {
        let home = tempfile::tempdir().unwrap();
        let exe = fs::read("/proc/self/exe").unwrap();
        for name in ["librocksdb.so.9.11", "librocksdb.so.9.9", "librocksdb.so.7.8", "other.so"] {
            fs::write(home.path().join(name), &exe[..64]).unwrap();
        }
        std::os::unix::fs::symlink("librocksdb.so.7.8", home.path().join(NAME)).unwrap();
        fs::write(home.path().join("librocksdb.so.10"), "no library").unwrap();
        let real = home.path().canonicalize().unwrap();
        let libraries = libraries_in([home.path().to_owned(), home.path().to_owned()]);
        let names: Vec<_> =
            libraries.iter().map(|path| path.strip_prefix(&real).unwrap()).collect();
        assert_eq!(
            names,
            ["librocksdb.so.7.8", "librocksdb.so.9.11", "librocksdb.so.9.9"].map(Path::new)
        );
    }
}
