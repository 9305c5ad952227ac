//! Numbers that follow the machine: `"8 per cpu"`, `"64MiB per core"`, `"350k per GiB"`.

use std::ops::Range;

use host::Root;
use model::{Bytes, Count};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Tables whose values decide how a run is made; a level or a figure keeps what is written.
const TABLES: &[&str] =
    &["store", "server", "data", "load", "measure", "workloads", "beside", "micro", "simulate"];

/// The part of the machine that a number scales with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SizeUnit {
    /// A hardware thread that this process may use, of the machine as it was found: a cell without
    /// SMT differs in nothing else.
    Cpu,
    /// The same, but under `knobs.smt = "off"` those that are left.
    OnlineCpu,
    /// A physical core.
    Core,
    /// 2^30 bytes of the memory that the kernel manages.
    Gib,
}

impl SizeUnit {
    const ALL: [(&'static str, SizeUnit); 4] = [
        ("cpu", SizeUnit::Cpu),
        ("online-cpu", SizeUnit::OnlineCpu),
        ("core", SizeUnit::Core),
        ("GiB", SizeUnit::Gib),
    ];

    fn named(text: &str) -> Option<SizeUnit> {
        SizeUnit::ALL
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(text))
            .map(|(_, unit)| *unit)
    }
}

/// A parsed machine-sized number.
#[derive(Debug, Clone, Copy, PartialEq)]
struct MachineSized {
    amount: f64,
    /// The amount is of bytes and the result is written as a size.
    bytes: bool,
    unit: SizeUnit,
}

impl MachineSized {
    /// None where the text is no such number; an error where it is malformed.
    fn read(text: &str) -> Option<Result<MachineSized, String>> {
        let (amount, unit) = text.split_once(" per ")?;
        let amount = amount.trim();
        let starts_with_a_digit = amount.starts_with(|c: char| c.is_ascii_digit());
        let unit = unit.trim();
        if !starts_with_a_digit || unit.contains(char::is_whitespace) {
            return None;
        }
        Some(MachineSized::of(amount, unit).ok_or_else(|| {
            format!(
                "`{text}` is not a number for each part of the machine; write it as `2 per cpu`, \
                 `64MiB per core` or `350k per GiB`"
            )
        }))
    }

    fn of(amount: &str, unit: &str) -> Option<MachineSized> {
        let unit = SizeUnit::named(unit)?;
        let bytes = amount.ends_with(['b', 'B']);
        let amount = match (bytes, amount.parse::<f64>()) {
            (true, _) => amount.parse::<Bytes>().ok()?.0 as f64,
            (false, Ok(plain)) => plain,
            (false, Err(_)) => amount.parse::<Count>().ok()?.0 as f64,
        };
        (amount.is_finite() && amount > 0.0).then_some(MachineSized { amount, bytes, unit })
    }

    /// The number on a machine of this size, as TOML: rounded down, and one at least.
    fn on(self, size: &MachineSize) -> String {
        let parts = match self.unit {
            SizeUnit::Cpu => size.cpus as f64,
            SizeUnit::OnlineCpu => size.online_cpus as f64,
            SizeUnit::Core => size.cores as f64,
            SizeUnit::Gib => size.memory as f64 / 1_073_741_824.0,
        };
        let number = (self.amount * parts).floor().max(1.0) as u64;
        match self.bytes {
            true => format!("\"{}\"", Bytes(number)),
            false => number.to_string(),
        }
    }
}

/// The size of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct MachineSize {
    cpus: usize,
    online_cpus: usize,
    cores: usize,
    /// Bytes that the kernel manages.
    memory: u64,
}

impl MachineSize {
    /// Under a knob that leaves each core one hardware thread, those are the CPUs.
    fn of(root: &Root, without_smt: bool) -> Result<MachineSize, String> {
        let order = host::cpus(root).map_err(|error| error.to_string())?;
        let memory = host::memory_total_bytes(root).map_err(|error| error.to_string())?;
        let cpus = order.cpus.len();
        let online_cpus = if without_smt { order.cores } else { cpus };
        Ok(MachineSize { cpus, online_cpus, cores: order.cores, memory })
    }
}

/// The study with the machine's numbers in place of such texts, in the tables that say how its
/// runs are made; nothing where there are none. What is replaced keeps its length, so that every
/// place in the one text is that place in the other.
///
/// # Errors
/// The place of a text that begins like one and is none, or that stands for a machine whose CPUs
/// or memory cannot be read, and what is wrong.
pub(crate) fn resolve(text: &str, root: &Root) -> Result<Option<String>, (Range<usize>, String)> {
    // Invalid TOML is reported when the study is parsed.
    let Some(study) = Some(text).filter(|text| text.contains(" per ")).map(DeTable::parse) else {
        return Ok(None);
    };
    let Ok(study) = study else { return Ok(None) };
    let mut numbers = Vec::new();
    for (name, value) in study.get_ref() {
        if TABLES.contains(&name.get_ref().as_ref()) {
            collect(value, &mut numbers)?;
        }
    }
    let Some((first, _)) = numbers.first() else { return Ok(None) };
    let size = MachineSize::of(root, is_without_smt(study.get_ref())).map_err(|why| {
        (first.clone(), format!("the size of this machine is not known ({why}); write a number"))
    })?;
    numbers.sort_by_key(|(place, _)| std::cmp::Reverse(place.start));
    let mut resolved = text.to_owned();
    for (place, sized) in numbers {
        let number = format!("{:<1$}", sized.on(&size), place.len());
        resolved.replace_range(place, &number);
    }
    Ok(Some(resolved))
}

/// Under this level of the knob each core has one hardware thread.
fn is_without_smt(study: &DeTable<'_>) -> bool {
    let level = study.get("knobs").and_then(|knobs| knobs.get_ref().get("smt"));
    level.is_some_and(|level| match level.get_ref() {
        DeValue::String(text) => text == "off",
        DeValue::Boolean(on) => !on,
        _ => false,
    })
}

/// Every such text in a value, with its place.
fn collect(
    value: &Spanned<DeValue<'_>>,
    numbers: &mut Vec<(Range<usize>, MachineSized)>,
) -> Result<(), (Range<usize>, String)> {
    match value.get_ref() {
        DeValue::Table(table) => table.values().try_for_each(|value| collect(value, numbers)),
        DeValue::String(text) => {
            let Some(sized) = MachineSized::read(text) else { return Ok(()) };
            numbers.push((value.span(), sized.map_err(|words| (value.span(), words))?));
            Ok(())
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<Result<MachineSized, String>> {
        MachineSized::read(text)
    }

    #[test]
    fn numbers_follow_cpus_cores_and_memory() {
        let size = MachineSize { cpus: 8, online_cpus: 8, cores: 4, memory: 15 << 29 };
        let on = |text: &str| read(text).unwrap().unwrap().on(&size);
        assert_eq!(on("2 per cpu"), "16");
        assert_eq!(on("0.5 per core"), "2");
        assert_eq!(on("350k per GiB"), "2625000");
        assert_eq!(on("64MiB per cpu"), "\"512MiB\"");
        // A half of one CPU is one all the same: a store has one database at least.
        let one = MachineSize { cpus: 1, online_cpus: 1, cores: 1, memory: 1 << 30 };
        assert_eq!(read("0.5 per cpu").unwrap().unwrap().on(&one), "1");
    }

    #[test]
    fn other_texts_are_not_changed() {
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

    fn resolved(text: &str, root: &Root) -> String {
        resolve(text, root).unwrap().unwrap()
    }

    #[test]
    fn only_tables_of_a_run_are_resolved() {
        let (_folder, root) = machine();
        let text = "name = \"2 per cpu\"\n[store.rocksdb]\ndatabases = \"0.5 per cpu\"\n\
                    [data]\nrecords = \"350k per GiB\" # of memory\n[measure]\n\
                    threads = \"1 per cpu\"\n[factors.threads]\nlevels = [\"1 per cpu\"]\n";
        let on = resolved(text, &root);
        assert!(on.contains("databases = 4 ") && on.contains("records = 1050000 "), "{on}");
        assert!(on.contains("threads = 8 ") && on.contains("levels = [\"1 per cpu\"]"), "{on}");
        assert!(on.starts_with("name = \"2 per cpu\"\n"), "{on}");
        // Places stay where they are.
        assert_eq!((on.find("# of memory"), on.len()), (text.find("# of memory"), text.len()));
        // Without SMT nothing else differs but what asks for the CPUs that are left.
        let text_of_online = text.replace("1 per cpu", "1 per online-cpu");
        let off = resolved(&format!("{text_of_online}[knobs]\nsmt = \"off\"\n"), &root);
        assert!(off.contains("databases = 4 ") && off.contains("threads = 4 "), "{off}");
        let on = resolved(&text_of_online, &root);
        assert!(on.contains("threads = 8 "), "{on}");
        // What sizes nothing, or is no TOML, is left to others.
        for text in ["question = \"per cpu or per core?\"\n", "threads = \"1 per cpu"] {
            assert_eq!(resolve(text, &root), Ok(None));
        }
    }

    #[test]
    fn unresolvable_numbers_are_shown_at_their_place() {
        let (folder, root) = machine();
        let text = "[measure]\nthreads = \"2 per socket\"\n";
        let (place, words) = resolve(text, &root).unwrap_err();
        assert_eq!(&text[place], "\"2 per socket\"");
        assert!(words.starts_with("`2 per socket`"), "{words}");
        std::fs::remove_file(folder.path().join("proc/meminfo")).unwrap();
        let (_, words) = resolve("[data]\nrecords = \"1k per GiB\"\n", &root).unwrap_err();
        assert!(words.starts_with("the size of this machine"), "{words}");
    }
}
