//! An anonymous identifier of the machine.

use super::{Facts, cpu};
use crate::root::Root;

/// Sources of an identity, the most stable first. The host name is the
/// weakest, as users change it.
pub(crate) const SOURCES: &[&str] = &[
    "/etc/machine-id",
    "/var/lib/dbus/machine-id",
    "/sys/class/dmi/id/product_uuid",
    "/proc/sys/kernel/hostname",
];

/// The id: 16 hexadecimal digits that hash the first source that answers
/// together with the CPU's name, or `unknown`.
pub(super) fn add(root: &Root, facts: &mut Facts) -> String {
    let source = SOURCES.iter().find_map(|path| {
        let value = root.value(path).ok()?;
        // systemd's word for an image that was never booted.
        (value != "uninitialized").then_some((*path, value))
    });
    let Some((path, private)) = source else {
        let reason = format!("none of {} is readable", SOURCES.join(", "));
        facts.unknown("machine.id", SOURCES[0], reason);
        return "unknown".to_owned();
    };
    let model = cpu::model(root).unwrap_or_default();
    let id = format!("{:016x}", hash(&format!("kvmeter\0{private}\0{model}")));
    facts.known("machine.id", format!("{path} with the CPU model, hashed"), id.clone());
    id
}

/// FNV-1a of 64 bits with a final mix: the same on every build, and 128
/// private bits do not come back out of 64.
fn hash(text: &str) -> u64 {
    let mut state: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in text.bytes() {
        state = (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    model::random::mix(state)
}
