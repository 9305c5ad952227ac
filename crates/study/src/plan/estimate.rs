//! Estimates time and disk space of a plan.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::PathBuf;

use model::{Bytes, Phase};
use workload::DatasetId;

use super::segments::{Plan, Segment};
use super::step::{Activity, GUESSED_BYTES_S, Step};

/// What turning the knobs and putting them back takes, proof and idle power aside: a guess.
const TURNING_S: f64 = 3.0;
/// What starting a server and ending it takes: a guess.
const SERVER_S: f64 = 1.0;
/// How fast files are copied, on the disk when that is done: a guess.
const COPIED_BYTES_S: f64 = 300e6;

/// The estimate of a whole plan.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Estimates {
    pub runs: usize,
    /// Runs, loads between them, servers and knobs.
    pub seconds: f64,
    /// Part of the time is guessed.
    pub guessed: bool,
    /// Maximum disk space: the data, space for compactions, and copies of the data.
    pub disk: Bytes,
    /// How often data is loaded, measured or not.
    pub loads: usize,
    /// Maxima that are searched for first.
    pub calibrations: usize,
    pub knob_changes: usize,
}

/// Bytes of a results file that a run takes, with the journal of the transaction that keeps it,
/// and what each second of it adds: its points of the series and its samples.
const RUN_BYTES: u64 = 512 << 10;
const RUN_BYTES_S: f64 = 2048.0;
/// What a run of many hours may have set aside.
const MAX_RUN_BYTES: u64 = 64 << 20;

/// Data in a directory.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Data {
    path: PathBuf,
    form: DataForm,
}

/// What the data is, and the options of the store that shape it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct DataForm {
    dataset: DatasetId,
    options: Vec<(String, String)>,
}

/// Where a segment gets the data of its first step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DataSource {
    /// It exists, or none is needed.
    Free,
    Loaded,
    Restored,
}

impl Plan {
    /// What a results file may need for the longest of the runs, in bytes.
    pub fn room(&self) -> u64 {
        let seconds = self.steps().map(|(_, step)| step.estimate().seconds);
        let longest = seconds.fold(0.0, f64::max);
        (RUN_BYTES + (longest * RUN_BYTES_S) as u64).min(MAX_RUN_BYTES)
    }

    /// Of the runs that `wanted` takes.
    pub fn estimate(&self, wanted: impl Fn(&Step) -> bool) -> Estimates {
        let mut all = Estimates::default();
        let mut contents = DirectoryContents::default();
        let mut largest: BTreeMap<PathBuf, u64> = BTreeMap::new();
        let mut copies: HashMap<Data, u64> = HashMap::new();
        let mut knobs = None;
        let mut maxima = BTreeSet::new();
        for segment in &self.segments {
            let steps: Vec<&Step> = segment.steps.iter().filter(|step| wanted(step)).collect();
            let Some(first) = steps.first() else { continue };
            if !segment.knobs.is_empty() && knobs != Some(&segment.knobs) {
                all.knob_changes += 1;
                all.seconds += TURNING_S;
            }
            knobs = Some(&segment.knobs);
            all.seconds += if segment.server.is_some() { SERVER_S } else { 0.0 };
            let bytes = first.estimate().data.0;
            match contents.take(segment, &steps) {
                DataSource::Free => {}
                DataSource::Loaded => {
                    all.loads += 1;
                    all.guessed = true;
                    all.seconds += bytes as f64 / GUESSED_BYTES_S;
                }
                DataSource::Restored => {
                    all.guessed = true;
                    all.seconds += bytes as f64 / COPIED_BYTES_S;
                }
            }
            for step in &steps {
                let estimate = step.estimate();
                all.runs += 1;
                all.loads += usize::from(step.phase() == Phase::Load);
                all.seconds += estimate.seconds;
                all.guessed |= estimate.guessed;
                if let Some(load) = step.activity.load()
                    && let Some(calibrate) = &load.calibrate
                    && maxima.insert(&calibrate.key)
                {
                    all.calibrations += 1;
                    all.guessed = true;
                    all.seconds += calibrate.seconds(&load.load_config);
                }
                if segment.store.has_directory() {
                    let most = largest.entry(segment.store.path.clone()).or_default();
                    *most = (*most).max(estimate.data.0.saturating_add(estimate.data.0 / 2));
                }
            }
            if let (true, Some(data)) = (segment.copies, data_of(segment, first)) {
                copies.insert(data, bytes);
            }
        }
        all.disk = Bytes(largest.values().chain(copies.values()).sum());
        all
    }
}

/// Marks the segments whose data is needed again after runs that changed it: a copy saves
/// reloading.
pub(super) fn mark_copies(segments: &mut [Segment]) {
    let mut contents = DirectoryContents::default();
    let mut loads: HashMap<Data, u32> = HashMap::new();
    for segment in segments.iter() {
        let steps: Vec<&Step> = segment.steps.iter().collect();
        let Some(first) = steps.first() else { continue };
        if let (DataSource::Loaded, Some(data)) =
            (contents.take(segment, &steps), data_of(segment, first))
        {
            *loads.entry(data).or_default() += 1;
        }
    }
    for segment in segments {
        let data = segment.steps.first().and_then(|first| data_of(segment, first));
        segment.copies = data.is_some_and(|data| loads.get(&data).is_some_and(|n| *n > 1));
    }
}

/// Contents of directories in the course of the plan.
#[derive(Default)]
struct DirectoryContents {
    now: BTreeMap<PathBuf, Option<DataForm>>,
    copied: HashSet<Data>,
}

impl DirectoryContents {
    /// Where the steps get their data; updates the contents with their changes.
    fn take(&mut self, segment: &Segment, steps: &[&Step]) -> DataSource {
        let Some(first) = steps.first() else { return DataSource::Free };
        let loads = matches!(first.activity, Activity::Measure(_));
        let Some(data) = data_of(segment, first) else {
            // Servers are loaded when they come up; a store that keeps nothing is not.
            let keeps = segment.store.scheme != "null";
            return if loads && keeps { DataSource::Loaded } else { DataSource::Free };
        };
        let Data { path, form } = data.clone();
        let there = self.now.get(&path) == Some(&Some(form.clone()));
        self.now.insert(path, (!steps.iter().any(|step| grows(step))).then_some(form));
        if !loads || there {
            return DataSource::Free;
        }
        let copied = segment.copies && !self.copied.insert(data);
        if copied { DataSource::Restored } else { DataSource::Loaded }
    }
}

/// The data of a step where it lies in a directory: options that shape it are part of what it is.
fn data_of(segment: &Segment, step: &Step) -> Option<Data> {
    let store = &segment.store;
    let known = store.describe().ok().filter(|_| store.has_directory())?.options;
    let shaping = |(name, _): &&(String, String)| {
        known.iter().any(|option| option.name == name && option.shapes_data)
    };
    let options = segment.store.options.iter().filter(shaping).cloned().collect();
    let form = DataForm { dataset: step.activity.load()?.workload.dataset(), options };
    Some(Data { path: segment.store.path.clone(), form })
}

/// Whether a run changes the records.
fn grows(step: &Step) -> bool {
    match &step.activity {
        Activity::Replay(..) => true,
        Activity::Measure(load) => load.changes_records(),
        Activity::Load(_) | Activity::Bench(_) => false,
    }
}
