//! The idle states that a CPU may enter.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use model::{Unavailable, cpu_list};

use super::error::KnobRefusal;
use super::hotplug::CPUS;
use super::level::{common, scoped, tally};
use super::plan::KnobChange;
use super::proof::{ProofOutcome, Prove};
use super::target::{KnobTarget, TargetPart};
use super::write::KnobWrite;
use super::{Knob, KnobInfo, load};
use crate::facts::topology;
use crate::root::{Root, RootError};

const DMA_LATENCY: &str = "/dev/cpu_dma_latency";
const GOVERNOR: &str = "/sys/devices/system/cpu/cpuidle/current_governor";
const GOVERNORS: &str = "/sys/devices/system/cpu/cpuidle/available_governors";
/// Governors that may enter a disabled state: haltpoll never checks, ladder only when it goes
/// deeper (`drivers/cpuidle/governors` of Linux).
const IGNORES_DISABLED: &[&str] = &["haltpoll", "ladder"];
const HONOURS_DISABLED: &[&str] = &["menu", "teo"];

pub struct Idle;

/// An idle state of one CPU, the shallowest first.
struct KnobIdleState {
    number: u32,
    /// Its name, with `-` for spaces.
    name: String,
    latency_us: u64,
    disabled: bool,
}

impl KnobIdleState {
    fn is_poll(&self) -> bool {
        self.name.eq_ignore_ascii_case("POLL")
    }

    fn is_called(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(&name.replace(' ', "-"))
    }
}

fn file(cpu: u32, state: u32, name: &str) -> String {
    format!("{CPUS}/cpu{cpu}/cpuidle/state{state}/{name}")
}

fn states(root: &Root, cpu: u32) -> Result<Vec<KnobIdleState>, Unavailable> {
    let folder = format!("{CPUS}/cpu{cpu}/cpuidle");
    let numbers = root.numbered(&folder, "state").unwrap_or_default();
    if numbers.is_empty() {
        return Err(Unavailable::new(
            format!("{folder} has no idle state: the firmware or the hypervisor decides"),
            "use a kernel with CONFIG_CPU_IDLE and a driver for this CPU",
        ));
    }
    let state = |number: u32| {
        Ok(KnobIdleState {
            number,
            name: root.value(&file(cpu, number, "name"))?.replace(' ', "-"),
            latency_us: root.number(&file(cpu, number, "latency"))?,
            disabled: root.number::<u64>(&file(cpu, number, "disable"))? != 0,
        })
    };
    Ok(numbers.into_iter().map(state).collect::<Result<_, RootError>>()?)
}

/// A parsed level.
enum IdleLevel<'a> {
    All,
    /// The CPU polls and never sleeps.
    None,
    Deepest(&'a str),
    Without(&'a str),
    LatencyUs(u64),
}

impl IdleLevel<'_> {
    fn parse(level: &str) -> IdleLevel<'_> {
        if let Some(us) = level.strip_suffix("us").and_then(|us| us.trim().parse().ok()) {
            return IdleLevel::LatencyUs(us);
        }
        match (level, level.strip_prefix("no-")) {
            ("all", _) => IdleLevel::All,
            ("none", _) => IdleLevel::None,
            (_, Some(name)) => IdleLevel::Without(name),
            (name, _) => IdleLevel::Deepest(name),
        }
    }

    /// Whether each state of a CPU is to be disabled.
    fn disables(&self, cpu: u32, states: &[KnobIdleState]) -> Result<Vec<bool>, KnobRefusal> {
        let place = |name: &str| {
            states.iter().position(|state| state.is_called(name)).ok_or_else(|| {
                let names: Vec<&str> = states.iter().map(|state| state.name.as_str()).collect();
                let names = names.join(", ");
                KnobRefusal::Level(format!("CPU {cpu} has no idle state of that name, but {names}"))
            })
        };
        let all = 0..states.len();
        Ok(match self {
            IdleLevel::All => vec![false; states.len()],
            IdleLevel::None if !states[0].is_poll() => {
                let first = &states[0].name;
                return Err(KnobRefusal::Level(format!(
                    "CPU {cpu} cannot poll: {first} is its shallowest state, and a CPU always \
                     enters one"
                )));
            }
            IdleLevel::None => all.map(|at| at > 0).collect(),
            IdleLevel::Deepest(name) => {
                let deepest = place(name)?;
                all.map(|at| at > deepest).collect()
            }
            IdleLevel::Without(name) => {
                let without = place(name)?;
                if states.len() == 1 || states[without].is_poll() {
                    return Err(KnobRefusal::Level(format!(
                        "{name} is the state that is always left"
                    )));
                }
                all.map(|at| at == without).collect()
            }
            IdleLevel::LatencyUs(limit) => {
                let deep = |state: &KnobIdleState| state.latency_us > *limit;
                if states.first().is_some_and(deep) {
                    let least = states[0].latency_us;
                    return Err(KnobRefusal::Level(format!(
                        "the shallowest state of CPU {cpu} already takes {least}us"
                    )));
                }
                states.iter().map(deep).collect()
            }
        })
    }
}

impl Knob for Idle {
    fn info(&self) -> &'static KnobInfo {
        &KnobInfo {
            name: "idle",
            what: "the idle states that a CPU may enter: NAME is the deepest, no-NAME leaves one \
                   out, none never sleeps",
            mechanism: "/sys/devices/system/cpu/cpu*/cpuidle/state*/disable, for a latency limit \
                        /dev/cpu_dma_latency, and another cpuidle governor if need be",
            scope: "every CPU, or those of LEVEL@CPUS",
            proof: "the usage counters of the disabled states stand still while CPUs idle",
        }
    }

    fn levels(&self, root: &Root) -> Result<Vec<String>, Unavailable> {
        self.read(root)?;
        let mut cpus = Vec::new();
        for cpu in topology::online(root)? {
            cpus.push((cpu, states(root, cpu)?));
        }
        // Where CPUs differ, each level names the CPUs that have it.
        let mut names: Vec<&str> = Vec::new();
        for state in cpus.iter().flat_map(|(_, states)| states).filter(|state| !state.is_poll()) {
            if !names.iter().any(|name| state.is_called(name)) {
                names.push(&state.name);
            }
        }
        let without = names.iter().map(|name| format!("no-{name}"));
        let all = ["all", "none"].into_iter().chain(names.iter().copied()).map(str::to_owned);
        let all: Vec<String> = all.chain(without).collect();
        let takes = |cpu: u32, states: &[KnobIdleState], level: &&String| {
            IdleLevel::parse(level).disables(cpu, states).is_ok()
        };
        let of = |(cpu, states): &(u32, Vec<KnobIdleState>)| {
            (all.iter().filter(|level| takes(*cpu, states, level)).cloned().collect(), vec![*cpu])
        };
        let mut levels = common(cpus.iter().map(of).collect());
        if root.exists(DMA_LATENCY) {
            levels.push("LATENCYus such as 10us".to_owned());
        }
        Ok(levels)
    }

    fn read(&self, root: &Root) -> Result<String, Unavailable> {
        let mut values = Vec::new();
        for cpu in topology::online(root)? {
            values.push((label(&states(root, cpu)?), vec![cpu]));
        }
        Ok(tally(values))
    }

    fn plan(&self, root: &Root, level: &str) -> Result<KnobChange, KnobRefusal> {
        let (text, cpus) = scoped(level)?;
        let online = topology::online(root)?;
        if let Some(cpu) = cpus.iter().flatten().find(|cpu| !online.contains(cpu)) {
            return Err(KnobRefusal::Level(format!("CPU {cpu} is not online")));
        }
        let wanted_level = IdleLevel::parse(text);
        let everywhere = cpus.is_none();
        let (mut writes, mut shut, mut open) = (Vec::new(), Vec::new(), Vec::new());
        for cpu in cpus.unwrap_or(online) {
            let states = states(root, cpu)?;
            for (state, disable) in states.iter().zip(wanted_level.disables(cpu, &states)?) {
                (if disable { &mut shut } else { &mut open }).push(WatchedState::new(cpu, state));
                let new = if disable { "1" } else { "0" };
                let place = KnobTarget::file(file(cpu, state.number, "disable"));
                writes.extend(KnobWrite::turn(root, place, new)?);
            }
        }
        if let (true, IdleLevel::LatencyUs(us)) = (everywhere, &wanted_level) {
            // The limit holds while the file is open.
            let place = KnobTarget::of(DMA_LATENCY, TargetPart::Held);
            writes = vec![KnobWrite::release(place, us.to_string())];
        } else if !shut.is_empty() {
            let governor = honouring_governor(root)?;
            writes.splice(0..0, governor);
        }
        Ok(KnobChange { writes, prove: prove(shut, open) })
    }
}

/// A write that selects a governor which honours disabled states, if the present one does not and
/// there is one.
fn honouring_governor(root: &Root) -> Result<Option<KnobWrite>, RootError> {
    let deaf = root.value(GOVERNOR).is_ok_and(|now| IGNORES_DISABLED.contains(&now.as_str()));
    let known = root.value(GOVERNORS).unwrap_or_default();
    let other =
        HONOURS_DISABLED.iter().find(|name| known.split_whitespace().any(|known| known == **name));
    match (deaf, other) {
        (true, Some(name)) => KnobWrite::turn(root, KnobTarget::file(GOVERNOR), *name),
        _ => Ok(None),
    }
}

/// The present level of a CPU.
fn label(states: &[KnobIdleState]) -> String {
    let disabled: Vec<&KnobIdleState> = states.iter().filter(|state| state.disabled).collect();
    let enabled = states.iter().rposition(|state| !state.disabled);
    match (disabled.as_slice(), enabled) {
        ([], _) => "all".to_owned(),
        (_, Some(0)) if states[0].is_poll() => "none".to_owned(),
        // The disabled ones are the deepest.
        (all, Some(deepest)) if deepest + all.len() + 1 == states.len() => {
            states[deepest].name.clone()
        }
        (all, _) => {
            all.iter().map(|state| format!("no-{}", state.name)).collect::<Vec<_>>().join("+")
        }
    }
}

/// An idle state of a CPU and its usage counter.
struct WatchedState {
    cpu: u32,
    name: String,
    usage: String,
}

impl WatchedState {
    fn new(cpu: u32, state: &KnobIdleState) -> WatchedState {
        WatchedState { cpu, name: state.name.clone(), usage: file(cpu, state.number, "usage") }
    }
}

/// Idle periods of each CPU for the proof, and before it to leave the present state: an entry is
/// counted when it ends.
const IDLE_PERIODS: u32 = 100;
const SETTLE: u32 = 10;
/// How long to wait for an idle period where other processes keep the CPUs busy.
const IDLE_TIMEOUT: Duration = Duration::from_secs(1);
/// CPUs that are woken for the proof at most.
const MAX_CPUS: usize = 64;

fn prove(shut: Vec<WatchedState>, open: Vec<WatchedState>) -> Prove {
    Box::new(move |root| {
        let online: BTreeSet<u32> =
            topology::online(root).unwrap_or_default().into_iter().collect();
        let cpus: BTreeSet<u32> = shut.iter().chain(&open).map(|watched| watched.cpu).collect();
        let cpus: Vec<u32> = cpus.intersection(&online).copied().take(MAX_CPUS).collect();
        let here = |watched: &&WatchedState| cpus.contains(&watched.cpu);
        let (shut, open): (Vec<&WatchedState>, Vec<&WatchedState>) =
            (shut.iter().filter(here).collect(), open.iter().filter(here).collect());
        let count = |of: &[&WatchedState]| -> Result<Vec<u64>, RootError> {
            of.iter().map(|watched| root.number(&watched.usage)).collect()
        };
        let idle = |naps| if root.is_live() { load::nap(&cpus, naps) } else { pause() };
        let watch = || -> Result<(Vec<u64>, Vec<u64>), RootError> {
            idle(SETTLE);
            let before = (count(&shut)?, count(&open)?);
            let limit = Instant::now() + IDLE_TIMEOUT;
            loop {
                idle(IDLE_PERIODS);
                // The disabled states are read last, so that no entry is missed.
                let open_gained = since(&before.1, count(&open)?);
                let gained = (since(&before.0, count(&shut)?), open_gained);
                let entered = gained.0.iter().any(|gained| *gained > 0);
                let all_idled = idled(&open, &gained.1).len() == cpus.len();
                if entered || all_idled || Instant::now() > limit {
                    return Ok(gained);
                }
            }
        };
        let (shut_gained, open_gained) = match watch() {
            Ok(gained) => gained,
            Err(error) => return ProofOutcome::Unverified(error.to_string()),
        };
        let entered: Vec<String> = shut
            .iter()
            .zip(&shut_gained)
            .filter(|(_, gained)| **gained > 0)
            .map(|(watched, gained)| {
                format!("CPU {} entered {} {gained} times", watched.cpu, watched.name)
            })
            .collect();
        if !entered.is_empty() {
            return ProofOutcome::Refuted(entered.join(", "));
        }
        let entries: u64 = open_gained.iter().sum();
        let names: BTreeSet<&str> = shut.iter().map(|watched| watched.name.as_str()).collect();
        let names: Vec<&str> = names.into_iter().collect();
        let observed = idled(&open, &open_gained);
        let missing: Vec<u32> =
            cpus.iter().copied().filter(|cpu| !observed.contains(cpu)).collect();
        if cpus.is_empty() || !missing.is_empty() {
            return ProofOutcome::Unverified(format!(
                "CPUs {} had no idle period to observe",
                cpu_list::show(&missing)
            ));
        }
        let which = match names.is_empty() {
            true => "every state enabled".to_owned(),
            false => format!("none of them in {}", names.join(", ")),
        };
        let on = cpu_list::show(&cpus);
        ProofOutcome::Proven(format!("{entries} idle periods on CPUs {on}, {which}"))
    })
}

/// The CPUs that entered one of these states.
fn idled(open: &[&WatchedState], gained: &[u64]) -> BTreeSet<u32> {
    let entered = open.iter().zip(gained).filter(|(_, gained)| **gained > 0);
    entered.map(|(watched, _)| watched.cpu).collect()
}

fn since(before: &[u64], now: Vec<u64>) -> Vec<u64> {
    now.iter().zip(before).map(|(now, before)| now.saturating_sub(*before)).collect()
}

/// Lets a test change a recorded machine.
fn pause() {
    std::thread::sleep(Duration::from_millis(20));
}
