//! One round, as stored in the results file.

use model::{Phase, Run};

use super::keys;
use super::load::DeviceLoad;
use super::resource::{Bottleneck, Resource, ResourceUse};

/// A rate was reached if at least this share of it was achieved.
const MIN_ACHIEVED: f64 = 0.99;

/// What a round is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoundPurpose {
    /// Raising the load on one device.
    Raise,
    /// Waiting for the steady state at the load that was best.
    Unit,
    /// The same with more devices.
    Growth,
}

impl RoundPurpose {
    pub const ALL: [RoundPurpose; 3] =
        [RoundPurpose::Raise, RoundPurpose::Unit, RoundPurpose::Growth];

    pub const fn name(self) -> &'static str {
        match self {
            RoundPurpose::Raise => "raise",
            RoundPurpose::Unit => "unit",
            RoundPurpose::Growth => "growth",
        }
    }
}

/// One measured round.
#[derive(Debug, Clone, PartialEq)]
pub struct EvaluationRound {
    pub stage: RoundPurpose,
    pub devices: u32,
    /// On each device.
    pub load: DeviceLoad,
    pub number: u32,
    /// Its rate was not reached, and nothing else failed.
    pub rate_not_held: bool,
    /// Of all devices together, ops/s.
    pub throughput_ops_s: f64,
    /// Of each device; empty where it is not known.
    pub device_ops_s: Vec<f64>,
    /// How long each device had requests under way, and how many on average.
    pub busy: Result<Vec<f64>, String>,
    pub queue: Result<Vec<f64>, String>,
    /// The device (the least busy of several), and every resource of the platform.
    pub uses: Vec<ResourceUse>,
    /// Share of the machine's CPU time that was not idle.
    pub machine_busy: Option<f64>,
    /// Bytes read from the devices for each byte that the workload read: far below 1 a cache
    /// answered.
    pub read_from_device: Option<f64>,
    /// Why the round is invalid.
    pub invalid_because: Vec<String>,
}

impl EvaluationRound {
    /// The round that a run is; None if it is no round of an evaluation.
    pub fn of(run: &Run) -> Option<EvaluationRound> {
        let number = |key| run.settings.get(key)?.parse::<u32>().ok();
        let stage = run.settings.get(keys::STAGE)?;
        let stage = RoundPurpose::ALL.into_iter().find(|known| known.name() == stage)?;
        if run.phase != Phase::Measure {
            return None;
        }
        let devices = number(keys::DEVICES)?;
        let each = |group: &str, what: &str| -> Result<Vec<f64>, String> {
            match devices {
                1 => share(run, &format!("{group}.{what}")).map(|one| vec![one]),
                many => (1..=many).map(|at| share(run, &format!("{group}.{at}.{what}"))).collect(),
            }
        };
        let busy = each("volume", "busy");
        let least = |all: &Vec<f64>| all.iter().copied().fold(f64::INFINITY, f64::min);
        let load = DeviceLoad::of(&run.settings)?;
        let operations = |at: u32| run.value(&format!("store.member.{at}.operations"));
        // The first database of each device comes first, then the second of each ...
        let of_device = |device: u32| -> Option<f64> {
            let members = (0..load.databases).map(|database| database * devices + device);
            members.map(operations).sum::<Option<f64>>()
        };
        let each_ops_s: Option<Vec<f64>> =
            (1..=devices).map(|at| Some(of_device(at)? / run.seconds.max(1e-9))).collect();
        let mut uses = vec![ResourceUse {
            resource: Resource::Device,
            share: busy.as_ref().map(least).map_err(Clone::clone),
        }];
        uses.extend(
            Resource::PLATFORM.map(|resource| ResourceUse { resource, share: used(run, resource) }),
        );
        let from_device = || {
            let (device, workload) = (run.value("volume.read")?, run.value("workload.read")?);
            (workload > 0.0).then(|| device / workload)
        };
        let reached = run.target_rate().zip(run.achieved_rate());
        let reached = reached.map(|(target, achieved)| achieved >= MIN_ACHIEVED * target);
        Some(EvaluationRound {
            stage,
            devices,
            load,
            number: number(keys::ROUND)?,
            throughput_ops_s: run.throughput(),
            device_ops_s: each_ops_s.unwrap_or_default(),
            queue: each("volume", "queue"),
            busy,
            uses,
            machine_busy: run.value("machine.busy"),
            read_from_device: from_device(),
            rate_not_held: reached == Some(false) && run.failures.is_empty(),
            invalid_because: run.invalid_because.clone(),
        })
    }

    /// Why it is invalid, if it is. While the load is raised, an unreached rate is expected.
    pub fn invalid_reason(&self) -> Option<&String> {
        let sought = self.stage == RoundPurpose::Raise && self.rate_not_held;
        self.invalid_because.first().filter(|_| !sought)
    }

    /// What limited it. A resource of the platform without headroom takes precedence over a busy
    /// device, which may not be the limit then. A device that was not busy while other programs
    /// kept the CPUs busy waited for those.
    pub fn bottleneck(&self) -> Bottleneck {
        let full = |one: &&ResourceUse| one.resource != Resource::Device && one.is_at_its_limit();
        let over = |one: &&ResourceUse| {
            one.share.as_ref().map_or(0.0, |share| share / one.resource.limit())
        };
        let platform = self.uses.iter().filter(full).max_by(|a, b| over(a).total_cmp(&over(b)));
        let device = self.uses.iter().find(|one| one.resource == Resource::Device);
        match (platform, device) {
            (Some(one), _) => Bottleneck::Platform(one.resource),
            (None, Some(device)) if device.is_at_its_limit() => Bottleneck::Device,
            _ if self.machine_busy.is_some_and(|busy| busy >= Resource::Cpu.limit()) => {
                Bottleneck::Platform(Resource::Cpu)
            }
            _ => Bottleneck::Unknown,
        }
    }

    /// The share of a resource that it used, if known.
    pub fn used(&self, resource: Resource) -> Option<f64> {
        let found = self.uses.iter().find(|one| one.resource == resource)?;
        found.share.as_ref().ok().copied()
    }
}

fn share(run: &Run, signal: &str) -> Result<f64, String> {
    let reading = run.reading(signal).ok_or_else(|| format!("{signal} was not read"))?;
    match &reading.answer {
        model::ReadingValue::Value(value) => Ok(*value),
        model::ReadingValue::Unavailable { reason, .. } => Err(reason.clone()),
    }
}

fn used(run: &Run, resource: Resource) -> Result<f64, String> {
    match resource {
        Resource::Device => share(run, "volume.busy"),
        // CPU time of other programs is not this workload's.
        Resource::Cpu => share(run, "limit.cpu").or_else(|_| share(run, "machine.busy")),
        Resource::Memory => share(run, "limit.memory"),
        Resource::Network => share(run, "limit.network"),
        Resource::MemoryBandwidth => {
            let given = run.settings.get(keys::MEMORY_BANDWIDTH);
            let most = given.and_then(|text| text.parse::<f64>().ok()).ok_or_else(|| {
                "the platform's bandwidth was not given; set `memory_bandwidth` of [mbwu]"
                    .to_owned()
            })?;
            let moved = share(run, "dram.read")? + share(run, "dram.written")?;
            Ok(moved / run.seconds.max(1e-9) / most)
        }
    }
}
