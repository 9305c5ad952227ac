//! `micro pingpong` and `micro flow`: runs the two ends and shows the results.

mod dpdk;
mod meter;
mod results;
mod server;

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use micro::job::{FlowArgs, MicroResults, NetCells, NetFlags, PORT, PingpongArgs};
use micro::net::{CellConfig, Client, Kind, MeasuredCell, NetError, NetJob, NoPort, Stack};
use model::Address;

use self::meter::Counters;
use self::server::StartedServer;
use super::session::MicroRun;
use crate::exit::{ExitOutcome, request};
use crate::output::Output;

/// A server answers at once or is not there.
const CONNECT: Duration = Duration::from_secs(5);

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

/// The CPUs of this end and of a server that is started here: each end has its own as far as
/// there are enough.
fn ends(flags: &NetFlags, cpus: &[u32]) -> (Vec<u32>, Vec<u32>) {
    if !flags.pin {
        return (Vec::new(), Vec::new());
    }
    let threads = (flags.threads as usize).clamp(1, cpus.len().max(1));
    let (own, others) = cpus.split_at(threads.min(cpus.len()));
    let own = if flags.at.cpus.is_some() { cpus } else { own };
    let servers = match &flags.server_cpus {
        Some(list) => list.cpus.clone(),
        None if others.is_empty() => cpus.to_vec(),
        None => others[..threads.min(others.len())].to_vec(),
    };
    (own.to_vec(), servers)
}

/// HOST, HOST:PORT or /PATH; port 0 is any free one.
fn address(flag: &str, text: &str) -> anyhow::Result<Address> {
    let (named, any) = match text.strip_suffix(":0") {
        Some(host) => (host, true),
        None => (text, false),
    };
    let address = Address::parse(named, PORT).map_err(|e| request(format!("--{flag}: {e}")))?;
    Ok(match address {
        Address::Tcp { host, .. } if any => Address::Tcp { host, port: 0 },
        other => other,
    })
}

/// Cells over the kernel's stack, with a server that is there or with one started for them.
fn on_kernel(
    flags: &NetFlags,
    jobs: &[&NetJob],
    server_cpus: &[u32],
    config: &CellConfig,
    stop: &AtomicBool,
    done: &mut dyn FnMut(MeasuredCell),
) -> anyhow::Result<()> {
    let Some(kind) = jobs.first().map(|job| job.kind) else { return Ok(()) };
    let (place, _started) = match &flags.connect {
        Some(text) => (address("connect", text)?, None),
        None => {
            let started = StartedServer::kernel(kind, server_cpus, stop)?;
            (started.address.clone(), Some(started))
        }
    };
    let mut client =
        Client::<NoPort>::connect(&place, kind, CONNECT, None, stop).map_err(user_error)?;
    for job in jobs {
        let mut counters = Counters::with_reporter(&flags.at);
        done(client.measure(job, config, &mut counters).map_err(user_error)?);
    }
    Ok(())
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
