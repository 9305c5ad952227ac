//! Media-based work units, found by runs on 1, 2, ... n devices: which round is next is for
//! [`analyse::mbwu`] to say, what came of it is measured and kept like any run.

mod check;
mod play;
mod table;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use analyse::mbwu::{Evaluation, Next, Request, Round, Stage, keys};
use drive::Ticks;
use host::Root;
use model::Count;
use record::{Execution, Run};
use store::StoreUrl;

use crate::engine::{Listener, Scene};
use crate::error::StudyError;
use crate::knobs::Seen;
use crate::plan::{Plan, Segment, Step};
use crate::probes::measure_idle;
use crate::source::Source;

pub use table::{MbwuTable, PreconditionTable};

/// The folder of the store on each device.
const FOLDER: &str = "kvmeter-mbwu";

/// What is evaluated: one store and one workload of a study, on these devices.
#[derive(Debug, Clone)]
pub struct Mbwu {
    /// With the first round as its only step.
    plan: Plan,
    /// What every round is but for its threads.
    template: Step,
    store: StoreUrl,
    /// The store's folder on each device.
    folders: Vec<PathBuf>,
    pub request: Request,
    reload: bool,
}

impl Mbwu {
    /// The `[mbwu]` of a study; none if it has none.
    ///
    /// # Errors
    /// The text is no study.
    pub fn table(source: &Source) -> Result<Option<MbwuTable>, StudyError> {
        Ok(source.spec()?.mbwu.map(toml::Spanned::into_inner))
    }

    /// The evaluation that a study with `[mbwu]` asks for. Each of `devices` is a folder on a
    /// file system of its own device.
    ///
    /// # Errors
    /// What in the study, or which device, cannot be used.
    pub fn of(source: &Source, devices: &[PathBuf], root: &Root) -> Result<Mbwu, StudyError> {
        let spec = source.spec()?;
        let table = spec.mbwu.clone().map(toml::Spanned::into_inner).unwrap_or_default();
        check::table(source, &table)?;
        check::spec(source, &spec)?;
        check::devices(root, devices)?;
        let plan = Plan::of(source, &PathBuf::new(), root)?;
        let (segment, template) = check::the_only_step(source, &plan)?;
        let request = Request {
            loads: table.threads.get_ref().clone(),
            gain: *table.gain.get_ref(),
            most_rounds: *table.rounds.get_ref(),
            devices: devices.len() as u32,
            given_unit: table.unit.map(|unit| unit.get_ref().0),
        };
        let mut template = template.clone();
        request.settings(&mut template.settings);
        if let Some(most) = table.memory_bandwidth {
            let most = most.get_ref().0.to_string();
            template.settings.insert(keys::MEMORY_BANDWIDTH.to_owned(), most);
        }
        if let Ok(memory) = host::memory_total_bytes(root) {
            let ratio = template.workload.data_bytes() as f64 / (memory as f64).max(1.0);
            let key = keys::DATA_OVER_MEMORY.to_owned();
            template.settings.insert(key, format!("{ratio:.4}"));
        }
        let folders: Vec<PathBuf> = devices.iter().map(|device| device.join(FOLDER)).collect();
        let mbwu = Mbwu {
            store: segment.store.clone(),
            plan: Plan { segments: Vec::new(), ..plan.clone() },
            template,
            folders,
            request,
            reload: table.reload,
        };
        for folder in &mbwu.folders {
            check::room(&mbwu.store.at(folder), &mbwu.template)?;
        }
        let first = mbwu.step(Stage::Raise, 1, mbwu.request.loads[0], 1, 1)?;
        let store = mbwu.store.at(&mbwu.folders[0]);
        let segment = Segment { store, temporary: false, steps: vec![first], ..segment.clone() };
        Ok(Mbwu { plan: Plan { segments: vec![segment], ..mbwu.plan }, ..mbwu })
    }

    /// What is certain to run, to begin a results file with.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Finds the unit and counts. Each round is kept as it ends; `before` are those of an earlier
    /// invocation that did not come to its end. When `stop` is raised the answer is what the rounds
    /// so far come to.
    ///
    /// # Errors
    /// A device, or the store on it, failed; what was kept stays kept.
    pub fn run(
        &self,
        execution: &Execution,
        before: &[Run],
        keep: &mut dyn FnMut(&Run) -> Result<(), StudyError>,
        listener: &mut dyn Listener,
        stop: &Arc<AtomicBool>,
        seen: &Seen,
    ) -> Result<Evaluation, StudyError> {
        let clock = Ticks::new();
        self.plan.probes.check_required()?;
        let mut rounds: Vec<Round> = before.iter().filter_map(Round::of).collect();
        let mut ordinal = before.iter().map(|run| run.ordinal).max().unwrap_or(0);
        let mut idle = None;
        let mut fresh = vec![false; self.folders.len()];
        loop {
            let (stage, devices, threads, number) =
                match analyse::mbwu::next(&self.request, &rounds) {
                    Next::Done(evaluation) => return Ok(*evaluation),
                    Next::Measure { stage, devices, threads, number } => {
                        (stage, devices, threads, number)
                    }
                };
            let idle =
                &*idle.get_or_insert_with(|| measure_idle(&self.plan.probes, &mut *listener, stop));
            let mut scene = Scene {
                clock: &clock,
                execution,
                stop,
                crew: None,
                probes: &self.plan.probes,
                idle,
                seen,
            };
            ordinal += 1;
            let step = self.step(stage, devices, threads, number, ordinal)?;
            let count = devices as usize;
            self.load(&mut scene, &step, count, &mut fresh, listener)?;
            let run = match stop.load(Ordering::Relaxed) {
                true => None,
                false => self.round(&mut scene, &step, count, keep, listener)?,
            };
            fresh[..count].fill(false);
            match run.as_ref().and_then(Round::of) {
                Some(round) => rounds.push(round),
                None => return Ok(Evaluation::of(&self.request, &rounds)),
            }
        }
    }

    /// One round.
    fn step(
        &self,
        stage: Stage,
        devices: u32,
        threads: u32,
        number: u32,
        ordinal: u32,
    ) -> Result<Step, StudyError> {
        let mut step = self.template.clone();
        step.ordinal = ordinal;
        step.manner.threads = threads * devices;
        let records = step.workload.records.0;
        if u64::from(step.manner.threads) > records {
            return Err(StudyError::Request(format!(
                "{} threads for {records} records; lower mbwu.threads or raise data.records",
                step.manner.threads
            )));
        }
        let mut put = |key: &str, value: String| step.settings.insert(key.to_owned(), value);
        put("threads", step.manner.threads.to_string());
        if let Some(operations) = step.manner.until.operations {
            // Each device has as many as one alone.
            let all = operations.saturating_mul(u64::from(devices));
            step.manner.until.operations = Some(all);
            put("operations", Count(all).to_string());
        }
        put(keys::STAGE, stage.name().to_owned());
        put(keys::DEVICES, devices.to_string());
        put(keys::THREADS, threads.to_string());
        put(keys::ROUND, number.to_string());
        Ok(step)
    }
}
