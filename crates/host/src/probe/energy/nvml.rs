//! GPUs by NVIDIA's management library, which is loaded when it is there.

use std::ffi::OsStr;
use std::sync::OnceLock;
use std::time::Duration;

use model::{Scope, Unavailable, Unit};
use nvml_wrapper::Nvml;
use nvml_wrapper::error::NvmlError;

use crate::probe::sampler::{Handle, Kind, Sampled, Sensor, Take};
use crate::probe::{Context, Probe, ProbeSpec, Signal};
use crate::root::Root;
use crate::unavailable::live_only;

pub(super) const SPEC: ProbeSpec = ProbeSpec::new("nvml", SIGNALS, "libnvidia-ml.so.1", init)
    .with_parts(&[POWER.of_parts("power.gpu.N"), ENERGY.of_parts("energy.gpu.N")]);

const SIGNALS: &[Signal] = &[POWER, ENERGY];
const POWER: Signal = Signal::new("power.gpu", Unit::Watts, Scope::Accelerator, "NVML");
const ENERGY: Signal = Signal::new("energy.gpu", Unit::Joules, Scope::Accelerator, "NVML");

const EVERY: Duration = Duration::from_secs(1);

/// The name that the driver installs; the one without a number is the developers'.
const LIBRARY: &str = "libnvidia-ml.so.1";

/// Loaded once a process: its start takes up to seconds.
static LOADED: OnceLock<Result<Nvml, String>> = OnceLock::new();

fn init(root: &Root, context: &Context) -> Result<Box<dyn Probe>, Unavailable> {
    if !root.is_live() {
        return Err(live_only("NVML"));
    }
    let load = || Nvml::builder().lib_path(OsStr::new(LIBRARY)).init();
    let nvml = LOADED.get_or_init(|| load().map_err(|error| error.to_string()));
    let nvml = nvml.as_ref().map_err(|error| {
        Unavailable::new(
            format!("NVML could not be loaded: {error}"),
            "install NVIDIA's driver, if this machine has one of its GPUs",
        )
    })?;
    let count =
        nvml.device_count().map_err(|error| failed("the GPUs could not be counted", &error))?;
    if count == 0 {
        return Err(Unavailable::new("NVML finds no GPU", "pass the GPU on to this machine"));
    }
    let every = context.every(EVERY);
    let mut sampled = Sampled::default();
    let gpus: Vec<Handle> = (0..count)
        .map(|gpu| add(&mut sampled, nvml, gpu, every))
        .collect::<Result<_, Unavailable>>()?;
    for (signal, take) in [(POWER, Take::Watts), (ENERGY, Take::Joules)] {
        sampled.reading(signal, &gpus, take);
    }
    for (gpu, handle) in gpus.iter().enumerate().filter(|_| gpus.len() > 1) {
        sampled.part(POWER, &gpu.to_string(), &[*handle], Take::Watts);
        sampled.part(ENERGY, &gpu.to_string(), &[*handle], Take::Joules);
    }
    Ok(Box::new(sampled))
}

/// Its energy counter where it has one (Volta and later), else its power.
fn add(
    sampled: &mut Sampled,
    nvml: &'static Nvml,
    gpu: u32,
    every: Duration,
) -> Result<Handle, Unavailable> {
    let device = move |error: NvmlError| failed(&format!("GPU {gpu}"), &error);
    let handle = nvml.device_by_index(gpu).map_err(device)?;
    let name = handle.name().map_err(device)?;
    let counts = handle.total_energy_consumption().is_ok();
    if !counts {
        handle.power_usage().map_err(device)?;
    }
    let part = gpu.to_string();
    let (kind, call) = match counts {
        true => (Kind::Counter, "total energy"),
        false => (Kind::Level, "power usage"),
    };
    let which = format!("{call} of GPU {gpu} ({name})");
    let sensor = Sensor { signal: POWER, part: &part, which: &which, kind, every };
    Ok(sampled.gauge(sensor, move || {
        let handle = nvml.device_by_index(gpu).map_err(device)?;
        // Millijoules and milliwatts.
        let milli = match counts {
            true => handle.total_energy_consumption().map(|energy| energy as f64),
            false => handle.power_usage().map(f64::from),
        };
        Ok(milli.map_err(device)? * 1e-3)
    }))
}

fn failed(what: &str, error: &NvmlError) -> Unavailable {
    Unavailable::new(
        format!("NVML, {what}: {error}"),
        "check what `nvidia-smi -q -d POWER` reports of the GPU",
    )
}
