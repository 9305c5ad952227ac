//! Executes a study's plan and stores its runs.

use std::path::Path;

use execute::knobs::{KnobControl, KnobEffects};
use execute::{ExecuteArgs, ExecutionEnd, KnownMaxima, RepeatPolicy};
use live::Feed;
use model::{Run, Span};
use study::Plan;

use super::args::RunArgs;
use super::finish::{print_costs, print_results, resume_hint};
use super::results::{open, runs_of};
use crate::exit::ExitOutcome;
use crate::interrupt::stop_flag;
use crate::output::Output;
use crate::results_target::keep_or_show;

pub fn measure(
    args: &RunArgs,
    plan: &Plan,
    out: &Path,
    html: &Path,
    (effects, turn): (&KnobEffects, &mut dyn KnobControl),
    feed: Option<Feed>,
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
    let mut bar = args.bar(left.into_iter(), feed, show);
    let mut keep = |run: &Run| {
        // A saved run comes again with its profile.
        to_go = to_go.saturating_sub(usize::from(run.profile.is_none()));
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
    drop(file);
    print_costs(args, out, show)?;
    Ok(if valid { ExitOutcome::Done } else { ExitOutcome::Invalid })
}
