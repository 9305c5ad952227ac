use super::Facts;
use crate::root::Root;
use crate::storage::disk::{self, BLOCK};

/// Devices backed by memory or files; they are listed for a store that uses
/// them.
const NOT_DISKS: &[&str] = &["loop", "ram", "zram"];

pub(super) fn add(root: &Root, facts: &mut Facts) {
    let names = match root.list(BLOCK) {
        Ok(names) => names,
        Err(error) => return facts.unknown("block", BLOCK, error),
    };
    let mut none = true;
    for name in names {
        let skipped = NOT_DISKS.iter().any(|prefix| name.starts_with(prefix));
        // A drive without a medium has no size.
        if skipped || disk::size(root, &name).is_ok_and(|bytes| bytes == 0) {
            continue;
        }
        none = false;
        let parts: Vec<String> = disk::attributes(root, &name)
            .into_iter()
            .filter_map(|attribute| {
                let value = attribute.value.ok()?;
                Some(format!("{} {value}", attribute.name.replace('_', " ")))
            })
            .collect();
        let source = format!("{BLOCK}/{name}");
        if parts.is_empty() {
            facts.unknown(format!("block.{name}"), source, "its folder has no readable file");
        } else {
            facts.known(format!("block.{name}"), source, parts.join(", "));
        }
    }
    if none {
        facts.unknown("block", BLOCK, "no disk is listed there");
    }
}
