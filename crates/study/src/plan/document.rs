//! From one document to its runs: every store once through its whole sequence, and every bench.

use std::path::{Path, PathBuf};

use host::Root;
use model::{Design, Phase};
use store::StoreUrl;
use toml::Spanned;

use super::checks::{check_keys, check_name, check_needs_servers, check_scans, check_values};
use super::sections::{check_variants, sections};
use super::stores::{StudyStore, stores};
use super::{Activity, Plan, Segment, Step, StoreLoad, label};
use crate::activity::{self, Bench};
use crate::calibrate;
use crate::co_runner;
use crate::error::StudyError;
use crate::knobs::{self, KnobLevels};
use crate::load::{LoadConfig, load_phase_config, measure_config};
use crate::probes::{self, ProbesConfig};
use crate::settings::settings;
use crate::spec::StudySpec;
use crate::study_text::StudyText;
use crate::trace;

/// One repeat of everything: each store once through the sequence, then the benches. Stores
/// without a path get a folder of their own under `data`. The order of repeats, and what varies,
/// are decided elsewhere; `runs` selects stores and activities.
pub(super) fn of(
    source: &StudyText,
    data: &Path,
    root: &Root,
    runs: &dyn Fn(&str, Option<&str>) -> bool,
) -> Result<Plan, StudyError> {
    let spec = source.spec()?;
    check_name(source, &spec)?;
    check_variants(source, &spec)?;
    if spec.repeats == 0 {
        return Err(StudyError::Request(format!(
            "{}: repeats must be more than zero",
            source.origin
        )));
    }
    let activities = activity::of_study(source, &spec, runs)?;
    let levels = knobs::of_study(source, &spec, root)?;
    let has_activities = activity::places(&spec).next().is_some();
    if let Some(step) = spec.sequence.first().filter(|_| has_activities && spec.store.is_empty()) {
        let words = "no store runs this; add a table such as [store.memcached], or leave \
                     `sequence` out";
        return Err(source.at(step.span(), words));
    }
    let mut stores = spec.store.keys();
    let mut segments = match stores.any(|name| runs(name.get_ref(), None)) || !has_activities {
        true => of_stores(source, &spec, data, root, &levels)?,
        false => Vec::new(),
    };
    let stores = spec.store.len();
    for (nth, activity) in activities.into_iter().enumerate() {
        let unit = (stores + nth) as u32;
        segments.push(segment_of_bench(activity, unit, spec.seed, &levels));
    }
    let agents = spec.agents.clone();
    let plan = Plan {
        name: spec.name.get_ref().clone(),
        question: spec.question.clone(),
        seed: spec.seed,
        text: source.text.clone(),
        segments,
        agents: None,
        probes: ProbesConfig { root: root.clone(), ..probes::of_study(source, &spec)? },
        repeats: spec.repeats,
        design: Design::default(),
    };
    trace::check_stdin(&plan)?;
    match agents {
        Some(machines) => crate::agents_config::with_agents_table(plan, source, &spec, &machines),
        None => Ok(plan),
    }
}

/// The segment of a run without a store.
fn segment_of_bench(bench: Bench, unit: u32, seed: u64, levels: &KnobLevels) -> Segment {
    let mut settings = bench.settings(seed);
    settings.insert("repeat".to_owned(), "1".to_owned());
    levels.settings(&mut settings);
    let (kind, _) = bench.place();
    let store = StoreUrl {
        scheme: kind.to_owned(),
        path: PathBuf::new(),
        servers: Vec::new(),
        options: Vec::new(),
    };
    let step = Step {
        ordinal: 0,
        unit,
        repeat: 1,
        label: bench.label(),
        activity: Activity::Bench(bench),
        settings,
    };
    Segment {
        store,
        server: None,
        temporary: false,
        steps: vec![step],
        preparing: LoadConfig::closed(1),
        knobs: levels.clone(),
        copies: false,
    }
}

/// Every store once through the whole sequence.
fn of_stores(
    source: &StudyText,
    spec: &StudySpec,
    data: &Path,
    root: &Root,
    levels: &KnobLevels,
) -> Result<Vec<Segment>, StudyError> {
    let stores = stores(source, spec, data)?;
    let machines = spec.agents.as_ref().map_or(1, |agents| agents.get_ref().hosts.get_ref().len());
    let cores = host::cpus(root).map_or(1, |order| order.cpus.len() as u32);
    // Assumes that agents are machines like this one.
    let cores = cores.saturating_mul(machines.max(1) as u32);
    let load = load_phase_config(source, &spec.load, levels, cores)?;
    let measure = measure_config(source, &spec.measure, levels, cores)?.with_default_length();
    let traces = trace::of_study(source, spec, cores)?;
    let sections = sections(source, spec, &load, &measure)?;
    for StudyStore { url, .. } in &stores {
        check_needs_servers(url, &measure)?;
        let flushes = matches!(url.remote(), Ok(Some(remote)) if remote.may_flush);
        if sections.len() > 1 && !url.servers.is_empty() && !flushes {
            return Err(StudyError::Request(format!(
                "{}: \"clear\" empties the servers of `{}` of all that they hold; allow it with \
                 `clear = \"flush\"` in [store.{}]",
                source.origin, url.scheme, url.scheme
            )));
        }
        for (name, _, workload) in sections.iter().flatten() {
            check_scans(url, workload).map_err(|words| {
                let step = spec.sequence.iter().find(|step| step.get_ref() == name);
                source.at(step.unwrap_or(&spec.sequence[0]).span(), &words)
            })?;
            let place = spec.data.key.as_ref().map_or(spec.sequence[0].span(), Spanned::span);
            check_keys(url, workload).map_err(|words| source.at(place, &words))?;
            let place = spec.data.value.as_ref().map_or(spec.sequence[0].span(), Spanned::span);
            check_values(url, workload).map_err(|words| source.at(place, &words))?;
        }
    }

    let co_runner = co_runner::of_study(source, spec)?;
    let calibrated = calibrate::of_study(source, spec)?;
    let mut segments = Vec::new();
    for (store, StudyStore { url, temporary, server }) in stores.iter().enumerate() {
        for section in &sections {
            let mut steps = Vec::new();
            for (name, phase, workload) in section {
                let traced = traces.get(name).filter(|_| *phase == Phase::Measure);
                let load_config = match phase {
                    Phase::Load => load.clone(),
                    Phase::Measure | Phase::Simulate => {
                        traced.map_or(&measure, |own| &own.load_config).clone()
                    }
                };
                let target = (url, server.as_ref());
                let mut settings = settings(target, name, workload, &load_config, 1);
                if let Some(traced) = traced {
                    trace::replace_workload_settings(
                        &traced.recording,
                        &load_config,
                        &mut settings,
                    );
                }
                let measured = *phase == Phase::Measure && load_config.of_maximum;
                let calibrate = match measured {
                    true => calibrate::of_step(source, spec, calibrated.as_ref(), workload)?,
                    false => None,
                };
                let co_runner = co_runner.clone().filter(|_| *phase == Phase::Measure);
                if let Some(co_runner) = &co_runner {
                    co_runner.settings(&mut settings);
                }
                levels.settings(&mut settings);
                if let Some(table) = spec.mbwu.as_ref().filter(|_| *phase == Phase::Measure) {
                    table.get_ref().first_round(&mut settings);
                }
                let load = Box::new(StoreLoad {
                    co_runner,
                    calibrate,
                    ..StoreLoad::new(workload.clone(), load_config)
                });
                let activity = match (phase, traced) {
                    (Phase::Load, _) => Activity::Load(load),
                    (_, Some(own)) => Activity::Replay(load, own.recording.clone()),
                    (_, None) => Activity::Measure(load),
                };
                steps.push(Step {
                    ordinal: 0,
                    unit: store as u32,
                    repeat: 1,
                    label: label(url, name),
                    activity,
                    settings,
                });
            }
            segments.push(Segment {
                store: url.clone(),
                server: server.clone(),
                temporary: *temporary,
                steps,
                preparing: load.clone(),
                knobs: levels.clone(),
                copies: false,
            });
        }
    }
    Ok(segments)
}
