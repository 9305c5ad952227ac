//! One pass of a simulation: opens and loads a store and runs operations in one thread.

use std::ffi::OsString;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use drive::{Network, NoObserver, PhaseKind, Target, Ticks};
use host::Root;
use host::cachegrind::{CacheGeometry, Cachegrind, EventTotals, SimulatedEvents};
use model::signal::{
    SIMULATED_BRANCHES, SIMULATED_D1_MISSES, SIMULATED_INSTRUCTIONS, SIMULATED_LL_MISSES,
    SIMULATED_MISPREDICTS, Signal,
};
use model::{Phase, Reading, Scope, StopCondition, Unavailable};
use serde::{Deserialize, Serialize};
use store::{Directory, StoreUrl};
use study::{LoadConfig, Segment, ServerSpec, Simulation};
use workload::{Workload, WorkloadSpec};

use crate::error::ExecuteError;
use crate::load_plan::load_plan;
use crate::load_step::LoadStep;
use crate::started_server;

/// The signals of a simulation, for where there are none.
const SIGNALS: [Signal; 5] = [
    SIMULATED_INSTRUCTIONS,
    SIMULATED_BRANCHES,
    SIMULATED_MISPREDICTS,
    SIMULATED_D1_MISSES,
    SIMULATED_LL_MISSES,
];

/// The configuration of a pass, passed in a file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SimulatedPass {
    pub store: StoreUrl,
    pub workload: WorkloadSpec,
    /// Operations after loading, by one thread.
    pub operations: u64,
}

/// Runs one pass on a store in this process. Its directory is cleared first.
///
/// # Errors
/// The store fails.
pub fn run_pass(pass: &SimulatedPass) -> Result<(), ExecuteError> {
    if !pass.store.path.as_os_str().is_empty() {
        Directory::claim(&pass.store, 0)?.clear()?;
    }
    let store = drive::open(&pass.store)?;
    run_phases(&Ticks::still(), store, &pass.workload, pass.operations, &Arc::default())
}

/// Loads the data and runs so many operations, one after the other.
fn run_phases(
    clock: &Ticks,
    store: Arc<dyn Target>,
    spec: &WorkloadSpec,
    operations: u64,
    stop: &Arc<AtomicBool>,
) -> Result<(), ExecuteError> {
    let workload = Arc::new(Workload::new(spec)?);
    let mut closed = LoadConfig { pin: false, ..LoadConfig::closed(1) };
    let load = load_plan(&closed, PhaseKind::Load, spec.seed, stop);
    drive::drive(clock, Arc::clone(&store), &workload, &load, &mut NoObserver)?;
    closed.shape.until = StopCondition { operations: Some(operations), time: None };
    let measure = load_plan(&closed, PhaseKind::Mix, spec.seed, stop);
    let outcome = drive::drive(clock, store, &workload, &measure, &mut NoObserver)?;
    match outcome.gave_up {
        _ if stop.load(Ordering::Relaxed) => Err(ExecuteError::Failed("it was stopped".to_owned())),
        Some(why) => Err(ExecuteError::Failed(why)),
        None => Ok(()),
    }
}

/// The simulated signals of a step's workload on its store, or unavailable ones with the reason.
pub(crate) fn simulate(
    simulation: &Simulation,
    root: &Root,
    program: &[OsString],
    segment: &Segment,
    step: LoadStep<'_>,
    stop: &Arc<AtomicBool>,
) -> Vec<Reading> {
    match of_step(simulation, root, program, (segment, step), stop) {
        Ok((simulated, scope)) => simulated.readings(scope),
        Err(why) => SIGNALS.map(|signal| absent(signal, &why)).to_vec(),
    }
}

fn absent(signal: Signal, why: &Unavailable) -> Reading {
    let source = "cachegrind".to_owned();
    Reading { source, ..signal.answered(why.clone().into(), 0.0) }
}

fn of_step(
    simulation: &Simulation,
    root: &Root,
    program: &[OsString],
    (segment, step): (&Segment, LoadStep<'_>),
    stop: &Arc<AtomicBool>,
) -> Result<(SimulatedEvents, Scope), Unavailable> {
    if step.phase() == Phase::Load || step.activity.trace().is_some() {
        return Err(Unavailable::new(
            "a load and a trace are not simulated: only their number of operations would change",
            "choose a workload with operations",
        ));
    }
    let geometry = match simulation.caches {
        Some((i1, d1, ll)) => CacheGeometry::new(i1, d1, ll)?,
        None => CacheGeometry::of(root)?,
    };
    let cachegrind = Cachegrind::find(&Root::live(), geometry)?;
    let folder = PassFolder::make(segment).map_err(|why| {
        Unavailable::new(
            format!("cannot make a folder for cachegrind's files: {why}"),
            "free some space, or let kvmeter write next to the store",
        )
    })?;
    match (&segment.server, segment.store.servers.is_empty()) {
        (Some(server), _) if server.hosts().is_some() => Err(Unavailable::new(
            "the server runs on another machine",
            "start it on this one: leave out --server-on",
        )),
        (Some(server), _) => {
            let server = ServedPass {
                cachegrind: &cachegrind,
                server,
                segment,
                step,
                folder: &folder.0,
                stop,
            };
            server.per_operation(simulation).map(|simulated| (simulated, Scope::Server))
        }
        (None, true) if program.is_empty() => Err(Unavailable::new(
            "this program cannot run itself under cachegrind",
            "use the command `kvmeter`",
        )),
        (None, true) => {
            let simulated =
                embedded(&cachegrind, simulation, program, (segment, step), &folder.0, stop);
            simulated.map(|simulated| (simulated, Scope::Process))
        }
        (None, false) => Err(Unavailable::new(
            "the server runs already, and cachegrind can only start a program",
            "let kvmeter start the server",
        )),
    }
}

/// kvmeter itself under cachegrind, with a directory of its own.
fn embedded(
    cachegrind: &Cachegrind,
    simulation: &Simulation,
    program: &[OsString],
    (segment, step): (&Segment, LoadStep<'_>),
    folder: &Path,
    stop: &AtomicBool,
) -> Result<SimulatedEvents, Unavailable> {
    let mut store = segment.store.clone();
    if !store.path.as_os_str().is_empty() {
        store.path = folder.join("data");
    }
    let (few, many) = simulation.operations;
    for operations in [few, many] {
        let pass = SimulatedPass {
            store: store.clone(),
            workload: step.load.workload.clone(),
            operations,
        };
        let written =
            serde_json::to_string(&pass).map_err(|error| error.to_string()).and_then(|text| {
                std::fs::write(file(folder, operations), text).map_err(|error| error.to_string())
            });
        written.map_err(|why| Unavailable::new(why, "free some space next to the store"))?;
    }
    let command = |operations: u64| {
        let mut words = program.to_vec();
        words.push(file(folder, operations).into_os_string());
        words
    };
    cachegrind
        .per_operation(command, simulation.operations, folder, simulation.limit, stop)
        .map_err(|error| failed(&error.to_string()))
}

fn file(folder: &Path, operations: u64) -> PathBuf {
    folder.join(format!("pass-{operations}.json"))
}

fn failed(why: &str) -> Unavailable {
    Unavailable::new(why, "change `operations` or `limit` in [probes.cachegrind]")
}

/// A server that is started under cachegrind for each pass, with the client outside.
struct ServedPass<'a> {
    cachegrind: &'a Cachegrind,
    server: &'a ServerSpec,
    segment: &'a Segment,
    step: LoadStep<'a>,
    folder: &'a Path,
    stop: &'a Arc<AtomicBool>,
}

impl ServedPass<'_> {
    fn per_operation(&self, simulation: &Simulation) -> Result<SimulatedEvents, Unavailable> {
        let (few, many) = simulation.operations;
        let totals = |operations| {
            self.pass(operations, simulation.limit).map_err(|error| failed(&error.to_string()))
        };
        let (first, again, more) = (totals(few)?, totals(few)?, totals(many)?);
        let geometry = self.cachegrind.geometry().clone();
        SimulatedEvents::steady((&first, &again, few), (&more, many), geometry)
            .map_err(|error| failed(&error.to_string()))
    }

    fn pass(&self, operations: u64, limit: Duration) -> Result<EventTotals, ExecuteError> {
        let prefix = self.cachegrind.prefix(self.folder);
        // On an early return it is dropped, which kills the server.
        let started = started_server::start_behind(self.server, prefix, limit, self.stop)?;
        let Some(mut remote) = self.segment.store.remote()? else {
            return Err(ExecuteError::Failed("the store has no servers".to_owned()));
        };
        remote.servers = started.addresses();
        remote.timeout = remote.timeout.max(SLOW);
        let explain = |error| started.explain(error);
        let network = Network::connect(remote).map_err(ExecuteError::from);
        let network = Arc::new(network.map_err(explain)?);
        let pid = started.first.launched.pid;
        let done =
            run_phases(&Ticks::new(), network, &self.step.load.workload, operations, self.stop);
        done.map_err(explain)?;
        started.end_within(limit)?;
        Cachegrind::totals(self.folder, pid)
            .map_err(|error| ExecuteError::Failed(error.to_string()))
    }
}

/// Timeout of answers from a simulated server, which is slow.
const SLOW: Duration = Duration::from_secs(10);

/// A folder next to the store's or in the temporary folder; deleted on drop.
struct PassFolder(PathBuf);

impl PassFolder {
    fn make(segment: &Segment) -> std::io::Result<PassFolder> {
        let name = format!("kvmeter-cachegrind-{}", uuid::Uuid::new_v4());
        let parent = segment.store.path.parent().filter(|parent| parent.is_dir());
        let above = parent.map_or_else(std::env::temp_dir, Path::to_path_buf);
        let folder = std::path::absolute(above.join(name))?;
        std::fs::DirBuilder::new().mode(0o700).create(&folder)?;
        Ok(PassFolder(folder))
    }
}

impl Drop for PassFolder {
    fn drop(&mut self) {
        // A folder that is left over has kvmeter in its name.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
