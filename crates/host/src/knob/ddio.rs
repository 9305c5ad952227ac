//! Direct cache access: whether what devices write goes into the last-level cache.

use std::ops::RangeInclusive;

use model::Unavailable;

use super::error::KnobRefusal;
use super::models::{PERFCTRLSTS_0, WritePermission};
use super::plan::KnobChange;
use super::target::KnobTarget;
use super::write::KnobWrite;
use super::{Knob, KnobInfo, word_file};
use crate::root::{Root, RootError};

const DEVICES: &str = "/sys/bus/pci/devices";
const OFFSET: u64 = 0x180;
/// Bit 7, Use_Allocating_Flow_Wr: set, writes go into the cache.
const ALLOCATE: u32 = 1 << 7;
/// Bit 3, NoSnoopOpWrEn: set, writes that ask not to be snooped bypass the cache.
const NO_SNOOP: u32 = 1 << 3;
/// Root ports of the processors: E5 v2, v3 and v4 (1a to 3d), Scalable (A to D). Those of the
/// chipset have no such register.
const PORTS: [RangeInclusive<u16>; 4] =
    [0x0e02..=0x0e0b, 0x2f02..=0x2f0b, 0x6f02..=0x6f0b, 0x2030..=0x2033];

pub struct Ddio;

/// The addresses of the processor's root ports. Of a model that only the user trusts, Intel's
/// bridges: which of them are the processor's is not known.
fn ports(root: &Root) -> Result<(Vec<String>, WritePermission), Unavailable> {
    let permission = PERFCTRLSTS_0.check(root)?;
    let is_port = |address: &String| {
        let value = |file: &str| root.value(&format!("{DEVICES}/{address}/{file}")).ok();
        let known = || {
            let device = value("device")?;
            let device = u16::from_str_radix(device.trim_start_matches("0x"), 16).ok()?;
            Some(PORTS.iter().any(|ports| ports.contains(&device)))
        };
        value("vendor").as_deref() == Some("0x8086")
            && value("class").as_deref() == Some("0x060400")
            && (permission == WritePermission::Trusted || known() == Some(true))
    };
    let ports: Vec<String> = root.list(DEVICES)?.into_iter().filter(is_port).collect();
    if ports.is_empty() {
        let reason = format!("{DEVICES} has no root port of this processor");
        return Err(Unavailable::new(reason, "put the device into a slot of the processor"));
    }
    Ok((ports, permission))
}

fn place(port: &str) -> KnobTarget {
    KnobTarget::register(format!("{DEVICES}/{port}/config"), OFFSET, 4)
}

fn value(root: &Root, port: &str) -> Result<u32, Unavailable> {
    let path = format!("{DEVICES}/{port}/config");
    match root.bytes_at(&path, OFFSET) {
        Ok(bytes) => Ok(u32::from_le_bytes(bytes)),
        Err(RootError::Io { .. }) => Err(Unavailable::new(
            format!("{path} ends before {OFFSET:#x}"),
            "run as root, on a kernel that shows the extended configuration space",
        )),
        Err(error) => Err(error.into()),
    }
}

impl Knob for Ddio {
    fn info(&self) -> &'static KnobInfo {
        &KnobInfo {
            name: "ddio",
            what: "whether what devices write goes into the last-level cache",
            mechanism: "perfctrlsts_0 of the root ports: config +0x180, bits 7 and 3",
            scope: "every root port of the processor, or that of LEVEL@ADDRESS",
            proof: "none here: it shows in the memory bandwidth of a device that writes",
        }
    }

    fn levels(&self, root: &Root) -> Result<Vec<String>, Unavailable> {
        let (ports, permission) = ports(root)?;
        let mut levels = Vec::new();
        if permission == WritePermission::Documented {
            levels.extend(["on".to_owned(), "off".to_owned()]);
        }
        for port in ports {
            levels.extend([format!("on@{port}"), format!("off@{port}")]);
        }
        Ok(levels)
    }

    fn read(&self, root: &Root) -> Result<String, Unavailable> {
        let mut texts = Vec::new();
        for port in ports(root)?.0 {
            let on = value(root, &port)? & ALLOCATE != 0;
            texts.push((if on { "on" } else { "off" }, port));
        }
        if texts.iter().all(|(text, _)| *text == texts[0].0) {
            return Ok(texts[0].0.to_owned());
        }
        let texts: Vec<String> = texts.iter().map(|(on, port)| format!("{on}@{port}")).collect();
        Ok(texts.join(" "))
    }

    fn plan(&self, root: &Root, level: &str) -> Result<KnobChange, KnobRefusal> {
        let (ports, _) = ports(root)?;
        word_file::check(level, &self.levels(root)?)?;
        let (word, wanted) = match level.split_once('@') {
            Some((word, port)) => (word, Some(port)),
            None => (level, None),
        };
        let mut writes = Vec::new();
        for port in ports.iter().filter(|port| wanted.is_none_or(|address| address == *port)) {
            let value = value(root, port)?;
            let new = match word {
                "on" => value & !NO_SNOOP | ALLOCATE,
                _ => value & !ALLOCATE | NO_SNOOP,
            };
            writes.extend(KnobWrite::turn(root, place(port), format!("{new:#x}"))?);
        }
        let prove = word_file::unverified(
            "the register read back as written, which proves nothing; watch dram.written while \
             a device writes",
        );
        Ok(KnobChange { writes, prove })
    }
}
