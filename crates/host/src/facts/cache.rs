use std::collections::BTreeMap;

use model::cpu_list;

use super::{Facts, tally};
use crate::format;
use crate::parse::cache_size;
use crate::root::{Root, RootError};

const CPUS: &str = "/sys/devices/system/cpu";
const SOURCE: &str = "/sys/devices/system/cpu/cpu*/cache";

/// One cache, as the kernel or the hypervisor describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuCache {
    /// Bytes.
    pub size: Option<u64>,
    pub ways: Option<u32>,
    /// Bytes of a line.
    pub line: Option<u32>,
    /// The hardware threads that share it.
    pub shared: Vec<u32>,
}

impl CpuCache {
    fn describe(&self) -> String {
        let mut parts = vec![self.size.map_or("size unknown".to_owned(), format::bytes)];
        // Zero is what the kernel writes for "not known".
        if let Some(ways) = self.ways.filter(|ways| *ways > 0) {
            parts.push(format!("{ways} ways"));
        }
        if let Some(line) = self.line.filter(|line| *line > 0) {
            parts.push(format!("{line} B lines"));
        }
        parts.push(match self.shared.len() {
            0 => "sharing unknown".to_owned(),
            1 => "private to a thread".to_owned(),
            n => format!("shared by {n} threads"),
        });
        parts.join(", ")
    }
}

pub(super) fn add(root: &Root, facts: &mut Facts) {
    match caches(root) {
        Ok(levels) if levels.is_empty() => {
            facts.unknown("cache", SOURCE, format!("no CPU has a readable folder {SOURCE}"));
        }
        Ok(levels) => {
            for (name, caches) in levels {
                let count = format::count(caches.len(), "cache");
                let text = tally(caches.iter().map(CpuCache::describe));
                facts.known(format!("cache.{name}"), SOURCE, format!("{text}; {count} in all"));
            }
        }
        Err(error) => facts.unknown("cache", SOURCE, error),
    }
}

/// The caches of each level (`l1d`, `l1i`, `l2`, `l3`), each cache once, as the kernel or the
/// hypervisor describes them.
///
/// # Errors
/// The CPUs cannot be listed. A cache that no file describes is left out.
pub fn caches(root: &Root) -> Result<BTreeMap<String, Vec<CpuCache>>, RootError> {
    let mut levels: BTreeMap<String, Vec<CpuCache>> = BTreeMap::new();
    for cpu in super::topology::online(root)? {
        let folder = format!("{CPUS}/cpu{cpu}/cache");
        for index in root.numbered(&folder, "index").unwrap_or_default() {
            let file = |name: &str| format!("{folder}/index{index}/{name}");
            let Ok(level) = root.number::<u32>(&file("level")) else { continue };
            let kind = match root.value(&file("type")).as_deref() {
                Ok("Data") => "d",
                Ok("Instruction") => "i",
                _ => "",
            };
            let shared = root.value(&file("shared_cpu_list")).ok();
            let cache = CpuCache {
                size: root.value(&file("size")).ok().and_then(|text| cache_size(&text)),
                ways: root.number(&file("ways_of_associativity")).ok(),
                line: root.number(&file("coherency_line_size")).ok(),
                shared: shared.and_then(|text| cpu_list::parse(&text)).unwrap_or_default(),
            };
            let known = levels.entry(format!("l{level}{kind}")).or_default();
            // Each of the threads that share a cache lists it.
            if cache.shared.first().is_none_or(|first| *first == cpu) {
                known.push(cache);
            }
        }
    }
    levels.retain(|_, caches| !caches.is_empty());
    Ok(levels)
}
