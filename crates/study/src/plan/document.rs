//! From one document to its runs: every store once through its whole sequence, and every bench.

use std::path::{Path, PathBuf};

use host::Root;
use model::Design;
use store::StoreUrl;

use super::agents::with_agents_table;
use super::bench::{self, Bench};
use super::checks::check_name;
use super::replay::check_stdin;
use super::sections::check_variants;
use super::segments::{Plan, Segment};
use super::sequence::of_stores;
use super::step::{Activity, Step};
use super::{knobs, probes};
use crate::error::StudyError;
use crate::knobs::KnobLevels;
use crate::load::LoadConfig;
use crate::probes::ProbesConfig;
use crate::text::StudyText;

/// One repeat of everything: each store once through the sequence, then the benches. Stores
/// without a path get a folder of their own under `data`. The order of repeats, and what varies,
/// are decided elsewhere; `runs` selects stores and benches.
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
        let words =
            "no store runs this; add a table such as [store.memcached], or leave out `sequence`";
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
        segments.push(segment_of_bench(bench, unit, spec.seed, &levels));
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
    check_stdin(&plan)?;
    match agents {
        Some(machines) => with_agents_table(plan, source, &spec, &machines),
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
