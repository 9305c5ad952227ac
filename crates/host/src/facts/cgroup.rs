//! Limits of control groups on this process: the tightest of its own group and
//! every group above, in both versions of the interface.

use super::Facts;
use crate::format;
use crate::root::Root;
use crate::storage::mount::{self, Mount};

const OWN: &str = "/proc/self/cgroup";
/// Version 1 writes the largest multiple of a page for "no limit".
const NO_LIMIT: u64 = 1 << 60;

pub(super) fn add(root: &Root, facts: &mut Facts) {
    let cpu = cpu_limit(root).map(|limit| match limit {
        Some((cpus, file)) => format!("{} CPUs ({file})", format::short(cpus)),
        None => "none".to_owned(),
    });
    facts.add("cgroup.cpu_limit", OWN, cpu);
    let memory = memory_limit(root).map(|limit| match limit {
        Some((bytes, file)) => format!("{} ({file})", format::bytes(bytes)),
        None => "none".to_owned(),
    });
    facts.add("cgroup.memory_limit", OWN, memory);
}

/// The CPU quota of this process in CPUs, with its file.
pub(crate) fn cpu_limit(root: &Root) -> Result<Option<(f64, String)>, String> {
    let limits = groups(root, "cpu", None)?.into_iter().filter_map(|group| group.quota(root));
    Ok(limits.min_by(|a, b| a.0.total_cmp(&b.0)))
}

/// Throttling by the CPU quota of one group so far.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Throttling {
    /// `cpu.stat` of the group.
    pub(crate) file: String,
    /// Periods that passed while the group had something to run, and those in which its quota ran
    /// out. Both 0 in a group that never had a quota.
    pub(crate) periods: u64,
    pub(crate) throttled: u64,
    /// Time throttled, summed over the CPUs.
    pub(crate) time_s: f64,
    /// The quota in CPUs, with its file.
    pub(crate) quota: Option<(f64, String)>,
}

/// Throttling of this process, or another one, by group from the top down to its own. A quota
/// above the top that a container sees is not included.
pub(crate) fn cpu_throttling(root: &Root, process: Option<u32>) -> Result<Vec<Throttling>, String> {
    let groups = groups(root, "cpu", process)?;
    let throttling = |group: &Cgroup| {
        let file = format!("{}/cpu.stat", group.folder);
        let text = root.text(&file).ok()?;
        let number = |name: &str| -> Option<u64> {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            line?.trim().parse().ok()
        };
        let time_s = match group.version {
            CgroupVersion::Two => number("throttled_usec").map(|time| time as f64 / 1e6),
            CgroupVersion::One => number("throttled_time").map(|time| time as f64 / 1e9),
        };
        Some(Throttling {
            periods: number("nr_periods").unwrap_or(0),
            throttled: number("nr_throttled").unwrap_or(0),
            time_s: time_s.unwrap_or(0.0),
            quota: group.quota(root),
            file,
        })
    };
    let throttlings: Vec<Throttling> = groups.iter().filter_map(throttling).collect();
    match (throttlings.is_empty(), groups.first()) {
        (true, Some(group)) => Err(format!("{}/cpu.stat cannot be read", group.folder)),
        _ => Ok(throttlings),
    }
}

/// The memory limit of this process in bytes, with its file.
pub(crate) fn memory_limit(root: &Root) -> Result<Option<(u64, String)>, String> {
    let limits = groups(root, "memory", None)?.into_iter().filter_map(|group| {
        let name = match group.version {
            CgroupVersion::Two => "memory.max",
            CgroupVersion::One => "memory.limit_in_bytes",
        };
        let file = format!("{}/{name}", group.folder);
        let bytes = root.number::<u64>(&file).ok().filter(|bytes| *bytes < NO_LIMIT)?;
        Some((bytes, file))
    });
    Ok(limits.min_by_key(|(bytes, _)| *bytes))
}

/// The largest use of a group of this process as a share of its limit, without reclaimable page
/// cache; none without a limit.
pub(crate) fn memory_use(root: &Root) -> Option<f64> {
    let shares = groups(root, "memory", None).ok()?.into_iter().filter_map(|group| {
        let (limit, used, inactive) = match group.version {
            CgroupVersion::Two => ("memory.max", "memory.current", "inactive_file"),
            CgroupVersion::One => {
                ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
            }
        };
        let number = |name: &str| root.number::<u64>(&format!("{}/{name}", group.folder)).ok();
        let limit = number(limit).filter(|bytes| *bytes < NO_LIMIT && *bytes > 0)?;
        let text = root.text(&format!("{}/memory.stat", group.folder)).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix(inactive)?.strip_prefix(' '));
        let inactive = line.and_then(|bytes| bytes.trim().parse::<u64>().ok()).unwrap_or(0);
        Some(number(used)?.saturating_sub(inactive) as f64 / limit as f64)
    });
    shares.max_by(f64::total_cmp)
}

enum CgroupVersion {
    One,
    Two,
}

struct Cgroup {
    version: CgroupVersion,
    folder: String,
}

impl Cgroup {
    /// The group's CPU quota in CPUs, with its file.
    fn quota(&self, root: &Root) -> Option<(f64, String)> {
        let (quota, period, file) = match self.version {
            CgroupVersion::Two => {
                let file = format!("{}/cpu.max", self.folder);
                let text = root.value(&file).ok()?;
                let (quota, period) = text.split_once(' ')?;
                // `max` is no number, so no limit.
                (quota.parse::<f64>().ok()?, period.trim().parse::<f64>().ok()?, file)
            }
            CgroupVersion::One => {
                let file = format!("{}/cpu.cfs_quota_us", self.folder);
                let quota = root.number::<f64>(&file).ok().filter(|quota| *quota > 0.0)?;
                (quota, root.number(&format!("{}/cpu.cfs_period_us", self.folder)).ok()?, file)
            }
        };
        (period > 0.0).then(|| (quota / period, file))
    }
}

/// The groups of a controller that hold this process, or another one, from the top down.
fn groups(root: &Root, controller: &str, process: Option<u32>) -> Result<Vec<Cgroup>, String> {
    let file = process.map_or(OWN.to_owned(), |process| format!("/proc/{process}/cgroup"));
    let own = root.text(&file).map_err(|error| error.to_string())?;
    let mounts = mount::mounts(root).map_err(|error| error.to_string())?;
    let mut groups = Vec::new();
    for line in own.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next())
        else {
            continue;
        };
        let two = controllers.is_empty();
        if !two && !controllers.split(',').any(|name| name == controller) {
            continue;
        }
        let mounted = mounts.iter().find(|mount| match two {
            true => mount.kind == "cgroup2",
            false => {
                mount.kind == "cgroup"
                    && mount.super_options.split(',').any(|name| name == controller)
            }
        });
        let Some(mounted) = mounted else { continue };
        if path.split('/').any(|name| name == "..") {
            // Outside of this container's view.
            continue;
        }
        for folder in folders(mounted, path) {
            let version = if two { CgroupVersion::Two } else { CgroupVersion::One };
            groups.push(Cgroup { version, folder });
        }
    }
    if groups.is_empty() {
        return Err(format!("no control group with the {controller} controller is mounted"));
    }
    Ok(groups)
}

/// The folder of a group and those above it, as far as they are mounted.
fn folders(mount: &Mount, path: &str) -> Vec<String> {
    // A container may see its own group as the mount's root.
    let below = match mount.root.as_str() {
        "/" => path,
        top => path.strip_prefix(top).unwrap_or(""),
    };
    let mut folders = vec![mount.point.clone()];
    for name in below.split('/').filter(|name| !name.is_empty() && *name != "..") {
        let last = folders.last().map_or("", String::as_str);
        folders.push(format!("{}/{name}", last.trim_end_matches('/')));
    }
    folders
}
