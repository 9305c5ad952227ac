use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use model::Rate;
use record::{Execution, File, Phase, Run};
use store::StoreUrl;
use study::{Manner, Plan, Recording, Senseless, Steady, StudyError, Wish};
use workload::{Mix, Popularity, Size, Spec};

use crate::args::Bench;
use crate::exit::{Outcome, request};
use crate::files;
use crate::interrupt::stop_flag;
use crate::show::Show;

pub fn run(args: &Bench, show: &Show) -> anyhow::Result<Outcome> {
    let store: StoreUrl = args.store.parse()?;
    let manners = manners(args)?;
    if args.repeat == 0 {
        return Err(request("--repeat must be more than zero"));
    }
    if let (Some(file), true) = (&args.trace, args.dry_run) {
        return super::trace::describe(file, args, show);
    }
    let plan = match &args.trace {
        Some(file) => replay(&store, file, args, &manners)?,
        None => single(store, args, &manners)?,
    };
    study::check_directories(&plan)?;
    let execution = study::execution(&plan, std::env::args().collect());
    let mut kept = Kept::open(args.out.clone(), &plan)?;

    let stop = stop_flag()?;
    let mut bar = show.bar(plan.steps().map(|(_, step)| step));
    let mut runs = Vec::new();
    let mut keep = |run: &Run| {
        kept.keep(&execution, run, show)?;
        runs.push(run.clone());
        Ok(())
    };
    let ended = study::execute(&plan, &execution, &BTreeSet::new(), &mut keep, &mut bar, &stop);
    bar.finish();
    if ended.is_ok() {
        kept.finish(&execution)?;
    }
    show_runs(args, show, &execution, &runs)?;
    if let (Some(path), false) = (kept.place(), runs.is_empty()) {
        show.note(&format!("kept in {}", path.display()));
    }
    if !ended? {
        show.note("stopped; the run under way is not kept");
        return Ok(Outcome::Invalid);
    }
    Ok(if runs.iter().all(Run::valid) { Outcome::Done } else { Outcome::Invalid })
}

fn single(store: StoreUrl, args: &Bench, manners: &[Manner]) -> anyhow::Result<Plan> {
    let spec = workload(args)?;
    // A mix of nothing but inserts adds records; only the presets of that name load.
    let loads = spec.is_load() && args.mix.is_none();
    let phase = if loads { Phase::Load } else { Phase::Measure };
    Ok(Plan::single(store, &name(args), spec, phase, manners, args.repeat)?)
}

fn replay(store: &StoreUrl, file: &Path, args: &Bench, manners: &[Manner]) -> anyhow::Result<Plan> {
    let recording = Recording::open(file, args.compressibility.unwrap_or(0.0), args.refill)?;
    Ok(Plan::replay(store, &recording, args.seed, manners, args.repeat)?)
}

/// One object, or an array of them where repeats were asked for; nothing where none ended.
fn show_runs(args: &Bench, show: &Show, execution: &Execution, runs: &[Run]) -> anyhow::Result<()> {
    if runs.is_empty() {
        return Ok(());
    }
    if !args.json {
        let pairs: Vec<_> = runs.iter().map(|run| (execution, run)).collect();
        return show.print(&report::terminal::runs(&pairs, show.style()));
    }
    let mut objects: Vec<_> = runs.iter().map(|run| run.summary(execution)).collect();
    let one = args.repeat == 1 && args.rate.as_ref().is_none_or(|rate| rate.rates().len() == 1);
    let value = if one { objects.remove(0) } else { objects.into() };
    show.print(&serde_json::to_string_pretty(&value)?)
}

/// The results file of a bench: the one that was named, which is held throughout, or the one
/// that holds all benches, which is opened for each run. The latter is a convenience: where it
/// cannot be written the measurement is still shown.
enum Kept {
    Named { file: File, path: PathBuf, begun: bool },
    Common { path: Option<PathBuf>, begun: bool },
}

/// How long another bench may hold the common file.
const COMMON_PATIENCE: Duration = Duration::from_secs(10);

impl Kept {
    fn open(out: Option<PathBuf>, plan: &Plan) -> anyhow::Result<Kept> {
        let Some(path) = out else {
            return Ok(Kept::Common { path: files::for_bench(), begun: false });
        };
        let inside =
            |url: &StoreUrl| !url.path.as_os_str().is_empty() && path.starts_with(&url.path);
        if plan.segments.iter().any(|segment| inside(&segment.store)) {
            let place = path.display();
            return Err(request(format!("--out {place}: lies in the store's own directory")));
        }
        files::make_room_for(&path)
            .map_err(|error| request(format!("{}: {error}", path.display())))?;
        Ok(Kept::Named { file: File::open_or_create(&path)?, path, begun: false })
    }

    /// Keeps a run. That the common file cannot be written is said and no more.
    fn keep(&mut self, execution: &Execution, run: &Run, show: &Show) -> Result<(), StudyError> {
        match self {
            Kept::Named { file, begun, .. } => {
                if !std::mem::replace(begun, true) {
                    file.begin(execution)?;
                }
                Ok(file.keep(run)?)
            }
            Kept::Common { path: Some(path), begun } => {
                let kept = open_common(path).and_then(|mut file| {
                    if !*begun {
                        file.begin(execution)?;
                        *begun = true;
                    }
                    Ok(file.keep(run)?)
                });
                if let Err(error) = kept {
                    show.warn(&format!(
                        "the result is not kept: {error:#}; name a file with --out"
                    ));
                }
                Ok(())
            }
            Kept::Common { path: None, .. } => {
                show.warn("the result is not kept: neither --out nor HOME says where");
                Ok(())
            }
        }
    }

    fn finish(&mut self, execution: &Execution) -> anyhow::Result<()> {
        let at = study::now();
        match self {
            Kept::Named { file, begun: true, .. } => Ok(file.finish(&execution.id, &at)?),
            Kept::Common { path: Some(path), begun: true } => {
                // The runs are kept; that they were all is a detail of the common file.
                let _ = open_common(path).map(|mut file| file.finish(&execution.id, &at));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Where the runs are.
    fn place(&self) -> Option<&Path> {
        match self {
            Kept::Named { path, .. } => Some(path),
            Kept::Common { path, begun } => path.as_deref().filter(|_| *begun),
        }
    }
}

/// Opens the common file, once no other bench writes to it.
fn open_common(path: &Path) -> anyhow::Result<File> {
    files::make_room_for(path).map_err(|error| request(format!("{}: {error}", path.display())))?;
    let limit = Instant::now() + COMMON_PATIENCE;
    loop {
        match File::open_or_create(path) {
            Err(record::Error::Locked { .. }) if Instant::now() < limit => {
                std::thread::sleep(Duration::from_millis(50));
            }
            other => return Ok(other?),
        }
    }
}

/// The workload's name: the preset's, marked where flags changed what it asks.
fn name(args: &Bench) -> String {
    match (&args.mix, &args.popularity) {
        (None, None) => args.workload.clone(),
        _ => format!("{}*", args.workload),
    }
}

fn workload(args: &Bench) -> anyhow::Result<Spec> {
    let mut spec = Spec::preset(&args.workload)?;
    spec.seed = args.seed;
    if let Some(factor) = args.scale {
        spec = spec.scaled(factor).map_err(|error| request(format!("--scale: {error}")))?;
    }
    if let Some(keys) = args.multi_get {
        spec.multi_get = keys;
    }
    if let Some(share) = args.hit_ratio {
        spec.hit_ratio = share;
    }
    spec.refill |= args.refill;
    if let Some(records) = args.records {
        spec.records = records;
    }
    let size = |flag: &str, text: &str| {
        Size::parse(text).map_err(|error| request(format!("--{flag} {text}: {error}")))
    };
    if let Some(text) = &args.key_size {
        spec.key.size = Some(size("key-size", text)?);
    }
    if let Some(text) = &args.value_size {
        spec.value.size = size("value-size", text)?;
    }
    if let Some(share) = args.compressibility {
        spec.value.compressibility = share;
    }
    if let Some(text) = &args.mix {
        spec.mix = Mix::parse(text).map_err(|error| request(format!("--mix {text}: {error}")))?;
    }
    if let Some(text) = &args.popularity {
        spec.popularity = Popularity::parse(text)
            .map_err(|error| request(format!("--popularity {text}: {error}")))?;
    }
    Ok(spec)
}

/// One for each rate that is asked for.
fn manners(args: &Bench) -> anyhow::Result<Vec<Manner>> {
    let cpus = host::cpus(&host::Root::live()).map_or(1, |order| order.cpus.len() as u32);
    let rates: Vec<Option<Rate>> = match &args.rate {
        Some(sweep) => sweep.rates().iter().copied().map(Some).collect(),
        None => vec![None],
    };
    let manner = |rate: Option<Rate>| {
        let preset = Spec::presets().iter().find(|preset| preset.name == args.workload);
        let usual = preset.and_then(|preset| preset.arrivals).map(str::to_owned);
        let wish = Wish {
            threads: Some(args.threads),
            rate,
            arrivals: args.arrivals.clone().or(usual.filter(|_| rate.is_some())),
            think: args.think,
            warm_up: args.warm_up,
            warm_up_rate: args.warm_up_rate,
            time: args.time,
            operations: args.ops,
            steady: args.steady.map(|round| Steady { round, ..Steady::default() }),
            pin: !args.no_pin,
            connections: args.connections,
            depth: args.depth,
            queue: args.queue,
            busy_poll: args.busy_poll.then_some(true),
            engine: args.engine.clone(),
            trace: args.trace.is_some(),
            speed: args.speed,
        };
        wish.manner(cpus).map_err(|Senseless { key, why }| {
            let flag = if key == "operations" { "ops".to_owned() } else { key.replace('_', "-") };
            request(format!("--{flag}: {why}"))
        })
    };
    rates.into_iter().map(manner).collect()
}
