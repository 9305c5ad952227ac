//! Numbers that follow the machine: `"8 per cpu"`, `"64MiB per core"`, `"350k per GiB"`.

use std::fmt;

use host::Root;
use model::{Bytes, Count};

/// Tables whose values decide how a run is made; a level or a figure keeps what is written.
const TABLES: &[&str] = &["store", "server", "data", "load", "measure", "workloads", "beside"];

/// What a number can be given for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    /// A hardware thread that this process may use.
    Cpu,
    /// A physical core.
    Core,
    /// 2^30 bytes of the memory that the kernel manages.
    Gib,
}

impl Unit {
    const ALL: [(&'static str, Unit); 3] =
        [("cpu", Unit::Cpu), ("core", Unit::Core), ("GiB", Unit::Gib)];

    fn named(text: &str) -> Option<Unit> {
        Unit::ALL.iter().find(|(name, _)| name.eq_ignore_ascii_case(text)).map(|(_, unit)| *unit)
    }
}

/// What one such text says.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Sized {
    amount: f64,
    /// The amount is of bytes and the result is written as a size.
    bytes: bool,
    unit: Unit,
}

impl Sized {
    /// Nothing where the text is none of these; else what is wrong with it.
    fn read(text: &str) -> Option<Result<Sized, String>> {
        let (amount, unit) = text.split_once(" per ")?;
        let amount = amount.trim();
        let starts_with_a_digit = amount.starts_with(|c: char| c.is_ascii_digit());
        let unit = unit.trim();
        if !starts_with_a_digit || unit.contains(char::is_whitespace) {
            return None;
        }
        Some(Sized::of(amount, unit).ok_or_else(|| {
            format!(
                "`{text}` is no number for each part of the machine; write it as `2 per cpu`, \
                 `64MiB per core` or `350k per GiB`"
            )
        }))
    }

    fn of(amount: &str, unit: &str) -> Option<Sized> {
        let unit = Unit::named(unit)?;
        let bytes = amount.ends_with(['b', 'B']);
        let amount = match (bytes, amount.parse::<f64>()) {
            (true, _) => amount.parse::<Bytes>().ok()?.0 as f64,
            (false, Ok(plain)) => plain,
            (false, Err(_)) => amount.parse::<Count>().ok()?.0 as f64,
        };
        (amount.is_finite() && amount > 0.0).then_some(Sized { amount, bytes, unit })
    }

    /// The number on a machine of this size: rounded down, and one at least.
    fn on(self, size: &Size) -> toml_edit::Value {
        let parts = match self.unit {
            Unit::Cpu => size.cpus as f64,
            Unit::Core => size.cores as f64,
            Unit::Gib => size.memory as f64 / 1_073_741_824.0,
        };
        let number = (self.amount * parts).floor().max(1.0);
        match self.bytes {
            true => Bytes(number as u64).to_string().into(),
            false => (number as i64).into(),
        }
    }
}

/// What of the machine numbers can follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Size {
    cpus: usize,
    cores: usize,
    /// Bytes that the kernel manages.
    memory: u64,
}

impl Size {
    /// Under a knob that leaves each core one hardware thread, those are the CPUs.
    fn of(root: &Root, without_smt: bool) -> Result<Size, String> {
        let order = host::cpus(root).map_err(|error| error.to_string())?;
        let memory = host::memory_total_bytes(root).map_err(|error| error.to_string())?;
        let cpus = if without_smt { order.cores } else { order.cpus.len() };
        Ok(Size { cpus, cores: order.cores, memory })
    }
}

/// A value that cannot be resolved: where it stands, as a dotted path, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unsized {
    pub(crate) key: String,
    pub(crate) why: String,
}

impl fmt::Display for Unsized {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.why)
    }
}

/// Puts the machine's numbers in place of such texts in the tables of a study that say how its
/// runs are made. Whether anything was replaced.
///
/// # Errors
/// A text that begins like one and is none; a machine whose CPUs or memory cannot be read.
pub(crate) fn resolve(study: &mut toml_edit::Table, root: &Root) -> Result<bool, Unsized> {
    let without_smt = study
        .get("knobs")
        .and_then(|knobs| knobs.get("smt"))
        .is_some_and(|smt| smt.as_str() == Some("off") || smt.as_bool() == Some(false));
    let mut found = Found { root, without_smt, size: None, replaced: false };
    for name in TABLES {
        if let Some(item) = study.get_mut(name) {
            found.item(name, item)?;
        }
    }
    Ok(found.replaced)
}

struct Found<'a> {
    root: &'a Root,
    without_smt: bool,
    /// Read when the first text asks for it: most studies do not.
    size: Option<Size>,
    replaced: bool,
}

impl Found<'_> {
    fn item(&mut self, key: &str, item: &mut toml_edit::Item) -> Result<(), Unsized> {
        if let Some(table) = item.as_table_like_mut() {
            for (name, item) in table.iter_mut() {
                self.item(&format!("{key}.{}", name.get()), item)?;
            }
            return Ok(());
        }
        let Some(sized) = item.as_str().and_then(Sized::read) else { return Ok(()) };
        let unresolved = |why: String| Unsized { key: key.to_owned(), why };
        let sized = sized.map_err(unresolved)?;
        let size = match self.size {
            Some(size) => size,
            None => Size::of(self.root, self.without_smt).map_err(|why| {
                unresolved(format!("the size of this machine is not known ({why}); write a number"))
            })?,
        };
        self.size = Some(size);
        *item = toml_edit::Item::Value(sized.on(&size));
        self.replaced = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<Result<Sized, String>> {
        Sized::read(text)
    }

    #[test]
    fn numbers_follow_cpus_cores_and_memory() {
        let size = Size { cpus: 8, cores: 4, memory: 15 << 29 };
        let on = |text: &str| read(text).unwrap().unwrap().on(&size).to_string();
        assert_eq!(on("2 per cpu"), "16");
        assert_eq!(on("0.5 per core"), "2");
        assert_eq!(on("350k per GiB"), "2625000");
        assert_eq!(on("64MiB per cpu"), "\"512MiB\"");
        // A half of one CPU is one all the same: a store has one database at least.
        let one = Size { cpus: 1, cores: 1, memory: 1 << 30 };
        assert_eq!(read("0.5 per cpu").unwrap().unwrap().on(&one).to_string(), "1");
    }

    #[test]
    fn other_texts_are_left_alone() {
        for text in ["200k", "records per cpu", "p99<1ms", "1 per cpu and more", "one per cpu"] {
            assert_eq!(read(text), None, "{text}");
        }
        for text in ["2 per socket", "0 per cpu", "3x per core"] {
            assert!(read(text).unwrap().unwrap_err().contains("2 per cpu"), "{text}");
        }
    }

    /// Two sockets of two cores with two threads each, and 3 GiB.
    fn machine() -> (tempfile::TempDir, Root) {
        let folder = tempfile::tempdir().unwrap();
        let file = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        file("proc/meminfo", "MemTotal:        3145728 kB\n");
        file("sys/devices/system/cpu/online", "0-7\n");
        for cpu in 0..8 {
            let topology = format!("sys/devices/system/cpu/cpu{cpu}/topology");
            file(&format!("{topology}/physical_package_id"), &format!("{}\n", cpu % 4 / 2));
            let siblings = format!("{},{}\n", cpu % 4, cpu % 4 + 4);
            file(&format!("{topology}/thread_siblings_list"), &siblings);
        }
        let root = Root::at(folder.path());
        (folder, root)
    }

    fn resolved(text: &str, root: &Root) -> Result<String, String> {
        let mut study: toml_edit::DocumentMut = text.parse().unwrap();
        resolve(study.as_table_mut(), root).map_err(|error| error.to_string())?;
        Ok(study.to_string())
    }

    #[test]
    fn the_tables_of_a_run_are_resolved_and_no_other() {
        let (_folder, root) = machine();
        let text = "name = \"2 per cpu\"\n[store.rocksdb]\ndatabases = \"0.5 per cpu\"\n\
                    [data]\nrecords = \"350k per GiB\"\n[measure]\nthreads = \"1 per cpu\"\n\
                    [factors.threads]\nlevels = [\"1 per cpu\"]\n";
        let on = resolved(text, &root).unwrap();
        assert!(on.contains("databases = 4\n") && on.contains("records = 1050000\n"), "{on}");
        assert!(on.contains("threads = 8\n") && on.contains("levels = [\"1 per cpu\"]"), "{on}");
        assert!(on.starts_with("name = \"2 per cpu\"\n"), "{on}");
        // Without SMT there are half as many.
        let off = resolved(&format!("{text}[knobs]\nsmt = \"off\"\n"), &root).unwrap();
        assert!(off.contains("databases = 2\n") && off.contains("threads = 4\n"), "{off}");
    }

    #[test]
    fn what_cannot_be_resolved_names_its_key() {
        let (folder, root) = machine();
        let error = resolved("[measure]\nthreads = \"2 per socket\"\n", &root).unwrap_err();
        assert!(error.starts_with("measure.threads: `2 per socket`"), "{error}");
        std::fs::remove_file(folder.path().join("proc/meminfo")).unwrap();
        let error = resolved("[data]\nrecords = \"1k per GiB\"\n", &root).unwrap_err();
        assert!(error.starts_with("data.records: the size of this machine"), "{error}");
    }
}
