//! A command of a host that lives as long as its lease is renewed.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::FleetError;
use crate::folder::HostFolder;
use crate::launcher::Launcher;

/// A longer line is cut.
const MAX_LINE: u64 = 1 << 16;
/// Lines that wait to be taken; a host that prints faster waits.
const MAX_WAITING: usize = 256;
/// How often the lease is renewed within its length.
const RENEWALS: u32 = 4;

/// A line that the command printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostedLine {
    Stdout(String),
    Stderr(String),
}

/// The command has printed its last line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinesEnded;

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostedEnd {
    /// With this exit code.
    Code(i32),
    /// The host was lost.
    Lost,
}

/// A command that runs on a host: `kvmeter leased` there ends it when its standard input is closed
/// or silent for the length of the lease.
pub struct Hosted {
    child: Child,
    stdin: Option<ChildStdin>,
    stopped: Option<Instant>,
    lines: Receiver<HostedLine>,
    renewed: Instant,
    every: Duration,
    host: String,
    launcher: Arc<dyn Launcher>,
}

impl Hosted {
    /// Starts `script` in the folder; it reads its lease from standard input.
    ///
    /// # Errors
    /// The process that connects cannot be started.
    pub fn start(folder: &HostFolder, script: &str, lease: Duration) -> Result<Hosted, FleetError> {
        let launcher = Arc::clone(folder.launcher());
        let mut command = launcher.shell(folder.host(), &folder.within(script));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // A terminal's Ctrl-C reaches this process alone, which ends the command by its lease.
        command.process_group(0);
        let mut child = command.spawn().map_err(|error| FleetError::Failed {
            host: folder.host().to_owned(),
            what: "starting a command",
            why: error.to_string(),
        })?;
        let (sender, lines) = sync_channel(MAX_WAITING);
        if let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) {
            let errors = sender.clone();
            thread::spawn(move || {
                each_line(stdout, |line| sender.send(HostedLine::Stdout(line)).is_ok())
            });
            thread::spawn(move || {
                each_line(stderr, |line| errors.send(HostedLine::Stderr(line)).is_ok())
            });
        }
        let stdin = child.stdin.take();
        Ok(Hosted {
            child,
            stdin,
            stopped: None,
            lines,
            renewed: Instant::now(),
            every: lease / RENEWALS,
            host: folder.host().to_owned(),
            launcher,
        })
    }

    /// Renews the lease and returns the next line, if one comes within `wait`.
    ///
    /// # Errors
    /// All lines have come.
    pub fn line(&mut self, wait: Duration) -> Result<Option<HostedLine>, LinesEnded> {
        if self.renewed.elapsed() >= self.every
            && let Some(stdin) = &mut self.stdin
        {
            self.renewed = Instant::now();
            // A host that is lost is seen by the end of its lines.
            let _ = stdin.write_all(b"\n").and_then(|()| stdin.flush());
        }
        match self.lines.recv_timeout(wait.min(self.every)) {
            Ok(line) => Ok(Some(line)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(LinesEnded),
        }
    }

    /// Ends the lease: the command is ended as by Ctrl-C.
    pub fn stop(&mut self) {
        self.stdin = None;
        self.stopped.get_or_insert_with(Instant::now);
    }

    /// How long ago the lease was ended from here.
    pub fn stopped_for(&self) -> Option<Duration> {
        self.stopped.map(|since| since.elapsed())
    }

    /// Waits for the end, after the last line.
    ///
    /// # Errors
    /// It does not end within `limit`.
    pub fn wait(mut self, limit: Duration) -> Result<HostedEnd, FleetError> {
        let begin = Instant::now();
        loop {
            let status = self.child.try_wait().map_err(|error| FleetError::Failed {
                host: self.host.clone(),
                what: "waiting for a command",
                why: error.to_string(),
            })?;
            match status.map(|status| status.code()) {
                Some(code) if self.launcher.is_unreachable(code) => return Ok(HostedEnd::Lost),
                Some(Some(code)) => return Ok(HostedEnd::Code(code)),
                Some(None) => return Ok(HostedEnd::Lost),
                None if begin.elapsed() > limit => {
                    let (host, what) = (self.host.clone(), "waiting for a command");
                    return Err(FleetError::TimedOut { host, what, limit });
                }
                None => thread::sleep(Duration::from_millis(10)),
            }
        }
    }
}

impl Drop for Hosted {
    fn drop(&mut self) {
        // The host ends the command when its standard input does.
        self.stdin = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Calls `on` with each line until it returns false; lines beyond their limit are cut.
pub(crate) fn each_line(stream: impl Read, mut on: impl FnMut(String) -> bool) {
    let mut stream = BufReader::new(stream);
    loop {
        let mut line = Vec::new();
        match stream.by_ref().take(MAX_LINE).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        while line.last().is_some_and(|byte| matches!(byte, b'\n' | b'\r')) {
            line.pop();
        }
        if !on(String::from_utf8_lossy(&line).into_owned()) {
            return;
        }
    }
}
