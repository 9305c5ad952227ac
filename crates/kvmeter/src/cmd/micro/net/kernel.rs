//! The cells over the kernel's stack.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use micro::job::NetFlags;
use micro::net::{CellConfig, Client, MeasuredCell, NetJob, NoPort};

use super::ends::address;
use super::meter::Counters;
use super::server::StartedServer;
use super::user_error;

/// A server answers at once or is not there.
pub const CONNECT: Duration = Duration::from_secs(5);

/// Measures with a server that is there or with one started for them.
pub fn on_kernel(
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
