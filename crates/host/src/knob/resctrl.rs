//! The resctrl group that gives kvmeter, its children, or some CPUs a share of a cache or of the
//! memory bandwidth. It is created for a plan and removed after it.

use model::{Unavailable, cpu_list};

use super::error::KnobRefusal;
use super::target::{KnobTarget, PRESENT, TargetPart};
use super::write::KnobWrite;
use crate::facts::topology;
use crate::root::{Root, RootError};
use crate::unavailable::live_only;

const RESCTRL: &str = "/sys/fs/resctrl";
const FILESYSTEMS: &str = "/proc/filesystems";
const THREADS: &str = "/proc/self/task";

/// The folder of a resource's limits, such as `L3` or `MB`.
pub(super) fn info(root: &Root, resource: &str) -> Result<String, Unavailable> {
    let path = format!("{RESCTRL}/info/{resource}");
    if root.exists(&path) {
        return Ok(path);
    }
    if root.exists(&format!("{RESCTRL}/info")) {
        let why = if root.exists(&format!("{path}CODE")) {
            ("code and data have shares of their own (CDP)", "mount resctrl without cdp")
        } else {
            ("this CPU does not share it out", "use a CPU with Intel RDT or AMD QoS")
        };
        return Err(Unavailable::new(format!("{path} does not exist: {}", why.0), why.1));
    }
    let knows = root.text(FILESYSTEMS).is_ok_and(|text| text.contains("resctrl"));
    let remedy = match knows {
        true => "mount -t resctrl resctrl /sys/fs/resctrl, as root",
        false => "use a kernel with CONFIG_X86_CPU_RESCTRL on a CPU with Intel RDT or AMD QoS",
    };
    Err(Unavailable::new(format!("{RESCTRL} is not mounted"), remedy))
}

/// The default group's shares of a resource, by domain.
pub(super) fn shares(root: &Root, resource: &str) -> Result<Vec<(String, String)>, RootError> {
    let path = format!("{RESCTRL}/schemata");
    let value = KnobTarget::line(&path, resource).read(root)?;
    let pair = |part: &str| {
        let (domain, value) = part.split_once('=')?;
        Some((domain.to_owned(), value.to_owned()))
    };
    let pairs: Option<Vec<_>> = value.split(';').map(pair).collect();
    pairs.ok_or_else(|| RootError::malformed(&path, &value, "a share for each domain"))
}

/// The group of this process.
pub(super) fn group() -> String {
    format!("{RESCTRL}/kvmeter-{}", std::process::id())
}

/// The writes that make the group, give it the same share of a resource in each domain, and put
/// these CPUs into it; without CPUs, this process and its future children.
pub(super) fn writes(
    root: &Root,
    resource: &str,
    share: &str,
    cpus: Option<&[u32]>,
) -> Result<Vec<KnobWrite>, KnobRefusal> {
    let group = group();
    let domains: Vec<String> = shares(root, resource)?
        .into_iter()
        .map(|(domain, _)| format!("{domain}={share}"))
        .collect();
    let mut writes = vec![
        KnobWrite::release(KnobTarget::of(group.clone(), TargetPart::Group), PRESENT),
        KnobWrite::release(
            KnobTarget::line(format!("{group}/schemata"), resource),
            domains.join(";"),
        ),
    ];
    let Some(cpus) = cpus else {
        if !root.is_live() {
            return Err(live_only("a list of this process's threads").into());
        }
        for thread in root.numbers(THREADS)? {
            let place = KnobTarget::file(format!("{group}/tasks"));
            writes.push(KnobWrite::release(place, thread.to_string()));
        }
        return Ok(writes);
    };
    let online = topology::online(root)?;
    if let Some(cpu) = cpus.iter().find(|cpu| !online.contains(cpu)) {
        return Err(KnobRefusal::Level(format!("CPU {cpu} is not online")));
    }
    let place = KnobTarget::file(format!("{group}/cpus_list"));
    writes.push(KnobWrite::release(place, cpu_list::show(cpus)));
    Ok(writes)
}
