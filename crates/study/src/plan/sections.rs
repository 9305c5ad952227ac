//! The sequence of a study: which workloads share data, and where it begins anew.

use model::{Op, Phase};
use toml::Spanned;
use workload::WorkloadSpec;

use super::trace::placeholder_workload;
use crate::error::StudyError;
use crate::load::LoadConfig;
use crate::text::{StudySpec, StudyText, WorkloadTable};
use crate::workload_file::{is_workload_file, open_workload};

/// Checks every table of `[workloads]`, used or not; none may hide a preset.
pub(super) fn check_variants(source: &StudyText, spec: &StudySpec) -> Result<(), StudyError> {
    for (name, variant) in &spec.workloads {
        let taken = ["load", "clear"].into_iter().chain(WorkloadSpec::preset_names());
        if taken.into_iter().any(|taken| taken == name.get_ref()) {
            let words = format!(
                "kvmeter uses the name `{name}` itself; give it another one",
                name = name.get_ref()
            );
            return Err(source.at(name.span(), &words));
        }
        let whole = variant_of(source, spec, variant)?;
        whole
            .check()
            .map_err(|error| misplaced(source, spec, Some(variant), name.span(), &error))?;
    }
    Ok(())
}

/// A workload's error at the value that it is about, else at `otherwise`.
pub(super) fn misplaced(
    source: &StudyText,
    spec: &StudySpec,
    variant: Option<&WorkloadTable>,
    otherwise: std::ops::Range<usize>,
    error: &workload::SpecError,
) -> StudyError {
    let table = error.key().and_then(|key| key.split('.').next());
    let place = match table.unwrap_or_default() {
        "mix" => variant.and_then(|v| v.mix.as_ref()).map(Spanned::span),
        "popularity" => variant.and_then(|v| v.popularity.as_ref()).map(Spanned::span),
        "scan" => variant.and_then(|v| v.scan.as_ref()).map(Spanned::span),
        "multi_get" => variant.and_then(|v| v.multi_get.as_ref()).map(Spanned::span),
        "hit_ratio" => variant.and_then(|v| v.hit_ratio.as_ref()).map(Spanned::span),
        "miss_latency" => variant.and_then(|v| v.miss_latency.as_ref()).map(Spanned::span),
        "records" => spec.data.records.as_ref().map(Spanned::span),
        "key" => spec.data.key.as_ref().map(Spanned::span),
        "value" => spec.data.value.as_ref().map(Spanned::span),
        _ => None,
    };
    source.at(place.unwrap_or(otherwise), &error.to_string())
}

/// The steps between two `clear`s: name, phase and workload.
pub(super) type Section = Vec<SectionStep>;

/// The name of a workload, what is done with it, and the workload.
pub(super) type SectionStep = (String, Phase, WorkloadSpec);

pub(super) fn sections(
    source: &StudyText,
    spec: &StudySpec,
    load: &LoadConfig,
    measure: &LoadConfig,
) -> Result<Vec<Section>, StudyError> {
    let mut sections: Vec<Section> = Vec::new();
    let mut section: Section = Vec::new();
    if spec.sequence.is_empty() {
        return Err(StudyError::Request(format!(
            "{}: `sequence` is empty; name what is to run, e.g. [\"load\", \"ycsb-a\"]",
            source.origin
        )));
    }
    for (at, step) in spec.sequence.iter().enumerate() {
        let name = step.get_ref();
        let (phase, workload) = match name.as_str() {
            "clear" => {
                sections.extend(Some(std::mem::take(&mut section)).filter(|s| !s.is_empty()));
                continue;
            }
            "load" => (Phase::Load, loaded(source, spec, &spec.sequence[at + 1..])?),
            _ => {
                let workload = workload(source, spec, step)?;
                let own = spec.workloads.keys().any(|own| own.get_ref() == name);
                let phase = match !own && workload.is_load() {
                    true => Phase::Load,
                    false => Phase::Measure,
                };
                (phase, workload)
            }
        };
        let threads = match phase {
            Phase::Load => load.threads,
            Phase::Measure | Phase::Simulate => measure.threads,
        };
        if u64::from(threads) > workload.records.0 && !is_trace(spec, name) {
            let table = match phase {
                Phase::Load => &spec.load,
                Phase::Measure | Phase::Simulate => &spec.measure,
            };
            let words = format!(
                "{threads} threads for {} records; there must be at least as many records",
                workload.records.0
            );
            return Err(source.at(table.span_of("threads").unwrap_or(step.span()), &words));
        }
        match phase {
            // Loading begins with nothing.
            Phase::Load => {
                sections.extend(Some(std::mem::take(&mut section)).filter(|s| !s.is_empty()));
            }
            Phase::Measure | Phase::Simulate => {
                check_traces(source, spec, step, &section)?;
                check_section(source, step, &section, &workload)?;
            }
        }
        section.push((name.clone(), phase, workload));
    }
    sections.extend(Some(section).filter(|section| !section.is_empty()));
    if sections.is_empty() {
        let words = "`sequence` measures nothing; name a workload, e.g. \"ycsb-a\"";
        return Err(source.at(spec.sequence[0].span(), words));
    }
    Ok(sections)
}

pub(super) fn is_trace(spec: &StudySpec, name: &str) -> bool {
    let named = spec.workloads.iter().find(|(known, _)| known.get_ref() == name);
    named.is_some_and(|(_, variant)| variant.trace.is_some())
}

/// Refuses a trace and a workload in one section: a trace begins with an empty store or another
/// trace's data.
pub(super) fn check_traces(
    source: &StudyText,
    spec: &StudySpec,
    step: &Spanned<String>,
    section: &Section,
) -> Result<(), StudyError> {
    let name = step.get_ref();
    let traced = is_trace(spec, name);
    let Some((other, ..)) = section.iter().rfind(|(other, ..)| is_trace(spec, other) != traced)
    else {
        return Ok(());
    };
    let words = match traced {
        true => format!("`{name}` is a trace; put \"clear\" between `{other}` and it"),
        false => format!("`{other}` is a trace; put \"clear\" between it and `{name}`"),
    };
    Err(source.at(step.span(), &words))
}

/// What a "load" loads: the data of the next workload.
pub(super) fn loaded(
    source: &StudyText,
    spec: &StudySpec,
    rest: &[Spanned<String>],
) -> Result<WorkloadSpec, StudyError> {
    let next = rest
        .iter()
        .take_while(|step| *step.get_ref() != "clear")
        .find(|step| *step.get_ref() != "load");
    if let Some(trace) = next.filter(|next| is_trace(spec, next.get_ref())) {
        let name = trace.get_ref();
        let words = format!("`{name}` is a trace and needs no load; leave that out before it");
        return Err(source.at(trace.span(), &words));
    }
    let inserts = WorkloadSpec::preset("ycsb-load")?;
    Ok(match next {
        Some(next) => WorkloadSpec { mix: inserts.mix, ..workload(source, spec, next)? },
        None => spec.data.over(inserts, spec.seed),
    })
}

/// Refuses workloads with different data in one section, and any workload after one that adds or
/// deletes records.
pub(super) fn check_section(
    source: &StudyText,
    step: &Spanned<String>,
    section: &Section,
    workload: &WorkloadSpec,
) -> Result<(), StudyError> {
    let name = step.get_ref();
    for (other, phase, before) in section {
        if before.dataset() != workload.dataset() {
            let words = format!(
                "`{name}` and `{other}` need different data; put \"clear\", \"load\" between them \
                 or set it in [data]"
            );
            return Err(source.at(step.span(), &words));
        }
        let changes = before.mix.contains(Op::Insert) || before.mix.contains(Op::Delete);
        if *phase == Phase::Measure && changes {
            let words = format!(
                "`{other}` adds or deletes records, so `{name}` would find other data than was \
                 loaded; put \"clear\", \"load\" between them"
            );
            return Err(source.at(step.span(), &words));
        }
    }
    Ok(())
}

pub(super) fn workload(
    source: &StudyText,
    spec: &StudySpec,
    step: &Spanned<String>,
) -> Result<WorkloadSpec, StudyError> {
    let variant = spec.workloads.iter().find(|(name, _)| name.get_ref() == step.get_ref());
    let variant = variant.map(|(_, variant)| variant);
    let whole = match variant {
        None => spec.data.over(preset(source, spec, step)?, spec.seed),
        Some(variant) => variant_of(source, spec, variant)?,
    };
    whole.check().map_err(|error| misplaced(source, spec, variant, step.span(), &error))?;
    Ok(whole)
}

pub(super) fn preset(
    source: &StudyText,
    spec: &StudySpec,
    name: &Spanned<String>,
) -> Result<WorkloadSpec, StudyError> {
    if is_workload_file(name.get_ref()) {
        let file = open_workload(name.get_ref());
        return file
            .map(|file| file.workload)
            .map_err(|error| source.at(name.span(), &error.to_string()));
    }
    WorkloadSpec::preset(name.get_ref()).map_err(|_| {
        let mut known: Vec<&str> = WorkloadSpec::preset_names().collect();
        known.extend(spec.workloads.keys().map(|name| name.get_ref().as_str()));
        known.extend(["load", "clear"]);
        let hint = model::suggest::hint(name.get_ref(), known.iter().copied());
        source.at(name.span(), &format!("there is no workload `{}`; {hint}", name.get_ref()))
    })
}

pub(super) fn variant_of(
    source: &StudyText,
    spec: &StudySpec,
    variant: &WorkloadTable,
) -> Result<WorkloadSpec, StudyError> {
    if variant.trace.is_some() {
        return Ok(placeholder_workload(spec.seed));
    }
    let mut base = match &variant.from {
        Some(from) => preset(source, spec, from)?,
        None => WorkloadSpec::preset("ycsb-c")?,
    };
    if let Some(mix) = &variant.mix {
        base.mix = *mix.get_ref();
    }
    if let Some(popularity) = &variant.popularity {
        base.popularity = popularity.get_ref().clone();
    }
    if let Some(scan) = &variant.scan {
        base.scan = scan.get_ref().clone();
    }
    if let Some(keys) = &variant.multi_get {
        base.multi_get = *keys.get_ref();
    }
    if let Some(share) = &variant.hit_ratio {
        base.hit_ratio = *share.get_ref();
    }
    base.refill = variant.refill.unwrap_or(base.refill);
    if let Some(text) = &variant.miss_latency {
        let latency = workload::FetchLatency::parse_option(text.get_ref());
        base.miss_latency =
            latency.map_err(|error| source.at(text.span(), &format!("miss_latency: {error}")))?;
    }
    match (&variant.miss_latency, variant.refill) {
        // Without refills there is no database.
        (None, Some(false)) => base.miss_latency = None,
        (Some(_), None) => base.refill |= base.miss_latency.is_some(),
        _ => {}
    }
    Ok(spec.data.over(base, spec.seed))
}
