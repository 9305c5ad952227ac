//! Temperature and throttling of the CPUs.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use model::{Reading, Scope, Series, Unavailable, Unit};

use super::counters::gained;
use super::sampler::{Kind, Sampled, SamplerTask, Sensor, Take};
use super::{Context, Probe, ProbeSpec, Signal};
use crate::facts::topology::threads;
use crate::root::{Root, RootError};

const HWMON: &str = "/sys/class/hwmon";
const ZONES: &str = "/sys/class/thermal";
const CPUS: &str = "/sys/devices/system/cpu";

pub(super) const SPEC: ProbeSpec = ProbeSpec::new(
    "thermal",
    SIGNALS,
    "/sys/class/hwmon, /sys/class/thermal, /sys/devices/system/cpu/cpu*/thermal_throttle",
    init,
);

const SIGNALS: &[Signal] = &[TEMPERATURE, THROTTLED, THROTTLED_TIME];
const TEMPERATURE: Signal =
    Signal::new("temperature.max", Unit::Celsius, Scope::Machine, "/sys/class");
const THROTTLED: Signal = Signal::new(
    "throttled",
    Unit::Count,
    Scope::Machine,
    "/sys/devices/system/cpu/cpu*/thermal_throttle: core_throttle_count, package_throttle_count",
);
const THROTTLED_TIME: Signal = Signal::new(
    "throttled.time",
    Unit::Seconds,
    Scope::Machine,
    "/sys/devices/system/cpu/cpu*/thermal_throttle: core_throttle_total_time_ms, \
     package_throttle_total_time_ms",
);

/// The drivers of sensors in or on the CPU (`Documentation/hwmon`).
const DRIVERS: [&str; 5] = ["coretemp", "k10temp", "zenpower", "apm_xgene", "cpu_thermal"];

const EVERY: Duration = Duration::from_secs(1);

fn init(root: &Root, context: &Context) -> Result<Box<dyn Probe>, Unavailable> {
    let sensors = sensors(root);
    let throttle = throttled(root, "count");
    if let (true, Err(_)) = (sensors.is_empty(), &throttle) {
        return Err(Unavailable::new(
            format!(
                "neither {HWMON} nor {ZONES} has a sensor of the CPU, and no CPU counts throttling"
            ),
            "load the sensor's driver (coretemp, k10temp); a hypervisor shows neither",
        ));
    }
    let none = || Unavailable::new("the probe was not started", "start it first");
    Ok(Box::new(Thermal {
        root: root.clone(),
        temperature: temperature(root, sensors, context.every(EVERY)),
        count: Err(none()),
        time_ms: Err(none()),
    }))
}

/// The hottest of the sensors, sampled.
fn temperature(root: &Root, sensors: Vec<Thermometer>, every: Duration) -> Sampled {
    let mut sampled = Sampled::default();
    if sensors.is_empty() {
        let why = Unavailable::new(
            format!("neither {HWMON} nor {ZONES} has a sensor of the CPU"),
            "load the sensor's driver (coretemp, k10temp); a hypervisor shows none",
        );
        sampled.absent(TEMPERATURE, why);
        return sampled;
    }
    let names: Vec<String> = sensors.iter().map(Thermometer::shown).collect();
    let which = format!("{}, the hottest at each sample", names.join(", "));
    let (kind, root) = (Kind::Level, root.clone());
    let gauge = sampled
        .gauge(Sensor { signal: TEMPERATURE, part: "", which: &which, kind, every }, move || {
            hottest(&root, &sensors)
        });
    sampled.reading(TEMPERATURE, &[gauge], Take::Maximum);
    sampled
}

struct Thermal {
    root: Root,
    temperature: Sampled,
    count: Result<u64, Unavailable>,
    time_ms: Result<u64, Unavailable>,
}

impl Probe for Thermal {
    fn start(&mut self) {
        self.temperature.start();
        self.count = throttled(&self.root, "count");
        self.time_ms = throttled(&self.root, "total_time_ms");
    }

    fn stop(&mut self, window: Duration) -> Vec<Reading> {
        let gain = |signal: &Signal, before: &Result<u64, Unavailable>, what: &str| {
            gained(signal, before.clone()?, throttled(&self.root, what)?)
        };
        let count = gain(&THROTTLED, &self.count, "count").map(|count| count as f64);
        let time = gain(&THROTTLED_TIME, &self.time_ms, "total_time_ms").map(|ms| ms as f64 * 1e-3);
        let mut readings = self.temperature.stop(window);
        readings.push(THROTTLED.reading(count, window));
        readings.push(THROTTLED_TIME.reading(time, window));
        readings
    }

    fn set_run_window(&mut self, opened: Instant, closed: Instant) {
        self.temperature.set_run_window(opened, closed);
    }

    fn tasks(&mut self) -> Vec<SamplerTask> {
        self.temperature.tasks()
    }

    fn series(&self, opened: Instant) -> Vec<Series> {
        self.temperature.series(opened)
    }
}

/// A file with thousandths of a degree, and what it measures.
struct Thermometer {
    path: String,
    label: String,
}

impl Thermometer {
    fn shown(&self) -> String {
        format!("{} ({})", self.path.trim_start_matches("/sys/class"), self.label)
    }
}

/// The CPU's sensors: hwmon's; where it has none the thermal zones'.
fn sensors(root: &Root) -> Vec<Thermometer> {
    let mut sensors = Vec::new();
    for number in root.numbered(HWMON, "hwmon").unwrap_or_default() {
        let folder = format!("{HWMON}/hwmon{number}");
        let Ok(driver) = root.value(&format!("{folder}/name")) else { continue };
        if !DRIVERS.contains(&driver.as_str()) {
            continue;
        }
        for name in root.list(&folder).unwrap_or_default() {
            let Some(stem) = name.strip_suffix("_input").filter(|n| n.starts_with("temp")) else {
                continue;
            };
            let label = root.value(&format!("{folder}/{stem}_label")).unwrap_or(stem.to_owned());
            let path = format!("{folder}/{name}");
            sensors.push(Thermometer { path, label: format!("{driver} {label}") });
        }
    }
    if !sensors.is_empty() {
        return sensors;
    }
    for number in root.numbered(ZONES, "thermal_zone").unwrap_or_default() {
        let folder = format!("{ZONES}/thermal_zone{number}");
        let Ok(kind) = root.value(&format!("{folder}/type")) else { continue };
        let lower = kind.to_lowercase();
        if lower == "x86_pkg_temp" || lower.contains("cpu") || lower.contains("soc") {
            sensors.push(Thermometer { path: format!("{folder}/temp"), label: kind });
        }
    }
    sensors
}

/// Degrees of the hottest sensor; all must answer, or the hottest is not known.
fn hottest(root: &Root, sensors: &[Thermometer]) -> Result<f64, Unavailable> {
    let mut hottest = f64::NEG_INFINITY;
    for sensor in sensors {
        hottest = hottest.max(root.number::<i64>(&sensor.path)? as f64 / 1000.0);
    }
    Ok(hottest)
}

/// Throttle events (or time) of all cores and packages. The threads of a core
/// count the same events, and so do the CPUs of a package: each counts once.
fn throttled(root: &Root, what: &str) -> Result<u64, Unavailable> {
    let (mut cores, mut packages) = (BTreeMap::new(), BTreeMap::new());
    for thread in threads(root)? {
        let read = |of: &str| {
            let path = format!("{CPUS}/cpu{}/thermal_throttle/{of}_throttle_{what}", thread.cpu);
            root.number::<u64>(&path).map_err(|error| match error {
                RootError::Missing { path } => Unavailable::new(
                    format!("{path} does not exist"),
                    "measure on an Intel CPU; others and hypervisors do not count throttling",
                ),
                other => other.into(),
            })
        };
        let core = thread.siblings.first().copied().unwrap_or(thread.cpu);
        let most = cores.entry(core).or_insert(0);
        *most = read("core")?.max(*most);
        let most = packages.entry(thread.socket).or_insert(0);
        *most = read("package")?.max(*most);
    }
    Ok(cores.values().sum::<u64>() + packages.values().sum::<u64>())
}
