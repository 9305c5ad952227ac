//! From a study's text to its runs in their order.

use std::path::Path;

use host::Root;
use model::random::{Draws, below};
use record::{Design, Phase};
use toml::Spanned;

use super::checks::{check_keys, check_manner, check_name, check_scans};
use super::sections::{check_variants, sections};
use super::stores::{Stored, stores};
use super::{Plan, Segment, Step, label};
use crate::asking::{load_manner, manner};
use crate::error::StudyError;
use crate::knobs::{self, Levels};
use crate::probes::{self, Probes};
use crate::settings::settings;
use crate::source::Source;
use crate::trace;

/// Every run of a study. Stores without a path get a folder of their own under `data`.
pub(super) fn of(source: &Source, data: &Path, root: &Root) -> Result<Plan, StudyError> {
    let spec = source.spec()?;
    check_name(source, &spec)?;
    check_variants(source, &spec)?;
    let stores = stores(source, &spec, data)?;
    let machines = spec.agents.as_ref().map_or(1, |agents| agents.get_ref().hosts.get_ref().len());
    let cores = host::cpus(&host::Root::live()).map_or(1, |order| order.cpus.len() as u32);
    // Agents are taken to be machines like this one.
    let cores = cores.saturating_mul(machines.max(1) as u32);
    let load = load_manner(source, &spec.load, cores)?;
    let measure = manner(source, &spec.measure, cores)?.with_default_length();
    if spec.repeats == 0 {
        return Err(StudyError::Request(format!(
            "{}: repeats must be more than zero",
            source.origin
        )));
    }
    let traces = trace::of_study(source, &spec, cores)?;
    let sections = sections(source, &spec, &load, &measure)?;
    for Stored { url, .. } in &stores {
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
        }
    }

    let mut blocks: Vec<(usize, u32)> = (1..=spec.repeats)
        .flat_map(|repeat| (0..stores.len()).map(move |store| (store, repeat)))
        .collect();
    shuffle(&mut blocks, spec.seed);

    let mut segments = Vec::new();
    let mut ordinal = 0;
    for (store, repeat) in blocks {
        let Stored { url, temporary, server } = &stores[store];
        for section in &sections {
            let mut steps = Vec::new();
            for (name, phase, workload) in section {
                ordinal += 1;
                let traced = traces.get(name).filter(|_| *phase == Phase::Measure);
                let manner = match phase {
                    Phase::Load => load.clone(),
                    Phase::Measure => traced.map_or(&measure, |own| &own.manner).clone(),
                };
                let whom = (url, server.as_ref());
                let mut settings = settings(whom, name, workload, &manner, repeat);
                if let Some(traced) = traced {
                    trace::told(&traced.recording, &manner, &mut settings);
                }
                steps.push(Step {
                    ordinal,
                    label: label(url, name),
                    phase: *phase,
                    workload: workload.clone(),
                    trace: traced.map(|own| own.recording.clone()),
                    manner,
                    settings,
                });
            }
            segments.push(Segment {
                store: url.clone(),
                server: server.clone(),
                temporary: *temporary,
                steps,
                preparing: load.clone(),
            });
        }
    }
    let agents = spec.agents.clone();
    let plan = Plan {
        name: spec.name.get_ref().clone(),
        question: spec.question.clone(),
        seed: spec.seed,
        text: source.text.clone(),
        segments,
        agents: None,
        probes: Probes { root: root.clone(), ..probes::of_study(source, &spec)? },
        knobs: Levels::default(),
        design: Design::default(),
    };
    let plan = plan.with_knobs(knobs::of_study(source, &spec, root)?);
    trace::check_stdin(&plan)?;
    match agents {
        Some(machines) => crate::fleet::borne_by(plan, source, &spec, &machines),
        None => Ok(plan),
    }
}

/// Fisher-Yates from the recorded seed: the same study has the same order.
pub(super) fn shuffle<T>(items: &mut [T], seed: u64) {
    let mut random = Draws::from(seed);
    for i in (1..items.len()).rev() {
        items.swap(i, below(random.next(), i as u64 + 1) as usize);
    }
}
