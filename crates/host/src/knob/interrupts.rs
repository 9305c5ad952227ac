//! The interrupts of the machine: their devices, whether they can be moved, their counts on each CPU.

use model::{Unavailable, cpu_list};

use crate::root::{Root, RootError};

const FOLDER: &str = "/proc/irq";
const COUNTS: &str = "/proc/interrupts";
const KERNEL: &str = "/sys/kernel/irq";
/// Where devices are found by name. Each entry is a link into `/sys/devices`.
const CLASSES: [&str; 4] =
    ["/sys/class/net", "/sys/block", "/sys/class/nvme", "/sys/bus/pci/devices"];
/// The classes whose names users know; PCI addresses are accepted, too.
const LISTED: usize = 3;

/// One interrupt that a handler is registered for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Interrupt {
    pub number: u32,
    /// The names of its handlers, such as `eth0-TxRx-0` or `nvme0q1`.
    pub actions: String,
    /// Whether the kernel lets users move it. Kernels before 6.11 do not show it in advance.
    pub movable: bool,
}

impl Interrupt {
    /// `36 (virtio1-req.0)`.
    pub(super) fn label(&self) -> String {
        format!("{} ({})", self.number, self.actions)
    }
}

/// The file with the CPUs that may take an interrupt.
pub(super) fn file(number: u32) -> String {
    format!("{FOLDER}/{number}/smp_affinity_list")
}

/// Whether a path is such a file.
pub(super) fn is_file(path: &str) -> bool {
    let number = path.strip_prefix(FOLDER).and_then(|rest| rest.strip_prefix('/'));
    let number = number.and_then(|rest| rest.strip_suffix("/smp_affinity_list"));
    number.is_some_and(|number| number.parse::<u32>().is_ok())
}

/// Every interrupt with a handler, in the order of their numbers.
pub(super) fn all(root: &Root) -> Result<Vec<Interrupt>, Unavailable> {
    let mut found = Vec::new();
    for name in root.list(FOLDER)? {
        let Ok(number) = name.parse::<u32>() else { continue };
        let actions = root.value(&format!("{KERNEL}/{number}/actions")).unwrap_or_default();
        if actions.is_empty() || !root.exists(&file(number)) {
            continue;
        }
        // Since Linux 6.11 the files of interrupts that users may not move are read-only.
        let movable = !root.is_read_only(&file(number))?;
        found.push(Interrupt { number, actions, movable });
    }
    if found.is_empty() {
        return Err(Unavailable::new(
            format!("{FOLDER} and {KERNEL} show no interrupt with a handler"),
            "turn it outside of a container, where the kernel shows its interrupts",
        ));
    }
    Ok(found)
}

/// The numbers of the interrupts that a name stands for: a network interface, a block device, an
/// NVMe controller, a PCI function, numbers such as `36-40`, or the beginning of a handler's name.
pub(super) fn named(root: &Root, all: &[Interrupt], name: &str) -> Vec<u32> {
    let numbers: Vec<u32> = all.iter().map(|interrupt| interrupt.number).collect();
    if let Some(list) = cpu_list::parse(name).filter(|list| !list.is_empty()) {
        // A number without an interrupt makes the whole list unknown.
        return if list.iter().all(|one| numbers.contains(one)) { list } else { Vec::new() };
    }
    let of_device = of_device(root, name);
    let of = |interrupt: &&Interrupt| {
        let handled = || interrupt.actions.split(',').any(|action| begins(action.trim(), name));
        of_device.contains(&interrupt.number) || (of_device.is_empty() && handled())
    };
    all.iter().filter(of).map(|interrupt| interrupt.number).collect()
}

/// The devices whose interrupts are among these.
pub(super) fn devices(root: &Root, all: &[Interrupt]) -> Vec<String> {
    let names = CLASSES[..LISTED].iter().flat_map(|class| root.list(class).unwrap_or_default());
    let mut names: Vec<String> = names.filter(|name| !named(root, all, name).is_empty()).collect();
    names.dedup();
    names
}

/// Whether a handler's name is that of a device or one of its queues: `nvme0q1` is of `nvme0`, and
/// `eth10` is not of `eth1`.
fn begins(action: &str, name: &str) -> bool {
    let Some(rest) = action.strip_prefix(name) else { return false };
    let numbered = name.ends_with(|c: char| c.is_ascii_digit());
    rest.chars().next().is_none_or(|next| match numbered {
        true => !next.is_ascii_digit(),
        false => !next.is_ascii_alphanumeric(),
    })
}

/// The interrupts of the nearest device above a name that has any: message-signalled ones, else its
/// line.
fn of_device(root: &Root, name: &str) -> Vec<u32> {
    if name.is_empty() || name.contains('/') || name.starts_with('.') {
        return Vec::new();
    }
    let mut entries = CLASSES.iter().map(|class| format!("{class}/{name}"));
    let Some(entry) = entries.find(|entry| root.exists(entry)) else { return Vec::new() };
    let link = root.link(&entry).ok();
    let below = link.as_deref().and_then(|link| link.split_once("devices/"));
    let mut device = below.map_or(entry, |(_, below)| format!("/sys/devices/{below}"));
    while device.len() > "/sys/devices".len() {
        let messages = root.numbers(&format!("{device}/msi_irqs")).unwrap_or_default();
        if !messages.is_empty() {
            return messages;
        }
        if let Ok(line) = root.number::<u32>(&format!("{device}/irq")) {
            return if line > 0 { vec![line] } else { Vec::new() };
        }
        device.truncate(device.rfind('/').unwrap_or(0));
    }
    Vec::new()
}

/// What `/proc/interrupts` counted of one interrupt on each CPU that is online.
pub(super) type Counts = Vec<(u32, Vec<(u32, u64)>)>;

/// The counts of some interrupts. One that is not in the file has none.
pub(super) fn counts(root: &Root, numbers: &[u32]) -> Result<Counts, RootError> {
    let text = root.text(COUNTS)?;
    let mut lines = text.lines();
    let cpus: Option<Vec<u32>> = lines.next().and_then(|header| {
        header.split_whitespace().map(|cpu| cpu.strip_prefix("CPU")?.parse().ok()).collect()
    });
    let cpus = cpus
        .filter(|cpus| !cpus.is_empty())
        .ok_or_else(|| RootError::malformed(COUNTS, &text, "a line of CPUs"))?;
    let mut found = Vec::new();
    for line in lines {
        let Some((number, rest)) = line.split_once(':') else { continue };
        let Ok(number) = number.trim().parse::<u32>() else { continue };
        if !numbers.contains(&number) {
            continue;
        }
        let counts = rest.split_whitespace().map_while(|count| count.parse::<u64>().ok());
        found.push((number, cpus.iter().copied().zip(counts).collect()));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handlers_belong_to_devices_by_whole_names() {
        for (action, name) in [
            ("nvme0q1", "nvme0"),
            ("eth0", "eth0"),
            ("eth0-TxRx-1", "eth0"),
            ("virtio2-input.0", "virtio2-input"),
            ("mlx5_comp3@pci:0000:18:00.0", "mlx5_comp3"),
        ] {
            assert!(begins(action, name), "{action} {name}");
        }
        for (action, name) in [("eth10", "eth1"), ("eth0", "e"), ("eth0", "eth"), ("a", "eth0")] {
            assert!(!begins(action, name), "{action} {name}");
        }
    }

    #[test]
    fn only_lists_of_cpus_of_interrupts_are_their_files() {
        assert!(is_file(&file(36)));
        for path in [
            "/proc/irq/36/smp_affinity",
            "/proc/irq/default_smp_affinity",
            "/proc/irq/x/smp_affinity_list",
            "/proc/irq/3/../4/smp_affinity_list",
            "/proc/sys/kernel/core_pattern",
        ] {
            assert!(!is_file(path), "{path}");
        }
    }
}
