use super::{Facts, clock, cpu};
use crate::root::Root;

const DMI: &str = "/sys/class/dmi/id";
const HYPERVISOR_TYPE: &str = "/sys/hypervisor/type";
const DEVICE_TREE: &str = "/proc/device-tree/hypervisor/compatible";

/// Firmware strings that only a virtual machine has.
const VIRTUAL_PRODUCTS: &[&str] = &[
    "kvm",
    "qemu",
    "vmware",
    "virtualbox",
    "bochs",
    "xen",
    "virtual machine",
    "openstack",
    "google compute engine",
    "bhyve",
    "parallels",
    "firecracker",
];

/// Whether the machine is virtual, with the evidence.
pub(crate) enum Virtualisation {
    Yes(String),
    NoSign(String),
    Unknown(String),
}

pub(crate) fn hypervisor(root: &Root) -> Virtualisation {
    let mut signs = Vec::new();
    let flags = cpu::flags(root);
    if flags.as_ref().is_ok_and(|flags| flags.iter().any(|flag| flag == "hypervisor")) {
        signs.push("the hypervisor flag of cpuinfo".to_owned());
    }
    for path in [HYPERVISOR_TYPE, DEVICE_TREE] {
        if let Ok(kind) = root.value(path) {
            signs.push(format!("{path}: {kind}"));
        }
    }
    let product = product(root);
    if let Ok(name) = &product {
        let lower = name.to_lowercase();
        if VIRTUAL_PRODUCTS.iter().any(|known| lower.contains(known)) {
            signs.push(format!("the firmware's product: {name}"));
        }
    }
    // A paravirtual clock or idle driver is evidence where nothing else is.
    for path in [
        "/sys/devices/system/clocksource/clocksource0/available_clocksource",
        "/sys/devices/system/cpu/cpuidle/current_driver",
        clock::CURRENT,
    ] {
        if let Ok(text) = root.value(path) {
            for sign in ["kvm-clock", "hyperv_clocksource", "xen", "haltpoll"] {
                if text.contains(sign) && !signs.iter().any(|known| known.contains(sign)) {
                    signs.push(format!("{sign} in {path}"));
                }
            }
        }
    }
    if !signs.is_empty() {
        return Virtualisation::Yes(signs.join("; "));
    }
    match (flags, cpu::is_arm(root), product) {
        (Ok(_), false, _) => Virtualisation::NoSign("cpuinfo has no hypervisor flag".to_owned()),
        (_, true, Ok(name)) => Virtualisation::NoSign(format!("the firmware's product is {name}")),
        (_, true, Err(reason)) => Virtualisation::Unknown(format!(
            "an Arm CPU has no hypervisor flag, and the firmware gives no product: {reason}"
        )),
        (Err(reason), false, _) => Virtualisation::Unknown(reason),
    }
}

pub(super) fn add(root: &Root, facts: &mut Facts) {
    let source = "cpuinfo, /sys/hypervisor, DMI, clock source, idle driver";
    match hypervisor(root) {
        Virtualisation::Yes(signs) => {
            facts.known("virtualisation.machine", source, format!("virtual: {signs}"));
        }
        Virtualisation::NoSign(why) => {
            facts.known("virtualisation.machine", source, format!("no sign of one: {why}"));
        }
        Virtualisation::Unknown(why) => facts.unknown("virtualisation.machine", source, why),
    }
    facts.add("virtualisation.product", DMI, product(root));
    let source = "/.dockerenv, /run/.containerenv, /run/systemd/container, /proc/1/cgroup";
    let container = container(root);
    facts.add(
        "virtualisation.container",
        source,
        container.map(|found| match found {
            Some(sign) => format!("sign of one: {sign}"),
            None => "no sign of one".to_owned(),
        }),
    );
}

/// Vendor and product of the machine; never its serial number.
fn product(root: &Root) -> Result<String, String> {
    let read = |file: &str| root.value(&format!("{DMI}/{file}"));
    match (read("sys_vendor"), read("product_name")) {
        (Ok(vendor), Ok(name)) => Ok(format!("{vendor} {name}")),
        (Ok(one), Err(_)) | (Err(_), Ok(one)) => Ok(one),
        (Err(_), Err(error)) => Err(error.to_string()),
    }
}

/// The sign of a container around this process, if any.
pub(crate) fn container(root: &Root) -> Result<Option<String>, String> {
    for (path, kind) in [("/.dockerenv", "docker"), ("/run/.containerenv", "podman")] {
        if root.exists(path) {
            return Ok(Some(format!("{kind} ({path})")));
        }
    }
    if let Ok(kind) = root.value("/run/systemd/container") {
        return Ok(Some(format!("{kind} (/run/systemd/container)")));
    }
    let groups = root.text("/proc/1/cgroup").map_err(|error| error.to_string())?;
    for kind in ["docker", "kubepods", "lxc", "containerd", "libpod"] {
        if groups.contains(kind) {
            return Ok(Some(format!("{kind} (/proc/1/cgroup)")));
        }
    }
    Ok(None)
}
