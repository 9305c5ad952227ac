use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use execute::{ExecuteArgs, ExecutionEnd, KnownMaxima, MachineLock, RepeatPolicy};
use execute::{knobs::KnobControl, knobs::KnobEffects, knobs::KnobsHeld, knobs::KnobsPerBlock};
use model::{Execution, Fact, Run, Span};
use record::{ResultsFile, RunFilter};
use report::study::studies;
use report::terminal::Style;
use study::{Plan, StudyText};

use crate::exit::{ExitOutcome, request};
use crate::flags::machine::{RecordedMachine, pass};
use crate::interrupt::stop_flag;
use crate::output::Output;
use crate::output_files;
use crate::plan_output;
use crate::results_target::keep_or_show;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kvmeter run quickstart\n  \
    kvmeter run quickstart --dry-run\n  \
    kvmeter run study.toml --out results.sqlite --set data.records=1M --set measure.time=30s\n  \
    kvmeter run study.toml --out results.sqlite --resume    resumes after a kill\n  \
    kvmeter run study.toml --scale small --max-time 30m     a smaller one, within half an hour\n  \
    kvmeter run mbwu --device /mnt/ssd1 --device /mnt/ssd2  work units of devices\n\n\
    Without --out the results go to results/NAME-TIME.sqlite.")]
pub struct RunArgs {
    /// A study file, or the name of a built-in study
    #[arg(value_hint = ValueHint::FilePath)]
    pub study: String,
    /// The results file
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub out: Option<PathBuf>,
    /// Print the cells, every run in its order, and an estimate of time, disk and energy; run
    /// nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Run the smaller or larger version that the study calls by this name
    #[arg(long, value_name = "NAME")]
    pub scale: Option<String>,
    /// Time limit from now on; repeats are dropped before cells
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub max_time: Option<Span>,
    /// Resume a stopped or killed run of this study
    #[arg(long)]
    pub resume: bool,
    /// Of a study with `[mbwu]`: a folder on the file system of a device that is measured, or a block
    /// device, which loses what is on it; once for each device
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub device: Vec<PathBuf>,
    /// The serial number or model of each block device, to confirm that it may be overwritten
    #[arg(long, value_name = "NAME", requires = "device")]
    pub confirm: Vec<String>,
    /// Content of a block device that may be lost, as --dry-run names it: ext4:3f2a91c0
    #[arg(long, value_name = "WORD", requires = "device", value_delimiter = ',')]
    pub overwrite: Vec<String>,
    /// Change a value of the study
    #[arg(long, value_name = "TABLE.KEY=VALUE")]
    pub set: Vec<String>,
    /// Write the HTML report here (next to the results file unless given)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub html: Option<PathBuf>,
    /// One JSON object for each run, a line each, as it ends; with --dry-run one array
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub recorded: RecordedMachine,
}

pub fn run(args: &RunArgs, show: &Output) -> anyhow::Result<ExitOutcome> {
    let mut source = StudyText::open(&args.study)?;
    if let Some(name) = &args.scale {
        source.scale(name)?;
    }
    source.set(&args.set)?;
    if let Some(table) = study::mbwu::MbwuTable::of(&source)? {
        return super::mbwu::measure(args, &table, &source, show);
    }
    if !args.device.is_empty() {
        return Err(request("--device is for a study with [mbwu]; leave it out"));
    }
    let name = source.spec()?.name.into_inner();
    let (out, html) = output_files::output_paths(args, &name)?;
    let mut plan = Plan::of(&source, &output_files::sibling(&out, "data"), &args.recorded.root())?;
    plan.probes.pass = pass()?;
    if args.dry_run {
        execute::check_directories(&plan)?;
        let done = finished_before(args, &out)?;
        return plan_output::describe_study(&plan, &done, args.max_time, args.json, show);
    }
    // Only one study may measure at a time.
    let _alone = MachineLock::take()?;
    plan_output::announce(&plan, args.max_time, show);
    match plan.common_knobs() {
        Some(levels) => args.recorded.with_knobs(&levels, show, |effects| {
            measure(args, &plan, &out, &html, (effects, &mut KnobsHeld(effects)), show)
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
    args: &RunArgs,
    plan: &Plan,
    out: &Path,
    html: &Path,
    (effects, turn): (&KnobEffects, &mut dyn KnobControl),
    show: &Output,
) -> anyhow::Result<ExitOutcome> {
    let (mut file, mut execution, done) = open(args, plan, out, effects, &[])?;
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
    let mut policy = RepeatPolicy::new(plan, &kept, args.max_time.map(|Span(limit)| limit))?;
    let mut maxima = KnownMaxima::of(plan, &kept);
    let stop = stop_flag()?;
    let mut to_go = left.len();
    let mut bar = show.bar(left.into_iter());
    let mut keep = |run: &Run| {
        to_go = to_go.saturating_sub(1);
        keep_or_show(&mut file, (&execution, run), to_go > 0, args.json, show)
    };
    let execute_args = ExecuteArgs {
        policy: &mut policy,
        maxima: &mut maxima,
        turn,
        keep: &mut keep,
        listener: &mut bar,
        stop: &stop,
    };
    let end = execute::execute(plan, &execution, &done, execute_args);
    bar.finish();
    let how = resume_hint(args, out);
    let mut closed = Ok(());
    match end {
        Ok(ExecutionEnd::Whole) => {
            for note in policy.notes() {
                show.note(&note);
                closed = closed.and_then(|()| file.note(&execution.id, &note));
                execution.notes.push(note);
            }
            let at = execute::now();
            closed = closed.and_then(|()| file.finish(&execution.id, &at));
            execution.finished_at = Some(at);
        }
        Ok(ExecutionEnd::Stopped) => {
            show.note(&format!(
                "Stopped; all completed runs are in {}. Resume with: {how}",
                out.display()
            ));
            return Ok(ExitOutcome::Invalid);
        }
        Err(error) => {
            let kept = format!("All completed runs are in {}. Resume with: {how}", out.display());
            return Err(error.with_note(&kept).into());
        }
    }
    let runs = runs_of(&file, &execution)?;
    let valid = runs.iter().filter(|run| !run.is_trial()).all(Run::valid);
    // The results are shown even if the file could not be marked as finished.
    print_results(args, execution, runs, (out, html), report::terminal::runs, show)?;
    closed?;
    Ok(if valid { ExitOutcome::Done } else { ExitOutcome::Invalid })
}

/// Prints the results of a finished study: its runs as `shown`, then its answers; and writes its
/// page.
pub fn print_results(
    args: &RunArgs,
    execution: Execution,
    runs: Vec<Run>,
    (out, html): (&Path, &Path),
    shown: impl Fn(&[(&Execution, &Run)], &Style) -> String,
    show: &Output,
) -> anyhow::Result<()> {
    if !args.json {
        let pairs: Vec<_> = runs.iter().map(|run| (&execution, run)).collect();
        show.print_styled(&shown(&pairs, show.style()))?;
        for study in studies([&execution], &pairs) {
            show.print("")?;
            show.print_styled(&report::terminal::study(&study, show.style()))?;
        }
        show.print(&format!("\nresults  {}\nreport   {}", out.display(), html.display()))?;
    }
    output_files::write(html, report::html::page(&[(execution, runs)]).as_bytes())
}

/// The stored runs of an execution.
pub fn runs_of(file: &ResultsFile, execution: &Execution) -> anyhow::Result<Vec<Run>> {
    let mut runs = file.runs(&RunFilter::all())?;
    runs.retain(|run| run.execution == execution.id);
    Ok(runs)
}

/// Opens the results file: with its execution and the ordinals that are done already. `facts` are
/// added to a new execution.
pub fn open(
    args: &RunArgs,
    plan: &Plan,
    out: &Path,
    effects: &KnobEffects,
    facts: &[Fact],
) -> anyhow::Result<(ResultsFile, Execution, BTreeSet<u32>)> {
    let place = out.display();
    if out.exists() {
        let mut file = ResultsFile::open_or_create(out)?;
        let executions = file.executions()?;
        // A kill right after the file was created leaves it without an execution.
        let has_execution = !executions.is_empty();
        if has_execution && !args.resume {
            return Err(request(format!(
                "{place} exists already; continue with --resume, or name another --out"
            )));
        }
        if let Some(mut execution) = execution_to_resume(executions) {
            check_unchanged(&execution, plan, out, effects)?;
            execute::check_directories(plan)?;
            if execution.finished_at.take().is_some() {
                file.reopen(&execution.id)?;
                execution.notes.clear();
            }
            let done = file.finished_runs(&execution.id)?;
            file.reserve(plan.room())?;
            return Ok((file, execution, done));
        }
        execute::check_directories(plan)?;
        let execution = begin(&mut file, plan, effects, facts)?;
        return Ok((file, execution, BTreeSet::new()));
    }
    if args.resume {
        return Err(request(format!("{place} does not exist; leave out --resume to begin")));
    }
    execute::check_directories(plan)?;
    output_files::create_parent(out).map_err(|error| request(format!("{place}: {error}")))?;
    let mut file = ResultsFile::create(out)?;
    let execution = begin(&mut file, plan, effects, facts)?;
    Ok((file, execution, BTreeSet::new()))
}

/// The ordinals that a resumed study has done already.
fn finished_before(args: &RunArgs, out: &Path) -> anyhow::Result<BTreeSet<u32>> {
    if !args.resume {
        return Ok(BTreeSet::new());
    }
    let file = ResultsFile::read(out)?;
    let execution = execution_to_resume(file.executions()?);
    Ok(execution
        .map(|execution| file.finished_runs(&execution.id))
        .transpose()?
        .unwrap_or_default())
}

/// The execution that `--resume` continues: the last unfinished one, else the last. A finished one
/// may have dropped repeats, or been killed before its report was written.
fn execution_to_resume(mut executions: Vec<Execution>) -> Option<Execution> {
    let unfinished = executions.iter().rposition(|execution| execution.finished_at.is_none());
    match unfinished {
        Some(at) => Some(executions.swap_remove(at)),
        None => executions.pop(),
    }
}

fn begin(
    file: &mut ResultsFile,
    plan: &Plan,
    effects: &KnobEffects,
    facts: &[Fact],
) -> anyhow::Result<Execution> {
    let mut execution = execute::execution(plan, std::env::args().collect(), effects);
    execution.machine.facts.extend_from_slice(facts);
    // Reserved first, so that a full disk leaves no execution behind.
    file.reserve(plan.room())?;
    file.begin(&execution)?;
    Ok(execution)
}

/// The execution that `--resume` continues, if there is one.
pub fn resumable(out: &Path) -> anyhow::Result<Option<Execution>> {
    Ok(execution_to_resume(ResultsFile::read(out)?.executions()?))
}

/// Checks that plan, machine and version are those of the execution.
fn check_unchanged(
    execution: &Execution,
    plan: &Plan,
    out: &Path,
    effects: &KnobEffects,
) -> anyhow::Result<()> {
    let planned: Vec<_> = plan.steps().map(|(_, step)| step.planned()).collect();
    let changed = if execution.plan != planned {
        "with another plan (the study, its --scale or a --set has changed)"
    } else if execution.machine.id != execute::execution(plan, Vec::new(), effects).machine.id {
        "on another machine"
    } else if execution.version != env!("CARGO_PKG_VERSION") {
        "by another version of kvmeter"
    } else {
        return Ok(());
    };
    let place = out.display();
    Err(request(format!("{place}: it was begun {changed}; start again with another --out")))
}

/// The command that resumes, quoted for a shell.
pub fn resume_hint(args: &RunArgs, out: &Path) -> String {
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

/// A word quoted for a shell.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}
