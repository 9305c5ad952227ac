//! `kvmeter precondition PATH`: brings a device or file to a known state.

mod progress;
mod result;
mod target;

use std::path::PathBuf;

use clap::{Args, ValueHint};
use micro::precondition::{
    Consent, DeviceSystem, JobEnd, PreconditionJob, PreconditionRequest, Purge, Target,
};
use model::{Bytes, Span};

pub use self::progress::PreconditionProgress;
use self::result::print_report;
pub use self::target::{RULE, failed, how_to_confirm, state_file};
use crate::exit::ExitOutcome;
use crate::flags::share;
use crate::interrupt::stop_flag;
use crate::output::Output;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kvmeter precondition /dev/nvme1n1 --dry-run          what would be done and lost, and how to confirm it\n  \
    kvmeter precondition /dev/nvme1n1 --lbas 75% --confirm S4EVNX0M123456\n  \
    kvmeter precondition /dev/nvme1n1 --random --limit 4h --confirm S4EVNX0M123456\n  \
    kvmeter precondition disk.img --size 1GiB --confirm disk.img\n\n\
    Exit code 1 if it ended early, was not steady, or the device failed.")]
pub struct PreconditionArgs {
    /// A whole block device, or a file
    #[arg(value_hint = ValueHint::AnyPath)]
    pub path: PathBuf,
    /// The serial number or model of the device, or the file's path, to confirm that it may be
    /// overwritten
    #[arg(long, value_name = "NAME")]
    pub confirm: Option<String>,
    /// Content that may be lost, as --dry-run names it: ext4:3f2a91c0
    #[arg(long, value_name = "WORD", value_delimiter = ',')]
    pub overwrite: Vec<String>,
    /// Show what would be done; write nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Make or resize a file to this size
    #[arg(long, value_name = "SIZE")]
    pub size: Option<Bytes>,
    /// Share of the addresses to write, from the first on
    #[arg(long, value_name = "SHARE", default_value = "100%", value_parser = share)]
    pub lbas: f64,
    /// Sequential passes over that share
    #[arg(long, value_name = "N", default_value_t = 2.0)]
    pub times: f64,
    /// Follow with random writes of 4 KiB until the steady state
    #[arg(long)]
    pub random: bool,
    /// Length of a round of random writes
    #[arg(long, value_name = "TIME", default_value = "1m", requires = "random")]
    pub round: Span,
    /// Maximum number of rounds of random writes
    #[arg(long, value_name = "N", default_value_t = 25, requires = "random")]
    pub rounds: u32,
    /// Writes in flight
    #[arg(long, value_name = "N", default_value_t = 32)]
    pub depth: u32,
    /// Limit of bytes per second
    #[arg(long, value_name = "BYTES")]
    pub rate: Option<Bytes>,
    /// NVMe sanitize instead of discard: erases every namespace of the controller
    #[arg(long, conflicts_with_all = ["no_purge", "format"])]
    pub sanitize: bool,
    /// NVMe format with erasure of the user data instead of discard; the blocks keep their size
    #[arg(long, conflicts_with = "no_purge")]
    pub format: bool,
    /// Do not discard, sanitize or format first
    #[arg(long)]
    pub no_purge: bool,
    /// End after this time; continue with --resume
    #[arg(long, value_name = "TIME")]
    pub limit: Option<Span>,
    /// Continue an earlier invocation
    #[arg(long)]
    pub resume: bool,
    /// File that keeps the progress [default: next to a file; of a device in the state folder]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub state: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

pub fn run(args: &PreconditionArgs, show: &Output) -> anyhow::Result<ExitOutcome> {
    let size = args.size.map(|Bytes(size)| size);
    let target = Target::inspect(&DeviceSystem::live(), &args.path, size).map_err(failed)?;
    let order = PreconditionRequest {
        purge: match (args.sanitize, args.format, args.no_purge) {
            (true, ..) => Purge::Sanitize,
            (_, true, _) => Purge::Format,
            (.., true) => Purge::None,
            _ => Purge::Discard,
        },
        share: args.lbas,
        times: args.times,
        random: args.random.then_some((args.round.0, args.rounds)),
        depth: args.depth,
        rate: args.rate.map(|Bytes(rate)| rate as f64),
    };
    if args.dry_run {
        for line in PreconditionJob::describe(&target, &order).map_err(failed)? {
            show.print(&line)?;
        }
        return show.print(&how_to_confirm(&target)).map(|()| ExitOutcome::Done);
    }
    let state = match &args.state {
        Some(state) => state.clone(),
        None => state_file(&target)?,
    };
    let names = args.confirm.iter().cloned().collect();
    let consent = Consent { names, overwrite: args.overwrite.clone() };
    let job = PreconditionJob::new(&target, order, &consent, state.clone(), args.resume)
        .map_err(failed)?;
    let stop = stop_flag()?;
    let limit = args.limit.map(|Span(limit)| limit);
    let mut shown = PreconditionProgress::new(show);
    let done = job.run(limit, RULE, &stop, &mut |progress| shown.update(progress));
    let report = done.map_err(failed)?;
    print_report(args, &report, &state, show)?;
    Ok(match report.ended {
        JobEnd::Done => ExitOutcome::Done,
        JobEnd::NotSteady | JobEnd::TimeLimit | JobEnd::Stopped => ExitOutcome::Invalid,
    })
}
