//! Checks of the disk under the store, and of the limit on open files.

use super::CheckGroup;
use crate::format;
use crate::probe::Context;
use crate::root::Root;
use crate::storage::{free_bytes, stack_of};

/// Enough for a load of a few gigabytes and its compactions.
const LITTLE_SPACE: u64 = 10 << 30;
/// A store holds one descriptor per table file.
const FEW_FILES: u64 = 4096;

const LIMITS: &str = "/proc/self/limits";

pub(super) fn add(root: &Root, context: &Context, group: &mut CheckGroup) {
    if let Some(path) = &context.store_path {
        let why = "a store that runs out of space fails in the middle of a run, and a nearly \
                   full disk is a slow one";
        match free_bytes(root, path) {
            Ok(free) => {
                let found = format!("{} free at {}", format::bytes(free), path.display());
                let remedy = "free some space, or put the store on another disk";
                group.judge("free_space", free >= LITTLE_SPACE, found, why, remedy);
            }
            Err(no) => group.unavailable("free_space", no.reason, why, &no.remedy),
        }
        let why = "without a device there is no device I/O and no write amplification to report";
        match stack_of(root, path) {
            Ok(stack) => group.ok("device", stack.description, why),
            Err(reason) => group.unavailable(
                "device",
                reason,
                why,
                "put the store on a file system of a disk that this machine can see",
            ),
        }
    }
    let why = "a store that may not keep its files open opens them again for each read";
    let limit = root.text(LIMITS).map_err(|error| error.to_string()).and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("Max open files"));
        let soft = line.and_then(|line| line.split_whitespace().next());
        soft.map(str::to_owned).ok_or_else(|| format!("{LIMITS} has no Max open files"))
    });
    match limit {
        Ok(soft) => {
            let enough = soft.parse::<u64>().map_or(soft == "unlimited", |n| n >= FEW_FILES);
            group.judge("open_files", enough, soft, why, "ulimit -n 65536");
        }
        Err(reason) => group.unavailable("open_files", reason, why, "mount /proc"),
    }
}
