//! Arm CPUs write numbers, not names, into `/proc/cpuinfo`: the implementer
//! and part of the Main ID Register, named here after the vendors' manuals and
//! the kernel's `cputype.h`.

use crate::parse::field;

const IMPLEMENTERS: &[(u32, &str)] = &[
    (0x41, "Arm"),
    (0x42, "Broadcom"),
    (0x43, "Cavium"),
    (0x46, "Fujitsu"),
    (0x48, "HiSilicon"),
    (0x4e, "NVIDIA"),
    (0x50, "Applied Micro"),
    (0x51, "Qualcomm"),
    (0x61, "Apple"),
    (0x6d, "Microsoft"),
    (0xc0, "Ampere"),
];

const PARTS: &[(u32, u32, &str)] = &[
    (0x41, 0xd03, "Cortex-A53"),
    (0x41, 0xd05, "Cortex-A55"),
    (0x41, 0xd07, "Cortex-A57"),
    (0x41, 0xd08, "Cortex-A72"),
    (0x41, 0xd09, "Cortex-A73"),
    (0x41, 0xd0a, "Cortex-A75"),
    (0x41, 0xd0b, "Cortex-A76"),
    (0x41, 0xd0c, "Neoverse-N1"),
    (0x41, 0xd40, "Neoverse-V1"),
    (0x41, 0xd49, "Neoverse-N2"),
    (0x41, 0xd4f, "Neoverse-V2"),
    (0x41, 0xd84, "Neoverse-V3"),
    (0x41, 0xd8e, "Neoverse-N3"),
    (0x42, 0x516, "ThunderX2"),
    (0x43, 0x0a1, "ThunderX"),
    (0x43, 0x0af, "ThunderX2"),
    (0x46, 0x001, "A64FX"),
    (0x48, 0xd01, "TaiShan v110"),
    (0x50, 0x000, "X-Gene"),
    (0x6d, 0xd49, "Azure Cobalt 100"),
    (0xc0, 0xac3, "AmpereOne"),
    (0xc0, 0xac4, "AmpereOne (revision A)"),
];

/// Who made the CPU, where `cpuinfo` is an Arm one.
pub(super) fn vendor(cpuinfo: &str) -> Option<String> {
    let implementer = number(cpuinfo, "CPU implementer")?;
    let known = IMPLEMENTERS.iter().find(|(id, _)| *id == implementer);
    Some(known.map_or_else(|| format!("implementer {implementer:#04x}"), |(_, n)| (*n).to_owned()))
}

/// The CPU's name with its revision; the bare numbers where it has none here.
pub(super) fn model(cpuinfo: &str) -> Option<String> {
    let implementer = number(cpuinfo, "CPU implementer")?;
    let part = number(cpuinfo, "CPU part")?;
    let name = PARTS.iter().find(|(i, p, _)| (*i, *p) == (implementer, part));
    let name = match name {
        Some((_, _, name)) => (*name).to_owned(),
        None => format!("implementer {implementer:#04x} part {part:#05x}"),
    };
    let revision = match (number(cpuinfo, "CPU variant"), number(cpuinfo, "CPU revision")) {
        (Some(variant), Some(revision)) => format!(" r{variant}p{revision}"),
        _ => String::new(),
    };
    Some(name + &revision)
}

/// Hexadecimal with `0x`, else decimal, as the kernel mixes them.
fn number(cpuinfo: &str, key: &str) -> Option<u32> {
    let text = field(cpuinfo, key)?;
    match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpuinfo(implementer: &str, part: &str) -> String {
        format!(
            "processor\t: 0\nCPU implementer\t: {implementer}\nCPU architecture: 8\n\
             CPU variant\t: 0x3\nCPU part\t: {part}\nCPU revision\t: 1\n"
        )
    }

    #[test]
    fn server_cores_by_their_numbers() {
        for (implementer, part, name, maker) in [
            ("0x41", "0xd0c", "Neoverse-N1 r3p1", "Arm"),
            ("0x41", "0xd40", "Neoverse-V1 r3p1", "Arm"),
            ("0x50", "0x000", "X-Gene r3p1", "Applied Micro"),
            ("0x41", "0xfff", "implementer 0x41 part 0xfff r3p1", "Arm"),
            ("0x99", "0x001", "implementer 0x99 part 0x001 r3p1", "implementer 0x99"),
        ] {
            let text = cpuinfo(implementer, part);
            assert_eq!(model(&text).as_deref(), Some(name));
            assert_eq!(vendor(&text).as_deref(), Some(maker));
        }
        assert_eq!(model("model name\t: Xeon\n"), None);
    }
}
