use super::{Facts, arm};
use crate::parse::field;
use crate::root::Root;

pub(crate) const CPUINFO: &str = "/proc/cpuinfo";
const ARCH: &str = "/proc/sys/kernel/arch";

pub(super) fn add(root: &Root, facts: &mut Facts) {
    facts.add("cpu.model", CPUINFO, model(root));
    let cpuinfo = root.text(CPUINFO);
    let vendor = cpuinfo.as_ref().map_err(ToString::to_string).and_then(|text| {
        field(text, "vendor_id")
            .map(str::to_owned)
            .or_else(|| arm::vendor(text))
            .ok_or_else(|| no("vendor_id or CPU implementer"))
    });
    facts.add("cpu.vendor", CPUINFO, vendor);
    match root.value(ARCH) {
        Ok(arch) => facts.known("cpu.architecture", ARCH, arch),
        // Older kernels lack the file; the program itself could not run otherwise.
        Err(_) if root.is_live() => {
            facts.known("cpu.architecture", "the program's own target", std::env::consts::ARCH);
        }
        Err(error) => facts.unknown("cpu.architecture", ARCH, error),
    }
    let microcode = cpuinfo.map_err(|error| error.to_string()).and_then(|text| {
        field(&text, "microcode").map(str::to_owned).ok_or_else(|| no("microcode"))
    });
    facts.add("cpu.microcode", CPUINFO, microcode);
}

/// The CPU's name: from `cpuinfo`, or decoded from its numbers.
pub(crate) fn model(root: &Root) -> Result<String, String> {
    let text = root.text(CPUINFO).map_err(|error| error.to_string())?;
    field(&text, "model name")
        .map(|name| name.split_whitespace().collect::<Vec<_>>().join(" "))
        .or_else(|| arm::model(&text))
        .ok_or_else(|| no("model name or CPU part"))
}

/// The words of the `flags` (x86) or `Features` (Arm) line of the first CPU.
pub(crate) fn flags(root: &Root) -> Result<Vec<String>, String> {
    let text = root.text(CPUINFO).map_err(|error| error.to_string())?;
    let line = field(&text, "flags").or_else(|| field(&text, "Features"));
    let line = line.ok_or_else(|| no("flags or Features"))?;
    Ok(line.split_whitespace().map(str::to_owned).collect())
}

/// Whether `cpuinfo` is that of an Arm CPU, which has no hypervisor flag.
pub(crate) fn is_arm(root: &Root) -> bool {
    root.text(CPUINFO).is_ok_and(|text| field(&text, "CPU implementer").is_some())
}

fn no(key: &str) -> String {
    format!("{CPUINFO} has no {key}")
}
