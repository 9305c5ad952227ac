//! From a study to every run in its order.

use std::path::{Path, PathBuf};

use model::random::{Draws, below};
use model::{Address, Bytes, Op};
use record::{Phase, Planned, Settings};
use store::{Place, StoreUrl};
use toml::Spanned;
use workload::{Spec as WorkloadSpec, Workload};

use crate::asking::{Manner, load_manner, manner};
use crate::error::StudyError;
use crate::fleet::Agents;
use crate::settings::{is_networked, settings};
use crate::source::Source;
use crate::spec::{Spec, Variant, option_text};
use crate::started::ServerOrder;
use crate::trace::{self, Recording};

/// A rough guess for how fast a store is that nobody has measured yet.
const GUESSED_BYTES_S: f64 = 60e6;
const GUESSED_OPS_S: f64 = 100e3;

/// Every run of a study, in the order in which they will happen.
#[derive(Debug, Clone)]
pub struct Plan {
    pub name: String,
    pub question: Option<String>,
    pub seed: u64,
    /// The study's text as it is run; empty where there is none.
    pub text: String,
    pub segments: Vec<Segment>,
    /// The machines that ask instead of this one.
    pub agents: Option<Agents>,
}

/// Runs that share one open store and its data: from one `clear` to the next.
#[derive(Debug, Clone)]
pub struct Segment {
    pub store: StoreUrl,
    /// The server that is started for it, and ended with it.
    pub server: Option<ServerOrder>,
    /// The directory is ours to delete when the study has ended.
    pub temporary: bool,
    pub steps: Vec<Step>,
    /// How data is loaded when a step needs it and no step of the segment has loaded it.
    pub preparing: Manner,
}

/// One run.
#[derive(Debug, Clone)]
pub struct Step {
    pub ordinal: u32,
    pub label: String,
    pub phase: Phase,
    pub workload: WorkloadSpec,
    /// What is replayed instead of the workload, which is then of no meaning.
    pub trace: Option<Recording>,
    pub manner: Manner,
    pub settings: Settings,
}

/// What a run will take, as far as that can be said beforehand.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    pub seconds: f64,
    /// The time is guessed, not given.
    pub guessed: bool,
    /// Bytes of keys and values that the store holds then.
    pub data: Bytes,
}

impl Step {
    pub fn planned(&self) -> Planned {
        Planned {
            ordinal: self.ordinal,
            label: self.label.clone(),
            settings: self.settings.clone(),
        }
    }

    pub fn estimate(&self) -> Estimate {
        let data = match self.settings.get("store").map(String::as_str) {
            Some("null") => Bytes(0),
            _ if self.trace.is_some() => Bytes(0),
            _ => Bytes(self.workload.data_bytes()),
        };
        let operations = match self.phase {
            Phase::Load => Some(self.workload.records.0),
            Phase::Measure => self.manner.until.operations,
        };
        let paced = operations.map(|operations| self.manner.paced_seconds(operations));
        let (window, guessed) = match (self.manner.until.time, paced) {
            (Some(time), Some(paced)) => (time.as_secs_f64().min(paced.max(1e-3)), paced == 0.0),
            (Some(time), None) => (time.as_secs_f64(), false),
            (None, Some(paced)) => (paced, true),
            (None, None) => (0.0, true),
        };
        // Nobody knows beforehand how fast a store is: a rough guess, said to be one.
        let at_least = match (guessed, self.phase) {
            (false, _) => 0.0,
            (true, Phase::Load) => (data.0 as f64 / GUESSED_BYTES_S)
                .max(self.workload.records.0 as f64 / GUESSED_OPS_S),
            (true, Phase::Measure) => operations.unwrap_or_default() as f64 / GUESSED_OPS_S,
        };
        let seconds = self.manner.seconds_before() + window.max(at_least);
        Estimate { seconds, guessed, data }
    }
}

impl Plan {
    pub fn steps(&self) -> impl Iterator<Item = (&Segment, &Step)> {
        self.segments.iter().flat_map(|segment| segment.steps.iter().map(move |s| (segment, s)))
    }

    /// Measurements without a study, one for each manner and repeat: the data is loaded first
    /// unless it is there.
    pub fn single(
        (store, server): (StoreUrl, Option<ServerOrder>),
        name: &str,
        workload: WorkloadSpec,
        phase: Phase,
        manners: &[Manner],
        repeats: u32,
    ) -> Result<Plan, StudyError> {
        store.check()?;
        check_scans(&store, &workload).map_err(StudyError::Request)?;
        check_keys(&store, &workload).map_err(StudyError::Request)?;
        let mut segments = Vec::new();
        let mut ordinal = 0;
        for repeat in 1..=repeats {
            let mut steps = Vec::new();
            for manner in manners {
                ordinal += 1;
                let at = (ordinal, repeat);
                let whom = (&store, server.as_ref());
                steps.push(step(whom, name, &workload, phase, manner, at)?);
            }
            // One after the other on the same open store; but a load begins with nothing.
            let together = if phase == Phase::Load { 1 } else { steps.len().max(1) };
            segments.extend(steps.chunks(together).map(|steps| Segment {
                store: store.clone(),
                server: server.clone(),
                temporary: false,
                steps: steps.to_vec(),
                preparing: steps[0].manner.preparing(),
            }));
        }
        let seed = workload.seed;
        let (name, text) = ("bench".to_owned(), String::new());
        Ok(Plan { name, question: None, seed, text, segments, agents: None })
    }

    /// The same, with one more setting of every run.
    pub fn with_setting(mut self, key: &str, value: &str) -> Plan {
        for step in self.segments.iter_mut().flat_map(|segment| &mut segment.steps) {
            step.settings.insert(key.to_owned(), value.to_owned());
        }
        self
    }

    /// Every run of a study. Stores without a path get a folder of their own under `data`.
    pub fn of(source: &Source, data: &Path) -> Result<Plan, StudyError> {
        let spec = source.spec()?;
        check_name(source, &spec)?;
        check_variants(source, &spec)?;
        let stores = stores(source, &spec, data)?;
        let machines =
            spec.agents.as_ref().map_or(1, |agents| agents.get_ref().hosts.get_ref().len());
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
        };
        trace::check_stdin(&plan)?;
        match agents {
            Some(machines) => crate::fleet::borne_by(plan, source, &spec, &machines),
            None => Ok(plan),
        }
    }
}

/// One run of a store without a study; `at` is its ordinal and repeat.
pub(crate) fn step(
    (store, server): (&StoreUrl, Option<&ServerOrder>),
    name: &str,
    workload: &WorkloadSpec,
    phase: Phase,
    manner: &Manner,
    (ordinal, repeat): (u32, u32),
) -> Result<Step, StudyError> {
    let manner = match phase {
        Phase::Load => manner.clone(),
        Phase::Measure => manner.clone().with_default_length(),
    };
    check_workload(workload, &manner, phase)?;
    check_manner(store, &manner)?;
    let settings = settings((store, server), name, workload, &manner, repeat);
    let (label, workload) = (label(store, name), workload.clone());
    Ok(Step { ordinal, label, phase, workload, trace: None, manner, settings })
}

/// The name becomes part of a file's.
fn check_name(source: &Source, spec: &Spec) -> Result<(), StudyError> {
    let name = spec.name.get_ref();
    let plain = |c: char| c.is_alphanumeric() || "-_.+ ".contains(c);
    if name.starts_with(char::is_alphanumeric) && name.chars().all(plain) {
        return Ok(());
    }
    let words =
        "a name begins with a letter or digit and holds only those, `-`, `_`, `.`, `+` and spaces";
    Err(source.at(spec.name.span(), words))
}

/// Every table of `[workloads]` makes sense, asked for or not, and hides nothing.
fn check_variants(source: &Source, spec: &Spec) -> Result<(), StudyError> {
    for (name, variant) in &spec.workloads {
        let taken = ["load", "clear"].into_iter().chain(WorkloadSpec::preset_names());
        if taken.into_iter().any(|taken| taken == name.get_ref()) {
            let words = format!(
                "`{name}` is a name of kvmeter's own; give it another",
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
fn misplaced(
    source: &Source,
    spec: &Spec,
    variant: Option<&Variant>,
    otherwise: std::ops::Range<usize>,
    error: &workload::SpecError,
) -> StudyError {
    let words = error.to_string();
    let about = words.split('`').nth(1).unwrap_or_default();
    let first = about.split('.').next().unwrap_or_default();
    let place = match first {
        "mix" => variant.and_then(|v| v.mix.as_ref()).map(Spanned::span),
        "popularity" => variant.and_then(|v| v.popularity.as_ref()).map(Spanned::span),
        "scan" => variant.and_then(|v| v.scan.as_ref()).map(Spanned::span),
        "multi_get" => variant.and_then(|v| v.multi_get.as_ref()).map(Spanned::span),
        "hit_ratio" => variant.and_then(|v| v.hit_ratio.as_ref()).map(Spanned::span),
        "records" => spec.data.records.as_ref().map(Spanned::span),
        "key" => spec.data.key.as_ref().map(Spanned::span),
        "value" => spec.data.value.as_ref().map(Spanned::span),
        _ => None,
    };
    source.at(place.unwrap_or(otherwise), &words)
}

/// What one stretch between two `clear`s asks: name, phase and workload.
type Section = Vec<(String, Phase, WorkloadSpec)>;

fn sections(
    source: &Source,
    spec: &Spec,
    load: &Manner,
    measure: &Manner,
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
            Phase::Measure => measure.threads,
        };
        if u64::from(threads) > workload.records.0 && !is_trace(spec, name) {
            let asking = match phase {
                Phase::Load => &spec.load,
                Phase::Measure => &spec.measure,
            };
            let words = format!(
                "{threads} threads for {} records; there must be at least as many records",
                workload.records.0
            );
            return Err(source.at(asking.span_of("threads").unwrap_or(step.span()), &words));
        }
        match phase {
            // Loading begins with nothing.
            Phase::Load => {
                sections.extend(Some(std::mem::take(&mut section)).filter(|s| !s.is_empty()));
            }
            Phase::Measure => {
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

fn is_trace(spec: &Spec, name: &str) -> bool {
    let named = spec.workloads.iter().find(|(known, _)| known.get_ref() == name);
    named.is_some_and(|(_, variant)| variant.trace.is_some())
}

/// A trace begins with what is there, which is another trace's or nothing.
fn check_traces(
    source: &Source,
    spec: &Spec,
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

/// What a "load" loads: the data of the workload that is asked next.
fn loaded(
    source: &Source,
    spec: &Spec,
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

/// All workloads of one section want the same data, and one that adds or deletes records is
/// the last: what follows would find other data than it was promised.
fn check_section(
    source: &Source,
    step: &Spanned<String>,
    section: &Section,
    workload: &WorkloadSpec,
) -> Result<(), StudyError> {
    let name = step.get_ref();
    for (other, phase, before) in section {
        if before.dataset() != workload.dataset() {
            let words = format!(
                "`{name}` and `{other}` want different data; put \"clear\", \"load\" between them \
                 or set it in [data]"
            );
            return Err(source.at(step.span(), &words));
        }
        let changes = before.mix.asks(Op::Insert) || before.mix.asks(Op::Delete);
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

fn workload(
    source: &Source,
    spec: &Spec,
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

fn preset(
    source: &Source,
    spec: &Spec,
    name: &Spanned<String>,
) -> Result<WorkloadSpec, StudyError> {
    WorkloadSpec::preset(name.get_ref()).map_err(|_| {
        let mut known: Vec<&str> = WorkloadSpec::preset_names().collect();
        known.extend(spec.workloads.keys().map(|name| name.get_ref().as_str()));
        known.extend(["load", "clear"]);
        let hint = model::suggest::hint(name.get_ref(), known.iter().copied());
        source.at(name.span(), &format!("there is no workload `{}`; {hint}", name.get_ref()))
    })
}

fn variant_of(source: &Source, spec: &Spec, variant: &Variant) -> Result<WorkloadSpec, StudyError> {
    if variant.trace.is_some() {
        return Ok(trace::in_place_of_a_workload(spec.seed));
    }
    let mut base = match &variant.from {
        Some(from) => preset(source, spec, from)?,
        None => WorkloadSpec::preset("ycsb-c")?,
    };
    if let Some(mix) = &variant.mix {
        base.mix = *mix.get_ref();
    }
    if let Some(popularity) = &variant.popularity {
        base.popularity = *popularity.get_ref();
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
    Ok(spec.data.over(base, spec.seed))
}

/// A store of a study.
struct Stored {
    url: StoreUrl,
    /// Its directory is ours to delete.
    temporary: bool,
    server: Option<ServerOrder>,
}

fn stores(source: &Source, spec: &Spec, data: &Path) -> Result<Vec<Stored>, StudyError> {
    check_servers(source, spec)?;
    let mut stores: Vec<Stored> = Vec::new();
    for (scheme, options) in &spec.store {
        let mut url = StoreUrl {
            scheme: scheme.get_ref().clone(),
            path: PathBuf::new(),
            servers: Vec::new(),
            options: Vec::new(),
        };
        let adapter =
            url.adapter().map_err(|error| source.at(scheme.span(), &error.to_string()))?;
        let mut temporary = adapter.on_disk();
        let mut place = scheme.span();
        if adapter.on_disk() {
            url.path = data.join(&url.scheme);
        }
        for (key, value) in options {
            let text =
                option_text(value.get_ref()).map_err(|words| source.at(value.span(), &words))?;
            if key.get_ref() == "path" && adapter.on_disk() {
                url.path = text.into();
                temporary = false;
                place = value.span();
                continue;
            }
            if let (Place::Servers { default_port }, "servers") =
                (adapter.place, key.get_ref().as_str())
            {
                for server in text.split(',') {
                    let address = Address::parse(server.trim(), default_port)
                        .map_err(|error| source.at(value.span(), &error.to_string()))?;
                    url.servers.push(address);
                }
                continue;
            }
            url.options.push((key.get_ref().clone(), text));
            // Checked one by one, so that an error points at the very option.
            url.check().map_err(|error| source.at(key.span(), &error.to_string()))?;
        }
        url.check().map_err(|error| source.at(scheme.span(), &error.to_string()))?;
        let taken = |other: &&Stored| adapter.on_disk() && other.url.path == url.path;
        if let Some(other) = stores.iter().find(taken) {
            let scheme = &other.url.scheme;
            let words = format!("`{scheme}` has this directory already; give each its own");
            return Err(source.at(place, &words));
        }
        let server = server_of(source, spec, scheme, &url)?;
        stores.push(Stored { url, temporary, server });
    }
    if stores.is_empty() {
        return Err(StudyError::Request(format!(
            "{}: no store is given; add a table such as [store.rocksdb]",
            source.origin
        )));
    }
    Ok(stores)
}

/// Every server that is to be started has a store that asks it.
fn check_servers(source: &Source, spec: &Spec) -> Result<(), StudyError> {
    for name in spec.server.keys() {
        if !spec.store.keys().any(|store| store.get_ref() == name.get_ref()) {
            let name_is = name.get_ref();
            let words = format!("no store asks this server; add a table [store.{name_is}]");
            return Err(source.at(name.span(), &words));
        }
    }
    Ok(())
}

/// The server that is to be started for a networked store that names none of its own.
fn server_of(
    source: &Source,
    spec: &Spec,
    scheme: &Spanned<String>,
    url: &StoreUrl,
) -> Result<Option<ServerOrder>, StudyError> {
    let table = spec.server.iter().find(|(name, _)| name.get_ref() == scheme.get_ref());
    let name = scheme.get_ref();
    match (table, url.servers.is_empty(), is_networked(url)) {
        (None, true, true) => {
            let words = format!(
                "the server is missing: name it with `servers = \"HOST:PORT\"`, or have one started \
                 by a table [server.{name}]"
            );
            Err(source.at(scheme.span(), &words))
        }
        (None, _, _) => Ok(None),
        (Some((table, _)), _, false) => {
            let words = format!("`{name}` lives in this process and has no server");
            Err(source.at(table.span(), &words))
        }
        (Some((table, _)), false, true) => {
            let words = "the store names its servers already; leave out one of the two";
            Err(source.at(table.span(), words))
        }
        (Some((table, settings)), true, true) => {
            let pair = |(key, value): (&Spanned<String>, &Spanned<server::launch::Value>)| {
                (key.get_ref().clone(), value.get_ref().clone())
            };
            let wanted = server::launch::Settings(settings.iter().map(pair).collect());
            ServerOrder::new(name, wanted).map(Some).map_err(|error| {
                let words = error.to_string();
                let about =
                    settings.keys().find(|key| words.contains(&format!("`{}`", key.get_ref())));
                source.at(about.map_or(table.span(), Spanned::span), &words)
            })
        }
    }
}

/// Servers here have no order of keys.
fn check_scans(store: &StoreUrl, spec: &WorkloadSpec) -> Result<(), String> {
    match is_networked(store) && spec.mix.asks(Op::Scan) {
        true => Err(format!("`{}` cannot scan, and the workload does", store.scheme)),
        false => Ok(()),
    }
}

/// Keys that are looked at to see whether a store takes them.
const SAMPLE: u64 = 1000;

/// Refuses a store that does not take the workload's keys, before anything is written.
pub(crate) fn check_keys(store: &StoreUrl, spec: &WorkloadSpec) -> Result<(), String> {
    let most = store.adapter().map_err(|error| error.to_string())?.longest_key;
    let workload = Workload::new(spec).map_err(|error| error.to_string())?;
    let remote = store.remote().map_err(|error| error.to_string())?;
    let mut key = Vec::new();
    for record in 0..spec.records.0.min(SAMPLE) {
        workload.key(record, &mut key);
        if let Some(remote) = &remote {
            remote.protocol.check_key(&key).map_err(|error| error.to_string())?;
        }
        if key.len() > most {
            return Err(format!(
                "`{}` takes keys of at most {most} bytes, and this workload has one of {}",
                store.scheme,
                key.len()
            ));
        }
    }
    Ok(())
}

fn check_workload(spec: &WorkloadSpec, manner: &Manner, phase: Phase) -> Result<(), StudyError> {
    spec.check()?;
    if u64::from(manner.threads) > spec.records.0 {
        return Err(StudyError::Request(format!(
            "{} threads for {} records; lower --threads or raise --records",
            manner.threads, spec.records.0
        )));
    }
    if phase == Phase::Load && (manner.warm_up.is_some() || manner.steady.is_some()) {
        return Err(StudyError::Request(
            "a load has no warm-up and no steady state; leave out --warm-up and --steady"
                .to_owned(),
        ));
    }
    Workload::new(spec)?;
    Ok(())
}

/// Connections are of no use to a store in this process.
pub(crate) fn check_manner(store: &StoreUrl, manner: &Manner) -> Result<(), StudyError> {
    match manner.needs_servers {
        Some(key) if !is_networked(store) => Err(StudyError::Request(format!(
            "`{key}` is for stores behind a network, and `{}` is none; leave it out",
            store.scheme
        ))),
        _ => Ok(()),
    }
}

pub(crate) fn label(store: &StoreUrl, workload: &str) -> String {
    format!("{} {workload}", store.scheme)
}

/// Fisher-Yates from the recorded seed: the same study has the same order.
fn shuffle<T>(items: &mut [T], seed: u64) {
    let mut random = Draws::from(seed);
    for i in (1..items.len()).rev() {
        items.swap(i, below(random.next(), i as u64 + 1) as usize);
    }
}
