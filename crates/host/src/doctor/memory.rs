//! Checks of huge pages, swap and NUMA nodes.

use super::CheckGroup;
use crate::facts::{memory, numa};
use crate::format;
use crate::root::Root;

pub(super) fn add(root: &Root, group: &mut CheckGroup) {
    let why = "with `always`, the kernel gathers huge pages while the store runs: this causes \
               pauses, and takes more memory than was allocated";
    match root.selected(memory::THP) {
        Ok(found) => {
            let remedy = format!("echo madvise > {}", memory::THP);
            group.judge("thp", found != "always", found, why, &remedy);
        }
        Err(error) => {
            group.unavailable("thp", error, why, "the kernel is built without huge pages");
        }
    }
    let why = "memory that comes back from swap takes as long as a cold read";
    match memory::swap(root) {
        Ok(swap) => {
            let found = match swap.total {
                0 => "no swap".to_owned(),
                total => {
                    format!("{} of {} used", format::bytes(swap.used), format::bytes(total))
                }
            };
            group.judge("swap", swap.used == 0, found, why, "swapoff --all, then swapon --all");
        }
        Err(error) => group.unavailable("swap", error, why, "mount /proc"),
    }
    free_page_reporting(root, group);
    nodes(root, group);
}

fn free_page_reporting(root: &Root, group: &mut CheckGroup) {
    let why = "the next use of a page that went back to the host costs a fault there (16 µs for 4 \
               KiB were measured): a store that fills the page cache pays CPU time for pages that \
               another one freed";
    match memory::free_page_reporting(root) {
        Ok(None) => group.ok("free_pages", "they stay: no virtio balloon gives them back", why),
        Ok(Some(device)) => group.note(
            "free_pages",
            format!("they go back to the host ({device})"),
            why,
            &format!(
                "alternate stores between repeats, compare cpu.system, and distrust the first \
                 load; or keep the pages: echo {device} > \
                 /sys/bus/virtio/drivers/virtio_balloon/unbind"
            ),
        ),
        Err(error) => group.unavailable("free_pages", error, why, "mount /sys"),
    }
}

fn nodes(root: &Root, group: &mut CheckGroup) {
    let why = "memory of another node is slower, so a run depends on where the kernel put its \
               pages and threads";
    let nodes = match numa::nodes(root) {
        Ok(nodes) => nodes,
        Err(error) => {
            let remedy = "the kernel shows no nodes: one node is likely";
            return group.unavailable("numa", error, why, remedy);
        }
    };
    if nodes.len() == 1 {
        return group.ok("numa", "1 node", why);
    }
    let most = nodes.iter().map(|node| node.memory).max().unwrap_or(0);
    let least = nodes.iter().map(|node| node.memory).min().unwrap_or(0);
    let mut found = format!("{} nodes", nodes.len());
    // A tenth is what firmware and the first node's kernel take.
    if least < most - most / 10 {
        found +=
            &format!(" of unequal memory ({} to {})", format::bytes(least), format::bytes(most));
    }
    if nodes.iter().any(|node| node.cpus == 0) {
        found += ", one of them without CPUs";
    }
    group.note("numa", found, why, "run on one node: numactl --cpunodebind=0 --membind=0");
}
