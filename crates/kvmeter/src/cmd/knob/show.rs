//! `knob list` and `knob show`.

use anyhow::Context;
use host::Root;
use host::knob::{Knobs, state_folder, status};
use report::tables::{self, KnobRow};

use crate::exit::ExitOutcome;
use crate::output::Output;

pub fn list(root: &Root, json: bool, show: &Output) -> anyhow::Result<ExitOutcome> {
    let all = status(root, state_folder().ok().as_deref())?;
    if json {
        show.json(&all)?;
        return Ok(ExitOutcome::Done);
    }
    let rows = all.iter().map(|status| KnobRow {
        name: status.about.name.to_owned(),
        now: status.now.as_ref().ok().map(ToString::to_string),
        kept: status.kept.is_some(),
        levels: match &status.levels {
            Ok(levels) => Ok(levels.iter().map(ToString::to_string).collect()),
            Err(why) => Err(why.to_string()),
        },
    });
    show.tables(&[tables::knobs(&rows.collect::<Vec<_>>())])?;
    Ok(ExitOutcome::Done)
}

pub fn show_knob(
    root: &Root,
    name: &str,
    json: bool,
    show: &Output,
) -> anyhow::Result<ExitOutcome> {
    let about = Knobs::find(name)?.info();
    let all = status(root, state_folder().ok().as_deref())?;
    let status = all.iter().find(|status| status.about.name == about.name);
    let status = status.context("every knob has a status")?;
    if json {
        show.json(status)?;
        return Ok(ExitOutcome::Done);
    }
    let or_why = |answer: Result<String, String>| answer.unwrap_or_else(|why| why);
    let rows = [
        ("knob", about.name.to_owned()),
        ("turns", about.what.to_owned()),
        ("now", or_why(status.now.clone().map_err(|why| why.to_string()))),
        (
            "levels",
            or_why(status.levels.clone().map(|l| l.join(", ")).map_err(|why| why.to_string())),
        ),
        ("kept", status.kept.clone().unwrap_or_else(|| "no".to_owned())),
        ("scope", about.scope.to_owned()),
        ("mechanism", about.mechanism.to_owned()),
        ("proof", about.proof.to_owned()),
    ];
    let text: String = rows.iter().map(|(name, value)| format!("{name:<11}{value}\n")).collect();
    show.print(&text)?;
    Ok(ExitOutcome::Done)
}
