//! The server's end: in this process for clients elsewhere, or as a process of its own for a
//! client here.

use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use micro::job::NetFlags;
use micro::net::{Kind, Listener, NetError, NoPort, Port, Server};
use model::Address;

use super::child_output::{lines, text};
use super::ends::address;
use super::meter::Counters;
use super::{user_error, verb};
use crate::exit::{ExitOutcome, request};
use crate::interrupt::stop_flag;
use crate::output::Output;

/// The line of a server that is ready.
const LISTENING: &str = "listening on ";
/// How long a started server may take until then: DPDK's environment takes seconds.
const START: Duration = Duration::from_secs(60);
/// How long it may take to end.
const END: Duration = Duration::from_secs(5);

/// Serves until Ctrl-C.
pub fn listen(place: &str, flags: &NetFlags, show: &Output) -> anyhow::Result<ExitOutcome> {
    serve::<NoPort>(place, flags, None, show)
}

/// Serves, with a port where there is one.
pub fn serve<P: Port>(
    place: &str,
    flags: &NetFlags,
    port: Option<P>,
    show: &Output,
) -> anyhow::Result<ExitOutcome> {
    let stop = stop_flag()?;
    let listener = Listener::bind(&address("listen", place)?).map_err(user_error)?;
    let cpus = flags.at.cpus.as_ref().map(|list| list.cpus.clone()).unwrap_or_default();
    let mut server = Server::new(port, cpus, &stop).with_limits(flags.limits());
    show.print(&format!("{LISTENING}{}", listener.address()))?;
    let mut say = |error: &NetError| show.note(&format!("a session failed: {error}"));
    let alone = flags.alone_for.map(|span| span.0);
    server.serve(&listener, alone, &mut Counters::default(), &mut say).map_err(user_error)?;
    Ok(ExitOutcome::Done)
}

/// A server that was started here. Dropping it ends the server.
pub struct StartedServer {
    child: Child,
    pub address: Address,
}

impl StartedServer {
    /// A server for the kernel's stack on loopback.
    pub fn kernel(kind: Kind, cpus: &[u32], stop: &AtomicBool) -> anyhow::Result<StartedServer> {
        StartedServer::with(kind, cpus, &[], stop)
    }

    /// The same with more arguments.
    pub fn with(
        kind: Kind,
        cpus: &[u32],
        more: &[String],
        stop: &AtomicBool,
    ) -> anyhow::Result<StartedServer> {
        let program = std::env::current_exe().context("kvmeter cannot find its own executable")?;
        let mut command = Command::new(program);
        command
            .args(["--quiet", "micro", verb(kind)])
            .args(["--listen", "127.0.0.1:0", "--alone-for", "60s"])
            .args(more)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if !cpus.is_empty() {
            let list: Vec<String> = cpus.iter().map(u32::to_string).collect();
            command.args(["--cpus", &list.join(",")]);
        }
        let mut child = command.spawn().context("the server's end cannot be started")?;
        let output = lines(child.stdout.take());
        let failed = text(child.stderr.take());
        let mut started = StartedServer { child, address: Address::Unix("/".into()) };
        let until = Instant::now() + START;
        loop {
            match output.recv_timeout(Duration::from_millis(50)) {
                Ok(line) => {
                    if let Some(place) = line.strip_prefix(LISTENING) {
                        started.address = address("listen", place)?;
                        return Ok(started);
                    }
                }
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {}
            }
            if stop.load(Ordering::Relaxed) {
                return Err(NetError::Stopped.into());
            }
            if Instant::now() > until {
                bail!("the server's end did not listen within {} s", START.as_secs());
            }
        }
        let code = started.child.wait().ok().and_then(|status| status.code());
        let words = failed.recv_timeout(END).unwrap_or_default();
        let words = words.trim().trim_start_matches("error: ");
        match code {
            Some(2) => Err(request(format!("the server's end: {words}"))),
            _ => bail!("the server's end did not start: {words}"),
        }
    }
}

impl Drop for StartedServer {
    fn drop(&mut self) {
        // It ends by itself after its client.
        let until = Instant::now() + END;
        while Instant::now() < until {
            match self.child.try_wait() {
                Ok(None) => thread::sleep(Duration::from_millis(5)),
                _ => return,
            }
        }
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
