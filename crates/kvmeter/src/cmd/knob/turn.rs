//! Turns knobs, and brings them back.

use std::path::Path;

use host::Root;
use host::knob::{Journal, KnobPlan, RestoreOutcome, run_under, state_folder};

use crate::exit::ExitOutcome;
use crate::flags::machine::supervisor_command;
use crate::interrupt::stop_flag;
use crate::output::Output;

/// Before a measurement, restores knobs that a killed kvmeter left turned.
pub fn recover(show: &Output) -> anyhow::Result<()> {
    // Without a state folder there is no journal.
    if let Ok(folder) = state_folder() {
        report_recovered(&Journal::recover(&Root::live(), &folder)?, show);
    }
    Ok(())
}

/// Turns knobs of `root` for a command, or until they are restored. `recorded` is the
/// folder of a recorded machine.
pub fn set(
    root: &Root,
    recorded: Option<&Path>,
    plan: KnobPlan,
    command: &[String],
    show: &Output,
) -> anyhow::Result<ExitOutcome> {
    let keep = command.is_empty();
    if keep {
        plan.check_keepable()?;
    }
    let stop = stop_flag()?;
    let folder = state_folder()?;
    let journal = Journal::open(root, &folder)?;
    report_recovered(journal.recovered(), show);
    let supervisor = supervisor_command(&folder, recorded)?;
    let mut turned = plan.apply(journal.supervised_by(supervisor))?;
    for proof in turned.proofs() {
        show.note(&proof.to_string());
    }
    if keep {
        turned.check_effect()?;
        turned.keep()?;
        show.note("turned until `kvmeter knob restore` or the next boot");
        return Ok(ExitOutcome::Done);
    }
    let code = run_under(&mut turned, command, &stop);
    let restored = turned.restore();
    let code = code?;
    show.note(&restored?.to_string());
    Ok(ExitOutcome::Code(code))
}

/// Restores what kvmeter left turned.
pub fn restore(root: &Root, show: &Output) -> anyhow::Result<ExitOutcome> {
    let mut journal = Journal::open(root, &state_folder()?)?;
    report_recovered(journal.recovered(), show);
    match journal.restore_kept()? {
        Some(restored) => show.note(&restored.to_string()),
        None if journal.recovered().is_empty() => show.note("nothing is turned"),
        None => {}
    }
    Ok(ExitOutcome::Done)
}

fn report_recovered(recovered: &[RestoreOutcome], show: &Output) {
    for restored in recovered {
        show.warn(&format!("an earlier kvmeter was killed while knobs were turned: {restored}"));
    }
}
