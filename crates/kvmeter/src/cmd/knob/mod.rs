//! `knob list | show | set | restore`: showing and turning the machine's knobs.

mod show;
mod turn;

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use host::Root;
use host::knob::{KnobPlan, Knobs, parse_level, supervisor};

use self::show::{list, show_knob};
pub use self::turn::recover;
use self::turn::{restore, set};
use crate::exit::ExitOutcome;
use crate::flags::machine::TrustFlag;
use crate::output::{Output, write_stderr};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kvmeter knob list                                      the knobs and their levels here\n  \
    kvmeter knob show idle                                 one knob: scope, mechanism, proof\n  \
    kvmeter knob set idle=none --dry-run                   every write, without doing it\n  \
    kvmeter knob set idle=none turbo=off -- ./load --all   a command under knobs, then back\n  \
    kvmeter knob set governor=performance                  until `knob restore` or the next boot\n  \
    kvmeter knob restore\n\n\
    Every write is journalled first. However kvmeter ends, the old values are restored.")]
pub struct KnobArgs {
    #[command(subcommand)]
    pub verb: KnobVerb,
    /// The machine recorded in this folder instead of this one
    #[arg(long, global = true, hide = true, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub root: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub enum KnobVerb {
    /// Lists every knob with its current level and the levels that it has here
    List {
        /// Print one JSON array
        #[arg(long)]
        json: bool,
    },
    /// Shows scope, mechanism and proof of one knob
    Show {
        /// Name of the knob, as in `kvmeter knob list`
        knob: String,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Turns knobs: for a command, or until `knob restore`
    Set {
        /// Levels such as idle=none or governor=performance@0-3
        #[arg(required = true, value_name = "KNOB=LEVEL")]
        levels: Vec<String>,
        /// Print every write with its old and new value, without doing it
        #[arg(long)]
        dry_run: bool,
        #[command(flatten)]
        trust: TrustFlag,
        /// Run this under the knobs, restore them, and end with its exit code
        #[arg(last = true, value_name = "COMMAND")]
        command: Vec<String>,
    },
    /// Restores all knobs that kvmeter left turned
    Restore,
    /// Watches over the knobs of another kvmeter
    #[command(hide = true)]
    Supervise {
        /// The folder of its journal
        folder: PathBuf,
    },
}

pub fn run(args: &KnobArgs, show: &Output) -> anyhow::Result<ExitOutcome> {
    let root = args.root.as_ref().map_or_else(Root::live, Root::at);
    match &args.verb {
        KnobVerb::List { json } => list(&root, *json, show),
        KnobVerb::Show { knob, json } => show_knob(&root, knob, *json, show),
        KnobVerb::Set { levels, dry_run, trust, command } => {
            let root = trust.of(root)?;
            let levels =
                levels.iter().map(|text| parse_level(text)).collect::<Result<Vec<_>, _>>()?;
            let plan = Knobs::plan(&root, &levels)?;
            if *dry_run {
                describe(&plan, show)
            } else {
                set(&root, args.root.as_deref(), plan, command, show)
            }
        }
        KnobVerb::Restore => restore(&root, show),
        KnobVerb::Supervise { folder } => {
            if let Some(restored) = supervisor::run(&root, folder)? {
                write_stderr(&format!("kvmeter was killed while knobs were turned: {restored}"));
            }
            Ok(ExitOutcome::Done)
        }
    }
}

/// Prints every write of a plan, and which are refused.
pub fn describe(plan: &KnobPlan, show: &Output) -> anyhow::Result<ExitOutcome> {
    let refused = plan.refused();
    for (knob, level, write) in plan.writes() {
        let why = refused.iter().find(|(other, _)| *other == write);
        let why = why.map_or(String::new(), |(_, why)| format!("  REFUSED: {why}"));
        show.print(&format!("{knob}={level}  {write}{why}"))?;
    }
    if plan.writes().next().is_none() {
        show.note("nothing to write: every knob is at its level");
    }
    Ok(if refused.is_empty() { ExitOutcome::Done } else { ExitOutcome::Invalid })
}
