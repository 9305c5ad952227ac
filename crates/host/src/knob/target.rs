//! The targets of knobs: a file, a line of one, a register, a group, or this process itself.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{affinity, interrupts, numa, power_cap};
use crate::parse::bracketed;
use crate::root::{Root, RootError};

/// A target that holds a value as text, in the same form for reading and writing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnobTarget {
    /// The file, folder or device; for a setting of this process the system call.
    pub path: String,
    #[serde(default, skip_serializing_if = "TargetPart::is_file")]
    pub within: TargetPart,
}

/// The part of the path that holds the value.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TargetPart {
    /// The whole file; in `always [madvise] never` the word in brackets.
    #[default]
    File,
    /// The CPUs of an interrupt; where its driver manages it, the kernel refuses every write.
    Interrupt,
    /// The line `KEY:...` of a resctrl `schemata`.
    Line(String),
    /// A little-endian register of 4 or 8 bytes at this offset, in hexadecimal.
    Register { offset: u64, bytes: u8 },
    /// A resctrl group: the folder exists or not.
    Group,
    /// A device whose value holds while it is open.
    Held,
    /// The CPUs on which the calling thread and its children may run.
    Affinity,
    /// The nodes from which the calling thread and its children get memory.
    MemoryPolicy,
}

impl TargetPart {
    fn is_file(&self) -> bool {
        *self == TargetPart::File
    }
}

/// The files that knobs write. No other file is journalled or put back, whatever a journal says.
const FILES: [&str; 4] = [
    "/proc/sys/kernel/randomize_va_space",
    "/sys/kernel/mm/transparent_hugepage/",
    "/sys/devices/system/cpu/",
    "/sys/fs/cgroup/cpuset/",
];
const GROUPS: &str = "/sys/fs/resctrl/";

/// The values of a group.
pub(super) const PRESENT: &str = "there";
const ABSENT: &str = "absent";

impl KnobTarget {
    pub(super) fn file(path: impl Into<String>) -> KnobTarget {
        KnobTarget { path: path.into(), within: TargetPart::File }
    }

    pub(super) fn line(path: impl Into<String>, key: &str) -> KnobTarget {
        KnobTarget { path: path.into(), within: TargetPart::Line(key.to_owned()) }
    }

    pub(super) fn register(path: impl Into<String>, offset: u64, bytes: u8) -> KnobTarget {
        KnobTarget { path: path.into(), within: TargetPart::Register { offset, bytes } }
    }

    pub(super) fn of(path: impl Into<String>, within: TargetPart) -> KnobTarget {
        KnobTarget { path: path.into(), within }
    }

    /// Whether a knob can have this target.
    pub(super) fn belongs_to_knob(&self) -> bool {
        let path = self.path.as_str();
        if path.split('/').any(|part| part == ".." || part == ".") {
            return false;
        }
        match &self.within {
            TargetPart::File => {
                FILES.iter().any(|known| match known.ends_with('/') {
                    true => path.starts_with(known),
                    false => path == *known,
                }) || path.starts_with(GROUPS)
                    || power_cap::is_file(path)
            }
            TargetPart::Interrupt => interrupts::is_file(path),
            TargetPart::Line(_) | TargetPart::Group => path.starts_with(GROUPS),
            TargetPart::Register { .. } => {
                (path.starts_with("/dev/cpu/") && path.ends_with("/msr"))
                    || (path.starts_with("/sys/bus/pci/devices/") && path.ends_with("/config"))
            }
            // A setting of a process ends with it and is in no journal.
            TargetPart::Held | TargetPart::Affinity | TargetPart::MemoryPolicy => false,
        }
    }

    /// Whether it is a setting of this process, which ends with it and which no other process can put
    /// back.
    pub(super) fn is_own(&self) -> bool {
        matches!(self.within, TargetPart::Affinity | TargetPart::MemoryPolicy | TargetPart::Held)
    }

    pub(super) fn read(&self, root: &Root) -> Result<String, RootError> {
        match &self.within {
            TargetPart::File => {
                let text = root.text(&self.path)?;
                Ok(bracketed(&text).unwrap_or(&text).trim().to_owned())
            }
            TargetPart::Interrupt => root.value(&self.path),
            TargetPart::Line(key) => {
                let text = root.text(&self.path)?;
                let line = text.lines().find_map(|line| value_of(line, key));
                line.map(plain)
                    .ok_or_else(|| RootError::malformed(&self.path, &text, "a schemata with it"))
            }
            TargetPart::Register { offset, bytes: 4 } => {
                let value = u32::from_le_bytes(root.bytes_at(&self.path, *offset)?);
                Ok(format!("{value:#x}"))
            }
            TargetPart::Register { offset, .. } => {
                let value = u64::from_le_bytes(root.bytes_at(&self.path, *offset)?);
                Ok(format!("{value:#x}"))
            }
            TargetPart::Group => {
                Ok(if root.exists(&self.path) { PRESENT } else { ABSENT }.to_owned())
            }
            TargetPart::Held => {
                let value = i32::from_le_bytes(root.bytes_at(&self.path, 0)?);
                Ok(value.to_string())
            }
            TargetPart::Affinity => affinity::read(&self.path),
            TargetPart::MemoryPolicy => numa::read(&self.path),
        }
    }

    /// Writes a value in the form that [`KnobTarget::read`] returns.
    pub(super) fn write(&self, root: &Root, value: &str) -> Result<(), RootError> {
        match &self.within {
            TargetPart::File | TargetPart::Interrupt => root.write(&self.path, value),
            TargetPart::Line(key) => {
                // Writes the whole text with one line changed, which works for the kernel and for a
                // recorded file.
                let text = root.text(&self.path)?;
                let lines: Vec<String> = text
                    .lines()
                    .map(|line| match value_of(line, key) {
                        Some(_) => format!("{key}:{value}"),
                        None => line.trim().to_owned(),
                    })
                    .collect();
                root.write(&self.path, &format!("{}\n", lines.join("\n")))
            }
            TargetPart::Register { offset, bytes } => {
                let digits = value.trim_start_matches("0x");
                let number = u64::from_str_radix(digits, 16)
                    .map_err(|_| RootError::malformed(&self.path, value, "a register's value"))?;
                let all = number.to_le_bytes();
                root.write_bytes_at(&self.path, *offset, &all[..usize::from(*bytes).min(8)])
            }
            TargetPart::Group if value == PRESENT => root.make_group(&self.path),
            TargetPart::Group if root.exists(&self.path) => root.remove_group(&self.path),
            // Held values end by closing the device.
            TargetPart::Group | TargetPart::Held => Ok(()),
            TargetPart::Affinity => affinity::write(&self.path, value),
            TargetPart::MemoryPolicy => numa::write(&self.path, value),
        }
    }
}

impl fmt::Display for KnobTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.within {
            TargetPart::Line(key) => write!(f, "{} {key}", self.path),
            TargetPart::Register { offset, .. } => write!(f, "{} at {offset:#x}", self.path),
            _ => f.write_str(&self.path),
        }
    }
}

fn value_of<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    Some(line.trim().strip_prefix(key)?.strip_prefix(':')?.trim())
}

/// `0=000f;1= 100` as `0=f;1=100`, without the kernel's padding.
fn plain(value: &str) -> String {
    let part = |part: &str| match part.split_once('=') {
        Some((domain, value)) => {
            let value = value.trim().trim_start_matches('0');
            format!("{}={}", domain.trim(), if value.is_empty() { "0" } else { value })
        }
        None => part.trim().to_owned(),
    };
    value.split(';').map(part).collect::<Vec<_>>().join(";")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::at(dir.path());
        (dir, root)
    }

    #[test]
    fn a_line_changes_and_the_others_stay() {
        let (dir, root) = machine();
        std::fs::write(dir.path().join("schemata"), "    MB:0= 100;1= 100\n    L3:0=07ff;1=07ff\n")
            .unwrap();
        let place = KnobTarget::line("/schemata", "L3");
        assert_eq!(place.read(&root).unwrap(), "0=7ff;1=7ff");
        place.write(&root, "0=f;1=f").unwrap();
        assert_eq!(root.text("/schemata").unwrap(), "MB:0= 100;1= 100\nL3:0=f;1=f\n");
        assert_eq!(KnobTarget::line("/schemata", "MB").read(&root).unwrap(), "0=100;1=100");
        assert!(KnobTarget::line("/schemata", "L2").read(&root).is_err());
    }

    #[test]
    fn a_register_write_leaves_other_bytes_alone() {
        let (dir, root) = machine();
        std::fs::write(dir.path().join("config"), [0x11; 16]).unwrap();
        let place = KnobTarget::register("/config", 4, 4);
        place.write(&root, "0x1234abcd").unwrap();
        assert_eq!(place.read(&root).unwrap(), "0x1234abcd");
        let bytes = std::fs::read(dir.path().join("config")).unwrap();
        assert_eq!((&bytes[..4], &bytes[8..]), (&[0x11; 4][..], &[0x11; 8][..]));
        assert!(KnobTarget::register("/config", 14, 4).read(&root).is_err());
    }

    #[test]
    fn rejects_targets_of_no_knob() {
        let msr = KnobTarget::register("/dev/cpu/3/msr", 0x620, 8);
        let aslr = KnobTarget::file("/proc/sys/kernel/randomize_va_space");
        let group = KnobTarget::of("/sys/fs/resctrl/kvmeter-7", TargetPart::Group);
        let interrupt = KnobTarget::of("/proc/irq/36/smp_affinity_list", TargetPart::Interrupt);
        for place in [msr, aslr, group, interrupt] {
            assert!(place.belongs_to_knob(), "{place}");
        }
        for path in [
            "/etc/passwd",
            "/proc/sys/kernel/core_pattern",
            "/proc/sys/kernel/randomize_va_space/../core_pattern",
            "/sys/devices/system/cpu/../../../../etc/passwd",
            "/dev/sda",
            "/dev/cpu/0/msr",
        ] {
            assert!(!KnobTarget::file(path).belongs_to_knob(), "{path}");
        }
        assert!(!KnobTarget::register("/dev/sda", 0, 8).belongs_to_knob());
        assert!(!KnobTarget::of("/home", TargetPart::Group).belongs_to_knob());
        assert!(!KnobTarget::of("/proc/irq/36/spurious", TargetPart::Interrupt).belongs_to_knob());
    }

    #[test]
    fn targets_serialise_compactly() {
        let text = serde_json::to_string(&KnobTarget::file("/a")).unwrap();
        assert_eq!(text, r#"{"path":"/a"}"#);
        for place in
            [KnobTarget::register("/m", 8, 4), KnobTarget::line("/s", "L3"), KnobTarget::file("/b")]
        {
            let text = serde_json::to_string(&place).unwrap();
            assert_eq!(serde_json::from_str::<KnobTarget>(&text).unwrap(), place);
        }
    }
}
