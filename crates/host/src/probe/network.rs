//! Traffic of the network interfaces
//! (`Documentation/ABI/testing/sysfs-class-net-statistics`).

use model::{Scope, Unavailable, Unit};

use super::counters::{CounterValues, Counters, OfDevices};
use super::{Context, Probe, ProbeSpec, Signal};
use crate::root::Root;

const NET: &str = "/sys/class/net";
const LOOPBACK: &str = "lo";

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
    Ok(Box::new(OfDevices { counters, devices, except: &["nic.loopback"] }))
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
    Ok(values)
}
