//! Stores, each once through the sequence of a study.

use std::collections::BTreeMap;
use std::path::Path;

use host::Root;
use model::{Phase, RunSettings};
use toml::Spanned;

use super::calibrate::{self, Calibration};
use super::checks::{check_keys, check_needs_servers, check_requests, check_values};
use super::co_runner::{self, CoRunner};
use super::load_tables::{load_phase_config, measure_config};
use super::mbwu::first_round;
use super::sections::{Section, SectionStep, sections};
use super::segments::Segment;
use super::settings::settings;
use super::step::{Activity, Step, StoreLoad, label};
use super::stores::{StudyStore, stores};
use super::trace::{self, TraceTable};
use crate::error::StudyError;
use crate::knobs::KnobLevels;
use crate::load::LoadConfig;
use crate::text::{StudySpec, StudyText};

/// Every store once through the whole sequence.
pub(super) fn of_stores(
    source: &StudyText,
    spec: &StudySpec,
    data: &Path,
    root: &Root,
    levels: &KnobLevels,
) -> Result<Vec<Segment>, StudyError> {
    let stores = stores(source, spec, data, levels)?;
    let sequence = Sequence::of(source, spec, root, levels)?;
    stores.iter().try_for_each(|store| sequence.check(store))?;
    let mut segments = Vec::new();
    for (unit, store) in stores.iter().enumerate() {
        for section in &sequence.sections {
            segments.push(sequence.segment(unit as u32, store, section)?);
        }
    }
    Ok(segments)
}

/// What all stores of a study go through.
struct Sequence<'a> {
    source: &'a StudyText,
    spec: &'a StudySpec,
    levels: &'a KnobLevels,
    load: LoadConfig,
    measure: LoadConfig,
    traces: BTreeMap<String, TraceTable>,
    /// From one `clear` to the next.
    sections: Vec<Section>,
    co_runner: Option<CoRunner>,
    calibration: Option<Calibration>,
}

impl<'a> Sequence<'a> {
    fn of(
        source: &'a StudyText,
        spec: &'a StudySpec,
        root: &Root,
        levels: &'a KnobLevels,
    ) -> Result<Sequence<'a>, StudyError> {
        let agents = spec.agents.as_ref();
        let machines = agents.map_or(1, |agents| agents.get_ref().hosts.get_ref().len());
        let cores = host::cpus(root).map_or(1, |order| order.cpus.len() as u32);
        // Assumes that agents are machines like this one.
        let cores = cores.saturating_mul(machines.max(1) as u32);
        let load = load_phase_config(source, &spec.load, levels, cores)?;
        let measure = measure_config(source, &spec.measure, levels, cores)?.with_default_length();
        let traces = trace::of_study(source, spec, cores)?;
        let sections = sections(source, spec, &load, &measure)?;
        Ok(Sequence {
            source,
            spec,
            levels,
            load,
            measure,
            traces,
            sections,
            co_runner: co_runner::of_study(source, spec, levels)?,
            calibration: calibrate::of_study(source, spec)?,
        })
    }

    /// Refuses what a store cannot do.
    fn check(&self, StudyStore { url, .. }: &StudyStore) -> Result<(), StudyError> {
        let Sequence { source, spec, sections, .. } = self;
        check_needs_servers(url, &self.measure)?;
        let flushes = matches!(url.remote(), Ok(Some(remote)) if remote.may_flush);
        // Other servers keep apart what is kvmeter's.
        if sections.len() > 1 && url.multiplexes() && !url.servers.is_empty() && !flushes {
            return Err(StudyError::Request(format!(
                "{}: \"clear\" deletes all data of the servers of `{}`; allow it with `clear = \
                 \"flush\"` in [store.{}]",
                source.origin, url.scheme, url.scheme
            )));
        }
        for (name, _, workload) in sections.iter().flatten() {
            if let Some(own) = self.traces.get(name) {
                own.recording.for_store(url).map_err(|error| {
                    let step = spec.sequence.iter().find(|step| step.get_ref() == name);
                    source.at(step.unwrap_or(&spec.sequence[0]).span(), &error.to_string())
                })?;
            }
            check_requests(url, workload).map_err(|words| {
                let step = spec.sequence.iter().find(|step| step.get_ref() == name);
                source.at(step.unwrap_or(&spec.sequence[0]).span(), &words)
            })?;
            let place = spec.data.key.as_ref().map_or(spec.sequence[0].span(), Spanned::span);
            check_keys(url, workload).map_err(|words| source.at(place, &words))?;
            let place = spec.data.value.as_ref().map_or(spec.sequence[0].span(), Spanned::span);
            check_values(url, workload).map_err(|words| source.at(place, &words))?;
        }
        Ok(())
    }

    fn segment(
        &self,
        unit: u32,
        store: &StudyStore,
        section: &Section,
    ) -> Result<Segment, StudyError> {
        let steps = section.iter().map(|part| {
            let (activity, settings) = self.activity(store, part)?;
            let label = label(&store.url, &part.0);
            Ok(Step { ordinal: 0, unit, repeat: 1, label, activity, settings })
        });
        Ok(Segment {
            store: store.url.clone(),
            server: store.server.clone(),
            temporary: store.temporary,
            steps: steps.collect::<Result<_, StudyError>>()?,
            preparing: self.load.clone(),
            knobs: self.levels.clone(),
            copies: false,
        })
    }

    /// What a part of the sequence does on a store, and its settings.
    fn activity(
        &self,
        StudyStore { url, server, .. }: &StudyStore,
        (name, phase, workload): &SectionStep,
    ) -> Result<(Activity, RunSettings), StudyError> {
        let loads = *phase == Phase::Load;
        let traced = self.traces.get(name).filter(|_| !loads);
        let load_config = match (loads, traced) {
            (true, _) => &self.load,
            (false, Some(own)) => &own.load_config,
            (false, None) => &self.measure,
        };
        let mut settings = settings((url, server.as_ref()), name, workload, load_config, 1);
        if let Some(own) = traced {
            trace::replace_workload_settings(&own.recording, load_config, &mut settings);
        }
        let mut load = StoreLoad::new(workload.clone(), load_config.clone());
        if !loads {
            if load_config.of_maximum {
                let calibration = self.calibration.as_ref();
                load.calibrate = calibrate::of_step(self.source, self.spec, calibration, workload)?;
            }
            load.co_runner = self.co_runner.clone();
        }
        if let Some(co_runner) = &load.co_runner {
            co_runner.settings(&mut settings);
        }
        self.levels.settings(&mut settings);
        if let Some(table) = self.spec.mbwu.as_ref().filter(|_| !loads) {
            first_round(table.get_ref(), &mut settings);
        }
        let load = Box::new(load);
        let activity = match (loads, traced) {
            (true, _) => Activity::Load(load),
            (false, Some(own)) => Activity::Replay(load, own.recording.for_store(url)?),
            (false, None) => Activity::Measure(load),
        };
        Ok((activity, settings))
    }
}
