use std::collections::BTreeSet;
use std::path::Path;

use model::{Fact, Span};
use record::{Execution, ResultsFile, Run, RunFilter};
use report::study::studies;
use report::terminal::Style;
use study::knobs::{KnobControl, KnobEffects, KnobsHeld, KnobsPerBlock};
use study::{ExecuteArgs, ExecutionEnd, KnownMaxima, MachineLock, Plan, RepeatPolicy, StudyText};

use crate::args;
use crate::exit::{Outcome, request};
use crate::files;
use crate::interrupt::stop_flag;
use crate::kept::keep_or_show;
use crate::machine_flags::pass;
use crate::planned;
use crate::show::Show;

pub fn run(args: &args::Run, show: &Show) -> anyhow::Result<Outcome> {
    let mut source = StudyText::open(&args.study)?;
    if let Some(name) = &args.scale {
        source.scale(name)?;
    }
    source.set(&args.set)?;
    if let Some(table) = study::MbwuEvaluation::table(&source)? {
        return super::mbwu::measure(args, &table, &source, show);
    }
    if !args.device.is_empty() {
        return Err(request("--device is for a study with [mbwu]; leave it out"));
    }
    let name = source.spec()?.name.into_inner();
    let (out, html) = files::places(args, &name)?;
    let mut plan = Plan::of(&source, &files::beside(&out, "data"), &args.recorded.root())?;
    plan.probes.pass = pass()?;
    if args.dry_run {
        study::check_directories(&plan)?;
        let done = done_before(args, &out)?;
        return planned::describe_study(&plan, &done, args.max_time, args.json, show);
    }
    // Whoever runs a study measures alone.
    let _alone = MachineLock::take()?;
    planned::announce(&plan, args.max_time, show);
    match plan.common_knobs() {
        Some(levels) => args.recorded.under(&levels, show, |seen| {
            measure(args, &plan, &out, &html, (seen, &mut KnobsHeld(seen)), show)
        }),
        None => {
            let tell = |words: &str| show.note(words);
            let (root, supervisor) = (args.recorded.root(), args.recorded.supervisor()?);
            let mut turner = KnobsPerBlock { root, supervisor, log: &tell };
            let nothing = KnobEffects::default();
            measure(args, &plan, &out, &html, (&nothing, &mut turner), show)
        }
    }
}

fn measure(
    args: &args::Run,
    plan: &Plan,
    out: &Path,
    html: &Path,
    (seen, turn): (&KnobEffects, &mut dyn KnobControl),
    show: &Show,
) -> anyhow::Result<Outcome> {
    let (mut file, mut execution, done) = open(args, plan, out, seen, &[])?;
    let planned = plan.steps().map(|(_, step)| step).filter(|step| !plan.is_spare(step));
    let left: Vec<_> = planned.filter(|step| !done.contains(&step.ordinal)).collect();
    let kept = runs_of(&file, &execution)?;
    if !done.is_empty() {
        show.note(&format!(
            "{}: {} runs are done, {} are left",
            out.display(),
            kept.len(),
            left.len()
        ));
    }
    let mut course = RepeatPolicy::new(plan, &kept, args.max_time.map(|Span(limit)| limit))?;
    let mut maxima = KnownMaxima::of(plan, &kept);
    let stop = stop_flag()?;
    let mut to_go = left.len();
    let mut bar = show.bar(left.into_iter());
    let mut keep = |run: &Run| {
        to_go = to_go.saturating_sub(1);
        keep_or_show(&mut file, (&execution, run), to_go > 0, args.json, show)
    };
    let doing = ExecuteArgs {
        policy: &mut course,
        maxima: &mut maxima,
        turn,
        keep: &mut keep,
        listener: &mut bar,
        stop: &stop,
    };
    let ended = study::execute(plan, &execution, &done, doing);
    bar.finish();
    let how = resume_hint(args, out);
    let mut closed = Ok(());
    match ended {
        Ok(ExecutionEnd::Whole) => {
            for note in course.notes() {
                show.note(&note);
                closed = closed.and_then(|()| file.note(&execution.id, &note));
                execution.notes.push(note);
            }
            let at = study::now();
            closed = closed.and_then(|()| file.finish(&execution.id, &at));
            execution.finished_at = Some(at);
        }
        Ok(ExecutionEnd::Stopped) => {
            show.note(&format!(
                "Stopped; every finished run is in {}. Go on with: {how}",
                out.display()
            ));
            return Ok(Outcome::Invalid);
        }
        Err(error) => {
            let kept =
                format!("Every run that was kept is in {}. Go on with: {how}", out.display());
            return Err(error.with_note(&kept).into());
        }
    }
    let runs = runs_of(&file, &execution)?;
    let valid = runs.iter().filter(|run| !run.is_trial()).all(Run::valid);
    // The results are shown even if the file could not be told that they are all.
    tell(args, execution, runs, (out, html), report::terminal::runs, show)?;
    closed?;
    Ok(if valid { Outcome::Done } else { Outcome::Invalid })
}

/// What a study that has ended came to: its runs as `shown`, then its answers, which whoever asked
/// looks for last; and its page.
pub fn tell(
    args: &args::Run,
    execution: Execution,
    runs: Vec<Run>,
    (out, html): (&Path, &Path),
    shown: impl Fn(&[(&Execution, &Run)], &Style) -> String,
    show: &Show,
) -> anyhow::Result<()> {
    if !args.json {
        let pairs: Vec<_> = runs.iter().map(|run| (&execution, run)).collect();
        show.painted(&shown(&pairs, show.style()))?;
        for study in studies([&execution], &pairs) {
            show.print("")?;
            show.painted(&report::terminal::study(&study, show.style()))?;
        }
        show.print(&format!("\nresults  {}\nreport   {}", out.display(), html.display()))?;
    }
    files::write(html, report::html::page(&[(execution, runs)]).as_bytes())
}

/// The runs of an execution that are kept.
pub fn runs_of(file: &ResultsFile, execution: &Execution) -> anyhow::Result<Vec<Run>> {
    let mut runs = file.runs(&RunFilter::all())?;
    runs.retain(|run| run.execution == execution.id);
    Ok(runs)
}

/// The results file, this invocation in it, and what of it is done already. `facts` are kept of an
/// execution that begins.
pub fn open(
    args: &args::Run,
    plan: &Plan,
    out: &Path,
    seen: &KnobEffects,
    facts: &[Fact],
) -> anyhow::Result<(ResultsFile, Execution, BTreeSet<u32>)> {
    let place = out.display();
    if out.exists() {
        let mut file = ResultsFile::open_or_create(out)?;
        let executions = file.executions()?;
        // A kill right after the file was made leaves it without a word of what was to run.
        let begun = !executions.is_empty();
        if begun && !args.resume {
            return Err(request(format!(
                "{place} is there already; go on with --resume, or name another --out"
            )));
        }
        if let Some(mut execution) = to_resume(executions) {
            check_the_same(&execution, plan, out, seen)?;
            study::check_directories(plan)?;
            if execution.finished_at.take().is_some() {
                file.go_on(&execution.id)?;
                execution.notes.clear();
            }
            let done = file.done(&execution.id)?;
            file.reserve(plan.room())?;
            return Ok((file, execution, done));
        }
        study::check_directories(plan)?;
        let execution = begin(&mut file, plan, seen, facts)?;
        return Ok((file, execution, BTreeSet::new()));
    }
    if args.resume {
        return Err(request(format!("{place} is not there; leave out --resume to begin")));
    }
    study::check_directories(plan)?;
    files::make_room_for(out).map_err(|error| request(format!("{place}: {error}")))?;
    let mut file = ResultsFile::create(out)?;
    let execution = begin(&mut file, plan, seen, facts)?;
    Ok((file, execution, BTreeSet::new()))
}

/// What a resumed study has done already.
fn done_before(args: &args::Run, out: &Path) -> anyhow::Result<BTreeSet<u32>> {
    if !args.resume {
        return Ok(BTreeSet::new());
    }
    let file = ResultsFile::read(out)?;
    let begun = to_resume(file.executions()?);
    Ok(begun.map(|execution| file.done(&execution.id)).transpose()?.unwrap_or_default())
}

/// Which of a file's executions `--resume` goes on with: the last that has not ended, else the
/// last. One that has ended may have dropped repeats; if it has not, it may have been killed before
/// its report was written.
fn to_resume(mut executions: Vec<Execution>) -> Option<Execution> {
    let unfinished = executions.iter().rposition(|execution| execution.finished_at.is_none());
    match unfinished {
        Some(at) => Some(executions.swap_remove(at)),
        None => executions.pop(),
    }
}

fn begin(
    file: &mut ResultsFile,
    plan: &Plan,
    seen: &KnobEffects,
    facts: &[Fact],
) -> anyhow::Result<Execution> {
    let mut execution = study::execution(plan, std::env::args().collect(), seen);
    execution.machine.facts.extend_from_slice(facts);
    // First, so that a disk without that much leaves nothing begun.
    file.reserve(plan.room())?;
    file.begin(&execution)?;
    Ok(execution)
}

/// The execution that `--resume` goes on with, if there is one.
pub fn begun(out: &Path) -> anyhow::Result<Option<Execution>> {
    Ok(to_resume(ResultsFile::read(out)?.executions()?))
}

/// What was begun is what is asked now, on the same machine.
fn check_the_same(
    execution: &Execution,
    plan: &Plan,
    out: &Path,
    seen: &KnobEffects,
) -> anyhow::Result<()> {
    let planned: Vec<_> = plan.steps().map(|(_, step)| step.planned()).collect();
    let changed = if execution.plan != planned {
        "with another plan (the study, its --scale or a --set has changed)"
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
    if let Some(scale) = &args.scale {
        words.extend(["--scale".to_owned(), quoted(scale)]);
    }
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
