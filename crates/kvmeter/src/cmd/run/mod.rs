//! `kvmeter run`: a study.

mod devices;
mod finish;
mod mbwu;
mod measure;
mod results;

use std::path::PathBuf;

use clap::{Args, ValueHint};
use execute::MachineLock;
use execute::knobs::{KnobEffects, KnobsHeld, KnobsPerBlock};
use model::Span;
use study::{Plan, StudyText};

use self::measure::measure;
use self::results::finished_before;
use crate::exit::{ExitOutcome, request};
use crate::flags::machine::{RecordedMachine, pass};
use crate::output::Output;
use crate::output_files;
use crate::plan_output;

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
        return mbwu::measure(args, &table, &source, show);
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
