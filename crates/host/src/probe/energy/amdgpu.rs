//! Power of AMD GPUs as the kernel's driver reports it: the hwmon chip `amdgpu` of each one
//! (`Documentation/gpu/amdgpu/thermal.rst`).

use std::time::Duration;

use model::{Scope, Unavailable, Unit};

use crate::probe::sampler::{Handle, Kind, Sampled, Sensor, Take};
use crate::probe::{Context, Probe, ProbeSpec, Signal};
use crate::root::{Root, RootError};

const CHIPS: &str = "/sys/class/hwmon";

/// The driver's name, which its chips have.
pub(super) const DRIVER: &str = "amdgpu";

pub(super) const SPEC: ProbeSpec =
    ProbeSpec::new("amdgpu", SIGNALS, "/sys/class/hwmon/*/power1_average of amdgpu", init)
        .with_parts(&[POWER.of_parts("power.amdgpu.N"), ENERGY.of_parts("energy.amdgpu.N")]);

const SIGNALS: &[Signal] = &[POWER, ENERGY];
const POWER: Signal = Signal::new("power.amdgpu", Unit::Watts, Scope::Accelerator, "amdgpu");
const ENERGY: Signal = Signal::new("energy.amdgpu", Unit::Joules, Scope::Accelerator, "amdgpu");

const EVERY: Duration = Duration::from_secs(1);

/// The firmware's average where there is one; newer GPUs have the present power alone.
const FILES: [&str; 2] = ["power1_average", "power1_input"];

/// The label of the northbridge's voltage, which only processors with a GPU inside have.
const NORTHBRIDGE: &str = "vddnb";

/// One GPU.
struct Gpu {
    path: String,
    /// Its PCI address, or its chip where the kernel does not say it.
    name: String,
}

fn init(root: &Root, context: &Context) -> Result<Box<dyn Probe>, Unavailable> {
    let gpus = gpus(root)?;
    let every = context.every(EVERY);
    let mut sampled = Sampled::default();
    let handles: Vec<Handle> = gpus
        .iter()
        .enumerate()
        .map(|(number, gpu)| {
            let (part, which) = (number.to_string(), format!("{} of {}", gpu.path, gpu.name));
            let kind = Kind::Level;
            let sensor = Sensor { signal: POWER, part: &part, which: &which, kind, every };
            let (root, path) = (root.clone(), gpu.path.clone());
            // Microwatts.
            sampled.gauge(sensor, move || Ok(root.number::<u64>(&path)? as f64 * 1e-6))
        })
        .collect();
    for (signal, take) in [(POWER, Take::Watts), (ENERGY, Take::Joules)] {
        sampled.reading(signal, &handles, take);
    }
    for (number, handle) in handles.iter().enumerate().filter(|_| handles.len() > 1) {
        sampled.part(POWER, &number.to_string(), &[*handle], Take::Watts);
        sampled.part(ENERGY, &number.to_string(), &[*handle], Take::Joules);
    }
    Ok(Box::new(sampled))
}

/// Every GPU with a power of its own, in the order of the chips.
fn gpus(root: &Root) -> Result<Vec<Gpu>, Unavailable> {
    let (mut gpus, mut inside, mut silent) = (Vec::new(), 0, None);
    for number in root.numbered(CHIPS, "hwmon").unwrap_or_default() {
        let chip = format!("{CHIPS}/hwmon{number}");
        if root.value(&format!("{chip}/name")).ok().as_deref() != Some(DRIVER) {
            continue;
        }
        if root.value(&format!("{chip}/in1_label")).ok().as_deref() == Some(NORTHBRIDGE) {
            inside += 1;
            continue;
        }
        let paths = FILES.map(|file| format!("{chip}/{file}"));
        let readable: Vec<Result<u64, RootError>> =
            paths.iter().map(|path| root.number(path)).collect();
        match readable.iter().position(Result::is_ok) {
            Some(at) => {
                let device = root.link(&format!("{chip}/device")).unwrap_or_default();
                let address = device.rsplit('/').next().filter(|name| !name.is_empty());
                let name = address.map_or_else(|| format!("hwmon{number}"), str::to_owned);
                gpus.push(Gpu { path: paths[at].clone(), name });
            }
            None => silent = readable.into_iter().find_map(Result::err).or(silent),
        }
    }
    match (gpus.is_empty(), silent, inside) {
        // Part of a sum is not the sum.
        (_, Some(error), _) => Err(Unavailable::new(
            format!("an AMD GPU shows no power: {error}"),
            "wake it up, as a GPU that is switched off has none, or take another source",
        )),
        (false, None, _) => Ok(gpus),
        (true, None, 0) => Err(Unavailable::new(
            format!("no chip under {CHIPS} is one of {DRIVER}"),
            "load the kernel's driver amdgpu, if this machine has one of AMD's GPUs",
        )),
        (true, None, _) => Err(Unavailable::new(
            "the only AMD GPU is inside the processor, and its sensor includes the CPU's cores",
            "take the package's energy by RAPL (energy.package), which includes the GPU",
        )),
    }
}
