use std::collections::BTreeSet;
use std::path::PathBuf;

use drive::{Arrivals, Pacing, Until};
use model::Span;
use record::{Execution, File, Run};
use store::StoreUrl;
use study::{Manner, Plan, StudyError};
use workload::{Mix, Popularity, Size, Spec};

use crate::args::Bench;
use crate::exit::{Outcome, request};
use crate::files;
use crate::interrupt::stop_flag;
use crate::show::Show;

/// SNIA PTS looks for the steady state in at most 25 rounds.
const MOST_STEADY_ROUNDS: u32 = 25;

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
    let mut bar = show.bar(plan.steps().count());
    let mut runs = Vec::new();
    let mut keep = |run: &Run| {
        kept.keep(run)?;
        runs.push(run.clone());
        Ok(())
    };
    let done = study::execute(&plan, &execution, &BTreeSet::new(), &mut keep, &mut bar, &stop);
    bar.finish();
    let done = done?;
    kept.finish(&execution, show)?;

    if args.json {
        let mut objects: Vec<_> = runs.iter().map(|run| run.summary(&execution)).collect();
        let value = match objects.len() {
            1 if args.repeat == 1 => objects.remove(0),
            _ => objects.into(),
        };
        show.print(&serde_json::to_string_pretty(&value)?)?;
    } else {
        let pairs: Vec<_> = runs.iter().map(|run| (&execution, run)).collect();
        show.print(&report::terminal::runs(&pairs, show.style()))?;
    }
    if !done {
        show.note("stopped; what had ended is kept");
        return Ok(Outcome::Invalid);
    }
    Ok(if runs.iter().all(Run::valid) { Outcome::Done } else { Outcome::Invalid })
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

    fn finish(&mut self, execution: &Execution, show: &Show) -> anyhow::Result<()> {
        if let Some(file) = &mut self.file {
            file.finish(&execution.id, &study::now())?;
            show.note(&format!("kept in {}", self.path.display()));
        }
        Ok(())
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
    let wrong = |flag: &str| request(format!("{flag} must be more than zero"));
    if args.threads == 0 {
        return Err(wrong("--threads"));
    }
    if args.ops.is_some_and(|ops| ops.0 == 0) {
        return Err(wrong("--ops"));
    }
    if args.time.is_some_and(|time| time.0.is_zero()) {
        return Err(wrong("--time"));
    }
    if args.steady.is_some_and(|round| round.0.is_zero()) {
        return Err(wrong("--steady"));
    }
    let pacing = match args.rate {
        Some(rate) if rate.0 > 0.0 => {
            let arrivals = match &args.arrivals {
                None => Arrivals::Constant,
                Some(name) => Arrivals::from_name(name).ok_or_else(|| {
                    let hint = model::suggest::hint(name, Arrivals::NAMES);
                    request(format!("--arrivals {name}: no such process; {hint}"))
                })?,
            };
            Pacing::Open { rate: rate.0, arrivals }
        }
        Some(_) => return Err(wrong("--rate")),
        None => Pacing::Closed { think: args.think.unwrap_or_default().0 },
    };
    Ok(Manner {
        threads: args.threads,
        pacing,
        warm_up: args.warm_up.map(|Span(span)| span).filter(|span| !span.is_zero()),
        steady: args.steady.map(|Span(round)| (round, MOST_STEADY_ROUNDS)),
        until: Until {
            operations: args.ops.map(|ops| ops.0),
            time: args.time.map(|Span(time)| time),
        },
        pin: !args.no_pin,
    })
}
