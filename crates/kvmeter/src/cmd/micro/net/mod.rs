//! `micro pingpong` and `micro flow`: runs the two ends and shows the results.

mod child_output;
mod dpdk;
mod ends;
mod kernel;
mod meter;
mod results;
mod server;

use micro::job::{FlowArgs, MicroResults, NetCells, NetFlags, PingpongArgs};
use micro::net::{Kind, MeasuredCell, NetError, NetJob, Stack};

use self::ends::ends;
use self::kernel::on_kernel;
use super::session::MicroRun;
use crate::exit::{ExitOutcome, request};
use crate::output::Output;

/// Round trips.
pub fn pingpong(args: &PingpongArgs, show: &Output) -> anyhow::Result<ExitOutcome> {
    run(&args.net, &args.cells().map_err(user_error)?, show)
}

/// A stream whose receiver touches it.
pub fn flow(args: &FlowArgs, show: &Output) -> anyhow::Result<ExitOutcome> {
    run(&args.net, &args.cells().map_err(user_error)?, show)
}

fn run(flags: &NetFlags, cells: &NetCells, show: &Output) -> anyhow::Result<ExitOutcome> {
    if let Some(listen) = &flags.listen {
        if flags.alone_for.is_some() {
            // The client that started it may be killed.
            micro::net::end_with_parent();
        }
        return match (flags.has(Stack::Dpdk), flags.inner.inner) {
            (false, _) => server::listen(listen, flags, show),
            (true, false) => dpdk::guarded_server(show),
            (true, true) => dpdk::inner_server(listen, flags, show),
        };
    }
    if flags.inner.inner {
        return dpdk::inner_client(flags, cells, show);
    }
    dpdk::check(flags)?;
    let session = MicroRun::begin(verb(cells.kind), &flags.at, show)?;
    let (own, servers) = ends(flags, &session.cpus);
    let config = flags.config(own).map_err(user_error)?;
    let bar = show.parts(cells.jobs.len() as u64);
    bar.set_prefix(verb(cells.kind));
    let mut measured = Measurements { all: Vec::new(), failure: None };
    let stop = session.stop.as_ref();
    let kernel: Vec<&NetJob> = cells.of(Stack::Kernel);
    if !kernel.is_empty() {
        let mut done = |cell: MeasuredCell| {
            bar.inc(1);
            measured.all.push(cell);
        };
        let outcome = on_kernel(flags, &kernel, &servers, &config, stop, &mut done);
        measured.failure = outcome.err();
    }
    if flags.has(Stack::Dpdk) && measured.failure.is_none() {
        match dpdk::guarded_client(flags, cells.kind, &servers, stop) {
            Ok(cells) => measured.all.extend(cells),
            Err(error) => measured.failure = Some(error),
        }
    }
    bar.finish_and_clear();
    // Results before a failure are shown; without any there is only the failure.
    match measured.failure {
        Some(error) if measured.all.is_empty() => return Err(error),
        _ => {}
    }
    measured.all.sort_by_key(|cell| cells.position(&cell.job));
    if session.answers() {
        if let Some(error) = measured.failure {
            return Err(error);
        }
        return session.answer(MicroResults::Net(measured.all), Vec::new());
    }
    let invalid = measured.all.iter().any(|cell| !cell.invalid_because().is_empty());
    let shown = results::all(cells.kind, &measured.all);
    let outcome = session.end(shown.results, &[shown.table], shown.warnings)?;
    match measured.failure {
        Some(error) => Err(error),
        None if invalid => Ok(ExitOutcome::Invalid),
        None => Ok(outcome),
    }
}

struct Measurements {
    all: Vec<MeasuredCell>,
    failure: Option<anyhow::Error>,
}

/// An end's error, as a user error where it is one.
fn user_error(error: NetError) -> anyhow::Error {
    match error.is_request() {
        true => request(error.to_string()),
        false => error.into(),
    }
}

/// The word that names a benchmark on the command line.
fn verb(kind: Kind) -> &'static str {
    match kind {
        Kind::Pingpong => "pingpong",
        Kind::Flow => "flow",
    }
}
