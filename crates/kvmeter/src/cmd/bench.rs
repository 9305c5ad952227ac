use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use record::{Execution, File, Run};
use store::StoreUrl;
use study::{Manner, Plan, Senseless, Steady, StudyError, Wish};
use workload::{Mix, Popularity, Size, Spec};

use crate::args::Bench;
use crate::exit::{Outcome, request};
use crate::files;
use crate::interrupt::stop_flag;
use crate::show::Show;

pub fn run(args: &Bench, show: &Show) -> anyhow::Result<Outcome> {
    let store: StoreUrl = args.store.parse()?;
    let spec = workload(args)?;
    let manner = manner(args)?;
    if args.repeat == 0 {
        return Err(request("--repeat must be more than zero"));
    }
    let plan = Plan::single(store, &name(args), spec, manner, args.repeat)?;
    study::check_directories(&plan)?;
    let execution = study::execution(&plan, std::env::args().collect());
    let mut kept = Kept::open(args.out.clone(), &execution, show)?;

    let stop = stop_flag()?;
    let mut bar = show.bar(plan.steps().map(|(_, step)| step));
    let mut runs = Vec::new();
    let mut keep = |run: &Run| {
        kept.keep(run)?;
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
    let value = if args.repeat == 1 { objects.remove(0) } else { objects.into() };
    show.print(&serde_json::to_string_pretty(&value)?)
}

/// The results file of a bench: the one that was named, else one that holds them all. The
/// latter is a convenience: where it cannot be written the measurement is still shown.
struct Kept {
    file: Option<File>,
    path: PathBuf,
}

impl Kept {
    fn open(out: Option<PathBuf>, execution: &Execution, show: &Show) -> anyhow::Result<Kept> {
        let named = out.is_some();
        let Some(path) = out.or_else(files::for_bench) else {
            show.note("the result is not kept: neither --out nor HOME says where");
            return Ok(Kept { file: None, path: PathBuf::new() });
        };
        let made = files::make_room_for(&path)
            .map_err(|error| request(format!("{}: {error}", path.display())))
            .and_then(|()| Ok(File::open_or_create(&path)?))
            .and_then(|mut file| {
                file.begin(execution)?;
                Ok(file)
            });
        match made {
            Ok(file) => Ok(Kept { file: Some(file), path }),
            Err(error) if named => Err(error),
            Err(error) => {
                show.note(&format!("the result is not kept: {error:#}; name a file with --out"));
                Ok(Kept { file: None, path })
            }
        }
    }

    fn keep(&mut self, run: &Run) -> Result<(), StudyError> {
        match &mut self.file {
            Some(file) => Ok(file.keep(run)?),
            None => Ok(()),
        }
    }

    fn finish(&mut self, execution: &Execution) -> anyhow::Result<()> {
        if let Some(file) = &mut self.file {
            file.finish(&execution.id, &study::now())?;
        }
        Ok(())
    }

    /// Where the runs are.
    fn place(&self) -> Option<&Path> {
        self.file.is_some().then_some(self.path.as_path())
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

fn manner(args: &Bench) -> anyhow::Result<Manner> {
    let wish = Wish {
        threads: Some(args.threads),
        rate: args.rate,
        arrivals: args.arrivals.clone(),
        think: args.think,
        warm_up: args.warm_up,
        time: args.time,
        operations: args.ops,
        steady: args.steady.map(|round| Steady { round, ..Steady::default() }),
        pin: !args.no_pin,
    };
    let cpus = host::cpus(&host::Root::live()).map_or(1, |order| order.cpus.len() as u32);
    wish.manner(cpus).map_err(|Senseless { key, why }| {
        let flag = if key == "operations" { "ops".to_owned() } else { key.replace('_', "-") };
        request(format!("--{flag}: {why}"))
    })
}
