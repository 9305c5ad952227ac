//! A study with `[mbwu]`: rounds on more and more devices.

mod describe;
mod round_progress;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use analyse::mbwu::UnitEvaluation;
use execute::knobs::KnobEffects;
use execute::{MachineLock, MbwuEvaluation};
use live::Feed;
use model::{Execution, Fact, Run};
use report::table::Table;
use report::tables;
use report::terminal::Style;
use study::{MbwuTable, StudyText};

use self::describe::describe;
use self::round_progress::RoundProgress;
use super::args::RunArgs;
use super::devices::NamedDevices;
use super::finish::{print_results, resume_hint};
use super::paths::output_paths;
use super::results::{open, runs_of};
use crate::cmd::mbwu::cost;
use crate::exit::{ExitOutcome, request};
use crate::flags::platform::PlatformFlag;
use crate::interrupt::stop_flag;
use crate::output::Output;
use crate::results_target::keep_or_show;

/// `kvmeter run STUDY --device PATH...` of a study with `[mbwu]`.
pub fn measure(
    args: &RunArgs,
    table: &MbwuTable,
    source: &StudyText,
    show: &Output,
) -> anyhow::Result<ExitOutcome> {
    let name = source.spec()?.name.into_inner();
    let (out, html) = output_paths(args, &name)?;
    let stop = stop_flag()?;
    let devices = NamedDevices::of(args, table, &out)?;
    if args.dry_run {
        return describe(&devices, source, args, show);
    }
    // Only one study may measure at a time.
    let _alone = MachineLock::take()?;
    let page = args.page(source)?;
    let share = devices.preconditioned();
    let folders = devices.prepare_all(&stop, show)?;
    let mbwu = MbwuEvaluation::of(source, folders.paths(), share, &args.host.root()?)?;
    let Some(knobs) = mbwu.plan().common_knobs() else {
        return Err(request("the knobs of a study with [mbwu] cannot be factors".to_owned()));
    };
    let facts = folders.facts();
    let feed = page.feed();
    let ended = args.host.with_knobs(&knobs, show, |effects| {
        evaluate(args, &mbwu, (&out, &html), (effects, &facts), (&stop, feed), show)
    });
    page.end(&ended);
    ended
}

fn evaluate(
    args: &RunArgs,
    mbwu: &MbwuEvaluation,
    (out, html): (&PathBuf, &PathBuf),
    (effects, facts): (&KnobEffects, &[Fact]),
    (stop, feed): (&Arc<AtomicBool>, Option<Feed>),
    show: &Output,
) -> anyhow::Result<ExitOutcome> {
    let (mut file, mut execution, _) = open(args, mbwu.plan(), out, effects, facts)?;
    let before = runs_of(&file, &execution)?;
    if !before.is_empty() {
        show.note(&format!("{}: {} rounds are done", out.display(), before.len()));
    }
    let mut watch = RoundProgress { bar: args.bar(std::iter::empty(), feed, show) };
    let mut keep = |run: &Run| keep_or_show(&mut file, (&execution, run), true, args.json, show);
    let ended = mbwu.run(&execution, &before, &mut keep, &mut watch, stop, effects);
    watch.bar.finish();
    let how = resume_hint(args, out);
    let note = format!("All completed rounds are in {}. Resume with: {how}", out.display());
    let evaluation = match ended {
        Ok(evaluation) => evaluation,
        Err(error) => return Err(error.with_note(&note).into()),
    };
    if stop.load(Ordering::Relaxed) {
        show.note(&format!("Stopped. {note}"));
        return Ok(ExitOutcome::Invalid);
    }
    let at = execute::now();
    let closed = file.finish(&execution.id, &at);
    execution.finished_at = Some(at);
    let runs = runs_of(&file, &execution)?;
    print_results(args, execution, runs.clone(), (out, html), evaluation_tables, show)?;
    print_unit_costs(args, &runs, &evaluation, show)?;
    closed?;
    Ok(if evaluation.is_proven() { ExitOutcome::Done } else { ExitOutcome::Invalid })
}

/// What a unit costs on the platform of the command line. Where a number is missing, that is said,
/// and the study is no worse for it.
fn print_unit_costs(
    args: &RunArgs,
    runs: &[Run],
    evaluation: &UnitEvaluation,
    show: &Output,
) -> anyhow::Result<()> {
    let (Some(platform), false) = (&args.platform, args.json) else { return Ok(()) };
    let runs: Vec<&Run> = runs.iter().collect();
    match cost(&[PlatformFlag::named(platform)], &runs, evaluation) {
        Ok(costs) => {
            for table in costs.iter().flat_map(|costs| &costs.tables) {
                show.print("")?;
                show.tables(std::slice::from_ref(table))?;
            }
        }
        Err(why) => show.warn(&format!("not priced: {why}")),
    }
    Ok(())
}

fn evaluation_tables(runs: &[(&Execution, &Run)], style: &Style) -> String {
    let text = |table: &Table| report::terminal::table(table, style);
    tables::mbwu(runs).iter().map(text).collect::<Vec<_>>().join("\n")
}
