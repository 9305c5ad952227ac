//! The process that outlives DPDK's environment.

use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use anyhow::{Context, bail};
use micro::job::NetFlags;
use micro::net::{Kind, MeasuredCell, NetError, Stack};

use super::super::child_output::{lines, text};
use super::super::server::StartedServer;
use super::inner::ENVIRONMENT;
use crate::exit::{ExitOutcome, request};
use crate::interrupt::stop_flag;
use crate::output::Output;

/// The prefix of the inner process's result on standard output.
pub const RESULT: &str = "kvmeter-result ";
/// How long a process may take to end after its output has ended.
const EXIT_TIMEOUT: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

pub fn check(flags: &NetFlags) -> anyhow::Result<()> {
    if flags.has(Stack::Dpdk) && flags.connect.is_some() && flags.port.is_none() {
        return Err(request(
            "--stack dpdk --connect: name this end's port with --port: a PCI address, or a \
             virtual device made with --eal",
        ));
    }
    if flags.has(Stack::Dpdk)
        && flags.connect.is_none()
        && flags.port.is_some()
        && flags.server_port.is_none()
    {
        return Err(request(
            "--port: name the server's port, too, with --server-port, or a server elsewhere with \
             --connect",
        ));
    }
    Ok(())
}

/// The cells over DPDK of this very command, measured by the inner process.
pub fn guarded_client(
    flags: &NetFlags,
    kind: Kind,
    server_cpus: &[u32],
    stop: &AtomicBool,
) -> anyhow::Result<Vec<MeasuredCell>> {
    let mut more = Vec::new();
    let mut server = None;
    if let (Some(eal), Some(port)) = (&flags.server_eal, &flags.server_port) {
        let (frames, mtu) = (flags.frames.0.to_string(), flags.mtu.to_string());
        let words = ["--stack", "dpdk", "--frames", &frames, "--mtu", &mtu, "--port", port];
        let mut words: Vec<String> = words.map(str::to_owned).to_vec();
        words.push(format!("--eal={eal}"));
        let started = StartedServer::with(kind, server_cpus, &words, stop)?;
        more.push(format!("--inner-connect={}", started.address));
        server = Some(started);
    }
    let inner = DpdkChild::start(&more)?;
    let outcome = inner.end(stop, &mut |_| Ok(()));
    drop(server);
    let result = outcome?.context("the process with DPDK's environment ended without a result")?;
    Ok(serde_json::from_str(&result)?)
}

/// Runs a server with a port until it is stopped, and passes on its output.
pub fn guarded_server(show: &Output) -> anyhow::Result<ExitOutcome> {
    let stop = stop_flag()?;
    let inner = DpdkChild::start(&[])?;
    let code = inner.end(&stop, &mut |line| show.print(line));
    match code {
        Err(error) if stop.load(Ordering::Relaxed) && error.is::<NetError>() => {
            Ok(ExitOutcome::Done)
        }
        Err(error) => Err(error),
        Ok(_) => Ok(ExitOutcome::Done),
    }
}

/// This command in a process with DPDK's environment. Dropping it ends the process.
struct DpdkChild {
    child: Child,
}

impl DpdkChild {
    fn start(more: &[String]) -> anyhow::Result<DpdkChild> {
        let program = std::env::current_exe().context("kvmeter cannot find its own executable")?;
        let child = Command::new(program)
            .args(std::env::args_os().skip(1))
            .arg("--inner")
            .args(more)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("the process for DPDK's environment cannot be started")?;
        Ok(DpdkChild { child })
    }

    /// Waits for its end and returns its result, if any. Other lines go to `on_line`.
    fn end(
        mut self,
        stop: &AtomicBool,
        on_line: &mut dyn FnMut(&str) -> anyhow::Result<()>,
    ) -> anyhow::Result<Option<String>> {
        let output = lines(self.child.stdout.take());
        let log = text(self.child.stderr.take());
        let mut result = None;
        loop {
            match output.recv_timeout(POLL_INTERVAL) {
                Ok(line) => match line.strip_prefix(RESULT) {
                    Some(words) => result = Some(words.to_owned()),
                    None => on_line(&line)?,
                },
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {}
            }
            if stop.load(Ordering::Relaxed) {
                return Err(NetError::Stopped.into());
            }
        }
        let log = log.recv_timeout(EXIT_TIMEOUT).unwrap_or_default();
        let status = self.child.wait()?;
        if status.success() {
            return Ok(result);
        }
        // kvmeter's own message comes last, behind DPDK's log.
        let log: Vec<&str> = log.lines().collect();
        let Some(at) = log.iter().rposition(|line| line.starts_with("error: ")) else {
            let why = dpdk::explain(&log.join("\n"));
            let words = format!("DPDK's environment ended its process ({status}): {why}");
            return Err(request(words));
        };
        let words = log[at..].join("\n");
        let words = words.trim_start_matches("error: ");
        if words.contains(ENVIRONMENT) {
            let why = dpdk::explain(&log[..at].join("\n"));
            return Err(request(format!("{words}: {why}")));
        }
        match status.code() {
            Some(2) => Err(request(words)),
            _ => bail!("{words}"),
        }
    }
}

impl Drop for DpdkChild {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
