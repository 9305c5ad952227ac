//! From one document to its runs: every store once through its whole sequence, and every bench.

use std::path::{Path, PathBuf};

use host::Root;
use record::{Design, Phase};
use store::StoreUrl;
use toml::Spanned;

use super::checks::{check_keys, check_manner, check_name, check_scans, check_values};
use super::sections::{check_variants, sections};
use super::stores::{StudyStore, stores};
use super::{Plan, Segment, Step, label};
use crate::asking::{LoadConfig, load_manner, manner};
use crate::bench::{self, Activity};
use crate::beside;
use crate::calibrate;
use crate::error::StudyError;
use crate::knobs::{self, KnobLevels};
use crate::probes::{self, ProbesConfig};
use crate::settings::settings;
use crate::source::StudyText;
use crate::spec::StudySpec;
use crate::trace;

/// One repeat of everything: each store once through the sequence, then the benches. Stores
/// without a path get a folder of their own under `data`. The order of repeats, and what varies,
/// are not of its business, but `runs` says which stores, and which benches of a kind, run at all.
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
    let benches = bench::of_study(source, &spec, runs)?;
    let levels = knobs::of_study(source, &spec, root)?;
    let has_benches = bench::places(&spec).next().is_some();
    if let Some(step) = spec.sequence.first().filter(|_| has_benches && spec.store.is_empty()) {
        let words = "no store is asked this; add a table such as [store.memcached], or leave \
                     `sequence` out";
        return Err(source.at(step.span(), words));
    }
    let mut stores = spec.store.keys();
    let mut segments = match stores.any(|name| runs(name.get_ref(), None)) || !has_benches {
        true => of_stores(source, &spec, data, root, &levels)?,
        false => Vec::new(),
    };
    let stores = spec.store.len();
    for (nth, bench) in benches.into_iter().enumerate() {
        let unit = (stores + nth) as u32;
        segments.push(of_bench(bench, unit, spec.seed, &levels));
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
        Some(machines) => crate::fleet::borne_by(plan, source, &spec, &machines),
        None => Ok(plan),
    }
}

/// The run of a bench. Nothing is loaded for it, and nobody is asked.
fn of_bench(bench: Activity, unit: u32, seed: u64, levels: &KnobLevels) -> Segment {
    let manner = LoadConfig::closed(1);
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
        phase: bench.phase(),
        workload: trace::in_place_of_a_workload(seed),
        trace: None,
        manner: manner.clone(),
        bench: Some(bench),
        beside: None,
        calibrate: None,
        maximum: None,
        settings,
    };
    Segment {
        store,
        server: None,
        temporary: false,
        steps: vec![step],
        preparing: manner,
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
    // Agents are taken to be machines like this one.
    let cores = cores.saturating_mul(machines.max(1) as u32);
    let load = load_manner(source, &spec.load, levels, cores)?;
    let measure = manner(source, &spec.measure, levels, cores)?.with_default_length();
    let traces = trace::of_study(source, spec, cores)?;
    let sections = sections(source, spec, &load, &measure)?;
    for StudyStore { url, .. } in &stores {
        check_manner(url, &measure)?;
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

    let beside = beside::of_study(source, spec)?;
    let calibrated = calibrate::of_study(source, spec)?;
    let mut segments = Vec::new();
    for (store, StudyStore { url, temporary, server }) in stores.iter().enumerate() {
        for section in &sections {
            let mut steps = Vec::new();
            for (name, phase, workload) in section {
                let traced = traces.get(name).filter(|_| *phase == Phase::Measure);
                let manner = match phase {
                    Phase::Load => load.clone(),
                    Phase::Measure | Phase::Simulate => {
                        traced.map_or(&measure, |own| &own.manner).clone()
                    }
                };
                let whom = (url, server.as_ref());
                let mut settings = settings(whom, name, workload, &manner, 1);
                if let Some(traced) = traced {
                    trace::told(&traced.recording, &manner, &mut settings);
                }
                let measured = *phase == Phase::Measure && manner.of_maximum;
                let calibrate = match measured {
                    true => calibrate::of_step(source, spec, calibrated.as_ref(), workload)?,
                    false => None,
                };
                let beside = beside.clone().filter(|_| *phase == Phase::Measure);
                if let Some(beside) = &beside {
                    beside.settings(&mut settings);
                }
                levels.settings(&mut settings);
                if let Some(table) = spec.mbwu.as_ref().filter(|_| *phase == Phase::Measure) {
                    table.get_ref().first_round(&mut settings);
                }
                steps.push(Step {
                    ordinal: 0,
                    unit: store as u32,
                    repeat: 1,
                    label: label(url, name),
                    phase: *phase,
                    workload: workload.clone(),
                    trace: traced.map(|own| own.recording.clone()),
                    manner,
                    bench: None,
                    beside,
                    calibrate,
                    maximum: None,
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
