//! The process in which DPDK's environment runs.

use std::os::unix::net::UnixStream;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use anyhow::anyhow;
use dpdk::{Config, DpdkError, Eal, Port};
use micro::job::{NetCells, NetFlags};
use micro::net::{CellConfig, Client, MeasuredCell, NetJob, NoMeter, Server, Stack};

use super::super::ends::{address, ends};
use super::super::kernel::CONNECT;
use super::super::meter::Counters;
use super::super::{server, user_error};
use super::outer::RESULT;
use crate::exit::{ExitOutcome, request};
use crate::interrupt::stop_flag;
use crate::output::Output;

/// How an error of the environment begins, whose reasons are in DPDK's own log.
pub const ENVIRONMENT: &str = "DPDK's environment does not start";
/// A physical link takes seconds to come up.
const LINK: Duration = Duration::from_secs(15);
/// Of all cells over a pair of rings in one process.
const PAIR: &str = "both ends of the DPDK cells are threads of one process: the hardware \
                    counters of either cover both";

/// A server with a port.
pub fn inner_server(place: &str, flags: &NetFlags, show: &Output) -> anyhow::Result<ExitOutcome> {
    micro::net::end_with_parent();
    let name = flags
        .port
        .as_deref()
        .ok_or_else(|| request("--stack dpdk --listen: name this end's port with --port"))?;
    let mut eal = start(flags.eal.as_deref(), flags)?;
    let port = eal.port(name, 1).map_err(mistake)?;
    server::serve(place, flags, Some(port), show)
}

/// Measures the cells, and prints the results as one line.
pub fn inner_client(
    flags: &NetFlags,
    cells: &NetCells,
    show: &Output,
) -> anyhow::Result<ExitOutcome> {
    micro::net::end_with_parent();
    let stop = stop_flag()?;
    // Before the environment pins this thread.
    let order = host::cpus(&host::Root::live())?.cpus;
    let cpus = flags.at.cpus.as_ref().map_or(order, |list| list.cpus.clone());
    let (own, servers) = ends(flags, &cpus);
    let config = flags.config(own).map_err(user_error)?;
    let jobs = cells.of(Stack::Dpdk);
    let mut eal = start(flags.eal.as_deref(), flags)?;
    let place = flags.connect.as_ref().or(flags.inner.inner_connect.as_ref());
    let measured = match (place, &flags.port, &flags.server_port) {
        (Some(place), Some(name), _) => {
            let mut port = eal.port(name, 1).map_err(mistake)?;
            let place = address("connect", place)?;
            let mut client = Client::connect(&place, cells.kind, CONNECT, None::<&mut Port>, &stop)
                .map_err(user_error)?;
            // The other end's port is there when its server answers.
            port.wait_up(LINK)?;
            client.use_port(&mut port);
            all(flags, &mut client, &jobs, &config)?
        }
        (None, None, None) => {
            let (client, server) = eal.ring_pair().map_err(mistake)?;
            pair(flags, client, server, &jobs, &config, servers, &stop)?
        }
        (None, Some(name), Some(other)) => {
            let client = eal.port(name, 2).map_err(mistake)?;
            let server = eal.port(other, 2).map_err(mistake)?;
            client.wait_up(LINK)?;
            server.wait_up(LINK)?;
            pair(flags, client, server, &jobs, &config, servers, &stop)?
        }
        _ => return Err(request("--port and --server-port belong together")),
    };
    // On a line of its own, whatever DPDK wrote before.
    show.print(&format!("\n{RESULT}{}", serde_json::to_string(&measured)?))?;
    Ok(ExitOutcome::Done)
}

fn all(
    flags: &NetFlags,
    client: &mut Client<'_, Port>,
    jobs: &[&NetJob],
    config: &CellConfig,
) -> anyhow::Result<Vec<MeasuredCell>> {
    let measure = |job: &&NetJob| {
        client.measure(job, config, &mut Counters::with_reporter(&flags.at)).map_err(user_error)
    };
    jobs.iter().map(measure).collect()
}

/// Measures with both ends in this process.
fn pair(
    flags: &NetFlags,
    mut client: Port,
    server: Port,
    jobs: &[&NetJob],
    config: &CellConfig,
    server_cpus: Vec<u32>,
    stop: &AtomicBool,
) -> anyhow::Result<Vec<MeasuredCell>> {
    let (here, there) = UnixStream::pair()?;
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut server = Server::new(Some(server), server_cpus, stop);
            // The client receives the error.
            let _ = server.serve_pair(there, &mut NoMeter);
        });
        let mut client = Client::over(here, &mut client, stop).map_err(user_error)?;
        let mut measured = all(flags, &mut client, jobs, config)?;
        for cell in &mut measured {
            cell.notes.push(PAIR.to_owned());
        }
        Ok(measured)
    })
}

fn start(arguments: Option<&str>, flags: &NetFlags) -> anyhow::Result<Eal> {
    let words: Vec<String> =
        arguments.unwrap_or_default().split_whitespace().map(str::to_owned).collect();
    let frames = u32::try_from(flags.frames.0)
        .map_err(|_| request(format!("--frames {}: too many", flags.frames)))?;
    Eal::start(&words, Config { frames, mtu: flags.mtu }).map_err(mistake)
}

/// Most errors of DPDK are for the user to mend: a port, memory, a permission.
fn mistake(error: DpdkError) -> anyhow::Error {
    match error {
        DpdkError::Start { why } => request(format!("{ENVIRONMENT} ({why})")),
        DpdkError::Down { .. } | DpdkError::Again => anyhow!(error),
        error => request(error.to_string()),
    }
}
