//! Traffic of the network interfaces
//! (`Documentation/ABI/testing/sysfs-class-net-statistics`), and TCP's own count of lost segments
//! (RFC 4022, `tcpRetransSegs`).

use model::{Scope, Unavailable, Unit};

use super::counters::{CounterValues, Counters, OfDevices};
use super::{Context, Probe, ProbeSpec, Signal};
use crate::root::Root;

const NET: &str = "/sys/class/net";
const LOOPBACK: &str = "lo";
/// Of this process's network namespace.
const SNMP: &str = "/proc/net/snmp";
const RETRANSMITS: &str = "tcp.retransmits";

pub(super) const SPEC: ProbeSpec =
    ProbeSpec::new("network", SIGNALS, "/sys/class/net/*/statistics", init);

const SIGNALS: &[Signal] = &[
    nic("nic.received", Unit::Bytes, "/sys/class/net/*/statistics: rx_bytes"),
    nic("nic.sent", Unit::Bytes, "/sys/class/net/*/statistics: tx_bytes"),
    nic("nic.packets.received", Unit::Count, "/sys/class/net/*/statistics: rx_packets"),
    nic("nic.packets.sent", Unit::Count, "/sys/class/net/*/statistics: tx_packets"),
    nic("nic.dropped", Unit::Count, "/sys/class/net/*/statistics: rx_dropped + tx_dropped"),
    nic("nic.errors", Unit::Count, "/sys/class/net/*/statistics: rx_errors + tx_errors"),
    nic("nic.loopback", Unit::Bytes, "/sys/class/net/lo/statistics: tx_bytes"),
    nic(RETRANSMITS, Unit::Count, "/proc/net/snmp: Tcp RetransSegs"),
];

/// The files that make a signal, of every interface with a device.
const FILES: [&[&str]; 6] = [
    &["rx_bytes"],
    &["tx_bytes"],
    &["rx_packets"],
    &["tx_packets"],
    &["rx_dropped", "tx_dropped"],
    &["rx_errors", "tx_errors"],
];

const fn nic(name: &'static str, unit: Unit, source: &'static str) -> Signal {
    Signal::new(name, unit, Scope::Machine, source)
}

fn init(root: &Root, _: &Context) -> Result<Box<dyn Probe>, Unavailable> {
    let names = root.list(NET)?;
    // Bridges, tunnels and the loopback would count a packet twice.
    let devices: Vec<String> =
        names.into_iter().filter(|name| root.exists(&format!("{NET}/{name}/device"))).collect();
    if devices.is_empty() && !root.exists(&format!("{NET}/{LOOPBACK}")) {
        return Err(Unavailable::new(
            format!("{NET} has no interface"),
            "measure outside the sandbox that hides the network",
        ));
    }
    let (root, names) = (root.clone(), devices.clone());
    let counters = Counters::plain(SIGNALS, move || read_counters(&root, &names));
    let devices = devices.join(", ");
    Ok(Box::new(OfDevices { counters, devices, except: &["nic.loopback", RETRANSMITS] }))
}

fn read_counters(root: &Root, devices: &[String]) -> CounterValues {
    let read = |name: &str, file: &str| {
        root.number::<u64>(&format!("{NET}/{name}/statistics/{file}")).map_err(Unavailable::from)
    };
    let sum = |files: &[&str]| {
        if devices.is_empty() {
            return Err(Unavailable::new(
                format!("no interface of {NET} has a device: none leaves the machine"),
                "measure outside the container; its own interface is a virtual one",
            ));
        }
        let each = devices.iter().flat_map(|name| files.iter().map(|file| read(name, file)));
        each.sum()
    };
    let mut values: Vec<Result<u64, Unavailable>> = FILES.iter().map(|files| sum(files)).collect();
    values.push(read(LOOPBACK, "tx_bytes"));
    values.push(retransmits(root));
    Ok(values)
}

/// The file has two lines for each protocol: names, then values.
fn retransmits(root: &Root) -> Result<u64, Unavailable> {
    let text = root.text(SNMP)?;
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Tcp:"));
    let (names, values) = (lines.next(), lines.next());
    let mut pairs = names
        .into_iter()
        .flat_map(str::split_whitespace)
        .zip(values.into_iter().flat_map(str::split_whitespace));
    let value =
        pairs.find(|(name, _)| *name == "RetransSegs").and_then(|(_, value)| value.parse().ok());
    value.ok_or_else(|| {
        Unavailable::new(format!("{SNMP} has no RetransSegs"), "use a kernel with TCP over IPv4")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retransmits_are_found_by_their_name() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("proc/net/snmp");
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        let text =
            "Ip: Forwarding\nIp: 1\nTcp: InSegs OutSegs RetransSegs\nTcp: 70 80 9\nUdp: InErrors\n";
        std::fs::write(&file, text).unwrap();
        let root = Root::at(folder.path());
        assert_eq!(retransmits(&root).ok(), Some(9));
        std::fs::write(&file, "Ip: Forwarding\nIp: 1\n").unwrap();
        assert!(retransmits(&root).is_err());
    }
}
