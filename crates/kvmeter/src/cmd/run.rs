use std::collections::BTreeSet;
use std::path::Path;

use record::{Execution, File, Filter, Run};
use report::PlanRow;
use study::knobs::Seen;
use study::{Plan, Source};

use crate::args;
use crate::exit::{Outcome, request};
use crate::files;
use crate::interrupt::stop_flag;
use crate::machine_flags::pass;
use crate::show::Show;

pub fn run(args: &args::Run, show: &Show) -> anyhow::Result<Outcome> {
    let mut source = Source::open(&args.study)?;
    source.set(&args.set)?;
    if let Some(table) = study::Mbwu::table(&source)? {
        return super::mbwu::measure(args, &table, &source, show);
    }
    if !args.device.is_empty() {
        return Err(request("--device is for a study with [mbwu]; leave it out"));
    }
    let name = source.spec()?.name.into_inner();
    let out = match &args.out {
        Some(out) => out.clone(),
        None if args.resume => files::newest_of(&name).ok_or_else(|| {
            request(format!("there is no results file of `{name}` to resume; name it with --out"))
        })?,
        None => files::for_study(&name),
    };
    let mut plan = Plan::of(&source, &files::beside(&out, "data"), &args.recorded.root())?;
    plan.probes.pass = pass()?;
    let html = args.html.clone().unwrap_or_else(|| files::beside(&out, "html"));
    files::check_output("--html", &html, &[Path::new(&args.study), &out])?;
    if args.dry_run {
        study::check_directories(&plan)?;
        let done = done_before(args, &out)?;
        let left: Vec<_> =
            plan.steps().map(|(_, step)| step).filter(|s| !done.contains(&s.ordinal)).collect();
        return describe(&left, &plan.knobs.plan(&plan.probes.root)?, args.json, show);
    }
    args.recorded.under(&plan.knobs, show, |seen| measure(args, &plan, &out, &html, seen, show))
}

/// What would be run, and what would be written before it.
pub fn describe(
    steps: &[&study::Step],
    knobs: &host::knob::Plan,
    json: bool,
    show: &Show,
) -> anyhow::Result<Outcome> {
    let turns = knobs.levels().next().is_some();
    if json {
        let writes: Vec<String> = knobs.writes().map(|(.., write)| write.to_string()).collect();
        let with_writes = |step: &&study::Step| {
            let mut object = object(step);
            if turns {
                object["knob_writes"] = writes.clone().into();
            }
            object
        };
        let steps: Vec<_> = steps.iter().map(with_writes).collect();
        show.print(&serde_json::to_string_pretty(&steps)?)?;
        return Ok(Outcome::Done);
    }
    let rows: Vec<PlanRow> = steps.iter().map(|step| row(step)).collect();
    show.print(&report::terminal::plan(&rows, show.style()))?;
    match turns {
        true => super::knob::describe(knobs, show),
        false => Ok(Outcome::Done),
    }
}

fn measure(
    args: &args::Run,
    plan: &Plan,
    out: &Path,
    html: &Path,
    seen: &Seen,
    show: &Show,
) -> anyhow::Result<Outcome> {
    let (mut file, mut execution, done) = open(args, plan, out, seen)?;
    let left: Vec<_> =
        plan.steps().map(|(_, step)| step).filter(|s| !done.contains(&s.ordinal)).collect();
    if !done.is_empty() {
        show.note(&format!(
            "{}: {} runs are done, {} are left",
            out.display(),
            done.len(),
            left.len()
        ));
    }
    let stop = stop_flag()?;
    let mut bar = show.bar(left.into_iter());
    let mut keep = |run: &Run| {
        file.keep(run)?;
        if args.json {
            // A reader that went away does not end a study.
            let _ = show.print(&run.summary(&execution).to_string());
        }
        Ok(())
    };
    let ended = study::execute(plan, &execution, &done, &mut keep, &mut bar, &stop, seen);
    bar.finish();
    let how = resume_hint(args, out);
    match ended {
        Ok(true) => {
            let at = study::now();
            file.finish(&execution.id, &at)?;
            execution.finished_at = Some(at);
        }
        Ok(false) => {
            show.note(&format!(
                "Stopped; every finished run is in {}. Go on with: {how}",
                out.display()
            ));
            return Ok(Outcome::Invalid);
        }
        Err(error) => {
            let kept = format!("Every finished run is in {}. Go on with: {how}", out.display());
            return Err(error.with_note(&kept).into());
        }
    }
    let mut runs = file.runs(&Filter::all())?;
    runs.retain(|run| run.execution == execution.id);
    let valid = runs.iter().all(Run::valid);
    if !args.json {
        let pairs: Vec<_> = runs.iter().map(|run| (&execution, run)).collect();
        show.print(&report::terminal::runs(&pairs, show.style()))?;
        show.print(&format!("\nresults  {}\nreport   {}", out.display(), html.display()))?;
    }
    let page = report::html::page(&[(execution, runs)]);
    files::make_room_for(html)
        .and_then(|()| std::fs::write(html, page))
        .map_err(|error| request(format!("{}: {error}", html.display())))?;
    Ok(if valid { Outcome::Done } else { Outcome::Invalid })
}

/// The results file, this invocation in it, and what of it is done already.
pub fn open(
    args: &args::Run,
    plan: &Plan,
    out: &Path,
    seen: &Seen,
) -> anyhow::Result<(File, Execution, BTreeSet<u32>)> {
    let place = out.display();
    if out.exists() {
        let mut file = File::open_or_create(out)?;
        let executions = file.executions()?;
        // A kill right after the file was made leaves it without a word of what was to run.
        let begun = !executions.is_empty();
        if begun && !args.resume {
            return Err(request(format!(
                "{place} is there already; go on with --resume, or name another --out"
            )));
        }
        let unfinished = executions.into_iter().rev().find(|e| e.finished_at.is_none());
        if begun {
            let execution = unfinished.ok_or_else(|| {
                request(format!("{place}: nothing to resume, the study has ended"))
            })?;
            check_the_same(&execution, plan, out, seen)?;
            study::check_directories(plan)?;
            let done = file.done(&execution.id)?;
            return Ok((file, execution, done));
        }
        study::check_directories(plan)?;
        let execution = begin(&mut file, plan, seen)?;
        return Ok((file, execution, BTreeSet::new()));
    }
    if args.resume {
        return Err(request(format!("{place} is not there; leave out --resume to begin")));
    }
    study::check_directories(plan)?;
    files::make_room_for(out).map_err(|error| request(format!("{place}: {error}")))?;
    let mut file = File::create(out)?;
    let execution = begin(&mut file, plan, seen)?;
    Ok((file, execution, BTreeSet::new()))
}

/// What a resumed study has done already.
fn done_before(args: &args::Run, out: &Path) -> anyhow::Result<BTreeSet<u32>> {
    if !args.resume {
        return Ok(BTreeSet::new());
    }
    let file = File::read(out)?;
    let unfinished = file.executions()?.into_iter().rev().find(|e| e.finished_at.is_none());
    Ok(unfinished.map(|execution| file.done(&execution.id)).transpose()?.unwrap_or_default())
}

fn begin(file: &mut File, plan: &Plan, seen: &Seen) -> anyhow::Result<Execution> {
    let execution = study::execution(plan, std::env::args().collect(), seen);
    file.begin(&execution)?;
    Ok(execution)
}

/// What was begun is what is asked now, on the same machine.
fn check_the_same(
    execution: &Execution,
    plan: &Plan,
    out: &Path,
    seen: &Seen,
) -> anyhow::Result<()> {
    let planned: Vec<_> = plan.steps().map(|(_, step)| step.planned()).collect();
    let changed = if execution.plan != planned {
        "with another plan (the study or a --set has changed)"
    } else if execution.machine.id != study::execution(plan, Vec::new(), seen).machine.id {
        "on another machine"
    } else if execution.version != env!("CARGO_PKG_VERSION") {
        "by another version of kvmeter"
    } else {
        return Ok(());
    };
    let place = out.display();
    Err(request(format!("{place}: it was begun {changed}; start anew with another --out")))
}

/// The command that goes on, ready to be pasted into a shell.
pub fn resume_hint(args: &args::Run, out: &Path) -> String {
    let mut words = vec!["kvmeter".to_owned(), "run".to_owned(), quoted(&args.study)];
    words.extend(["--out".to_owned(), quoted(&out.display().to_string())]);
    for set in &args.set {
        words.extend(["--set".to_owned(), quoted(set)]);
    }
    for device in &args.device {
        words.extend(["--device".to_owned(), quoted(&device.display().to_string())]);
    }
    if let Some(html) = &args.html {
        words.extend(["--html".to_owned(), quoted(&html.display().to_string())]);
    }
    words.push("--resume".to_owned());
    words.join(" ")
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

fn row(step: &study::Step) -> PlanRow {
    let estimate = step.estimate();
    PlanRow {
        ordinal: step.ordinal,
        label: step.label.clone(),
        phase: step.phase,
        settings: step.settings.clone(),
        seconds: Some(estimate.seconds),
        bytes: Some(estimate.data.0),
    }
}

fn object(step: &study::Step) -> serde_json::Value {
    let estimate = step.estimate();
    serde_json::json!({
        "ordinal": step.ordinal,
        "label": step.label,
        "phase": step.phase,
        "settings": step.settings,
        "estimated_seconds": estimate.seconds,
        "estimate_is_a_guess": estimate.guessed,
        "data_bytes": estimate.data.0,
    })
}
