//! Media-based work units, from runs on 1, 2, ... n devices. [`analyse::mbwu`] decides the next round;
//! each is measured and saved like any run.

mod check;
mod round;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use analyse::mbwu::{
    DeviceLoad, EvaluationRequest, EvaluationRound, NextRound, RoundPurpose, UnitEvaluation, keys,
};
use drive::Ticks;
use host::{KernelLog, Root};
use model::signal::MBWU_UNITS;
use model::{Arrivals, Count, Execution, Pacing, Run};
use store::StoreUrl;
use study::{Activity, Plan, Segment, Step, StoreLoad, StudyText, mbwu};

use crate::error::ExecuteError;
use crate::event::Listener;
use crate::execution_cache::ExecutionCache;
use crate::idle_power::measure_idle;
use crate::knobs::KnobEffects;
use crate::load_step::LoadStep;
use crate::required::check_required;
use crate::run_context::RunContext;

/// The folder of the first store on each device.
const FOLDER: &str = "kvmeter-mbwu";

/// What is evaluated: one store and one workload of a study, on these devices.
#[derive(Debug, Clone)]
pub struct MbwuEvaluation {
    /// With the first round as its only step.
    plan: Plan,
    /// A round without its threads.
    template: Step,
    template_load: StoreLoad,
    store: StoreUrl,
    /// The devices' folders.
    devices: Vec<PathBuf>,
    pub request: EvaluationRequest,
    reload: bool,
}

impl MbwuEvaluation {
    /// The evaluation that a study with `[mbwu]` asks for. Each of `devices` is a folder on a
    /// file system of its own device, of whose addresses `preconditioned` is the share.
    ///
    /// # Errors
    /// What in the study, or which device, cannot be used.
    pub fn of(
        source: &StudyText,
        devices: &[PathBuf],
        preconditioned: Option<f64>,
        root: &Root,
    ) -> Result<MbwuEvaluation, ExecuteError> {
        let table = mbwu::of_study(source)?.unwrap_or_default();
        mbwu::check(source, &table)?;
        check::devices(root, devices)?;
        let plan = Plan::of(source, &PathBuf::new(), root)?;
        let (segment, template) = mbwu::single_step(source, &plan)?;
        let request = EvaluationRequest {
            loads: table.loads(),
            gain: *table.gain.get_ref(),
            most_rounds: *table.rounds.get_ref(),
            devices: devices.len() as u32,
            given_unit: table.unit.map(|unit| unit.get_ref().0),
        };
        let mut template = template.clone();
        let load = LoadStep::of(&template)?.load.clone();
        request.settings(&mut template.settings);
        mbwu::precondition_setting(preconditioned, &mut template.settings);
        if let Some(most) = table.memory_bandwidth {
            let most = most.get_ref().0.to_string();
            template.settings.insert(keys::MEMORY_BANDWIDTH.to_owned(), most);
        }
        if let Ok(memory) = host::memory_total_bytes(root) {
            let ratio = load.workload.data_bytes() as f64 / (memory as f64).max(1.0);
            let key = keys::DATA_OVER_MEMORY.to_owned();
            template.settings.insert(key, format!("{ratio:.4}"));
        }
        let mbwu = MbwuEvaluation {
            store: segment.store.clone(),
            plan: Plan { segments: Vec::new(), ..plan.clone() },
            template,
            template_load: load,
            devices: devices.to_vec(),
            request,
            reload: table.reload,
        };
        let most = mbwu.request.loads.iter().map(|load| load.databases).max().unwrap_or(1);
        for at in 0..devices.len() {
            let own: Vec<StoreUrl> = (1..=most).map(|database| mbwu.url(at, database)).collect();
            check::room(&own, LoadStep::of(&mbwu.template)?)?;
        }
        let first = mbwu.step(RoundPurpose::Raise, 1, mbwu.request.loads[0], 1, 1)?;
        let store = mbwu.url(0, 1);
        let segment = Segment { store, temporary: false, steps: vec![first], ..segment.clone() };
        Ok(MbwuEvaluation { plan: Plan { segments: vec![segment], ..mbwu.plan }, ..mbwu })
    }

    /// A store: that of a device, counted from 0, and a database of it, counted from 1.
    fn url(&self, device: usize, database: u32) -> StoreUrl {
        let folder = match database {
            1 => FOLDER.to_owned(),
            further => format!("{FOLDER}-{further}"),
        };
        self.store.at(&self.devices[device].join(folder))
    }

    /// The stores of the first so many devices: the first database of each, then the second ...
    fn stores(&self, devices: usize, databases: u32) -> Vec<StoreUrl> {
        let each = |database| (0..devices).map(move |device| self.url(device, database));
        (1..=databases).flat_map(each).collect()
    }

    /// The plan of what is certain to run, which begins a results file.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Evaluates the unit. Each round is saved as it ends; `before` are the rounds of an earlier
    /// invocation that did not finish. After a stop the result is that of the rounds so far.
    ///
    /// # Errors
    /// A device, or the store on it, failed; saved rounds stay.
    pub fn run(
        &self,
        execution: &Execution,
        before: &[Run],
        keep: &mut dyn FnMut(&Run) -> Result<(), ExecuteError>,
        listener: &mut dyn Listener,
        stop: &Arc<AtomicBool>,
        knob_effects: &KnobEffects,
    ) -> Result<UnitEvaluation, ExecuteError> {
        let clock = Ticks::new();
        check_required(&self.plan.probes)?;
        let mut rounds: Vec<EvaluationRound> =
            before.iter().filter_map(EvaluationRound::of).collect();
        let mut ordinal = before.iter().map(|run| run.ordinal).max().unwrap_or(0);
        let mut idle = None;
        let cache = ExecutionCache::default();
        let mut fresh = BTreeSet::new();
        let mut log = KernelLog::from_now();
        loop {
            let (stage, devices, load, number) = match analyse::mbwu::next(&self.request, &rounds) {
                NextRound::Done(evaluation) => return Ok(*evaluation),
                NextRound::Measure { stage, devices, load, number } => {
                    (stage, devices, load, number)
                }
            };
            let idle =
                &*idle.get_or_insert_with(|| measure_idle(&self.plan.probes, &mut *listener, stop));
            let mut context = RunContext {
                clock: &clock,
                execution,
                stop,
                agent_pool: None,
                probes: &self.plan.probes,
                idle,
                knob_effects,
                cache: &cache,
            };
            ordinal += 1;
            let step = self.step(stage, devices, load, number, ordinal)?;
            let stores = self.stores(devices as usize, load.databases);
            // Devices that come later are loaded with the first of them.
            let all = if devices == 1 { 1 } else { self.devices.len() };
            let needed_stores = self.stores(all, load.databases);
            let loaded = self.load(
                &mut context,
                LoadStep::of(&step)?,
                (&needed_stores, &stores),
                &mut fresh,
                listener,
            );
            let begun = !rounds.is_empty();
            loaded.map_err(|error| of_a_device(error, begun, self.sectors(&mut log)))?;
            let mut keep = |run: Run| {
                let mut run = in_units(&self.request, &rounds, run);
                if !run.failures.is_empty() {
                    run.warnings.extend(self.sectors(&mut log));
                }
                keep(&run).map(|()| run)
            };
            let run = match stop.load(Ordering::Relaxed) {
                true => None,
                false => {
                    let run = self.round(
                        &mut context,
                        LoadStep::of(&step)?,
                        &stores,
                        &mut keep,
                        listener,
                    );
                    run.map_err(|error| of_a_device(error, begun, self.sectors(&mut log)))?
                }
            };
            fresh.clear();
            match run.as_ref().and_then(EvaluationRound::of) {
                Some(round) => rounds.push(round),
                None => return Ok(UnitEvaluation::of(&self.request, &rounds)),
            }
        }
    }

    /// The kernel's messages on I/O errors of the devices, if any.
    fn sectors(&self, log: &mut KernelLog) -> Option<String> {
        let root = &self.plan.probes.root;
        let volumes: Vec<String> =
            self.devices.iter().filter_map(|device| host::volume_of(root, device).ok()).collect();
        match log.errors_of(&volumes) {
            Ok(errors) if errors.is_empty() => None,
            Ok(errors) => Some(format!("the kernel's log: {}", errors.join("; "))),
            Err(why) => Some(format!("which sector failed is not known: {why}")),
        }
    }

    /// One round.
    fn step(
        &self,
        stage: RoundPurpose,
        devices: u32,
        load: DeviceLoad,
        number: u32,
        ordinal: u32,
    ) -> Result<Step, ExecuteError> {
        let mut settings = self.template.settings.clone();
        let mut own = self.template_load.clone();
        own.load_config.threads = load.threads * devices;
        if let Some(rate) = load.rate {
            let rate = rate * f64::from(devices);
            own.load_config.shape.pacing = Pacing::Open { rate, arrivals: Arrivals::Constant };
            own.load_config.shape.profile = None;
            own.load_config.settings(false, &mut settings);
        }
        let (records, threads) = (own.workload.records.0, own.load_config.threads);
        if u64::from(threads) > records {
            return Err(ExecuteError::Request(format!(
                "{threads} threads for {records} records; lower mbwu.threads or raise data.records"
            )));
        }
        settings.insert("threads".to_owned(), threads.to_string());
        if let Some(operations) = own.load_config.shape.until.operations {
            // Each device has as many as one alone.
            let all = operations.saturating_mul(u64::from(devices));
            own.load_config.shape.until.operations = Some(all);
            settings.insert("operations".to_owned(), Count(all).to_string());
        }
        mbwu::round_settings(stage, devices, number, &mut settings);
        load.settings(&mut settings);
        let activity = Activity::Measure(Box::new(own));
        Ok(Step { ordinal, activity, settings, ..self.template.clone() })
    }
}

/// An error of a store, with the kernel's messages on its devices. A directory that served a round
/// was valid: where it cannot be used any more, its device failed.
fn of_a_device(error: ExecuteError, begun: bool, sectors: Option<String>) -> ExecuteError {
    let error = match error {
        ExecuteError::Request(words) if begun => ExecuteError::Failed(words),
        error => error,
    };
    match (&error, sectors) {
        (ExecuteError::Failed(_), Some(words)) => error.with_note(&words),
        _ => error,
    }
}

/// A round with its throughput in units, where one is known after the rounds before it.
fn in_units(request: &EvaluationRequest, before: &[EvaluationRound], mut run: Run) -> Run {
    if let Some(units) = analyse::mbwu::in_units(request, before, run.throughput()) {
        run.readings.push(MBWU_UNITS.value(units, run.seconds));
    }
    run
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_cannot_be_used_any_more_failed() {
        let refused = || ExecuteError::Request("/disk: read-only; name another one".to_owned());
        assert!(of_a_device(refused(), false, Some("the kernel's log".to_owned())).is_request());
        let failed = of_a_device(refused(), true, Some("the kernel's log: sector 8".to_owned()));
        assert!(!failed.is_request());
        let words = "/disk: read-only; name another one\nthe kernel's log: sector 8";
        assert_eq!(failed.to_string(), words);
    }
}
