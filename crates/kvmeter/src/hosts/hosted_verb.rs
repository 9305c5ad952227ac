//! A verb of kvmeter that runs on a host as long as this command does.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fleet::{FleetHost, FleetTarget, HostFolder, Hosted, HostedEnd, HostedLine, LinesEnded};
use model::Span;

use super::program::{self, GivenPrograms};
use crate::interrupt::stop_flag;

const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// How long a verb may take until it says that it is ready.
const START_LIMIT: Duration = Duration::from_secs(60);
/// How long it may take to end; what it has in progress is abandoned.
const END_LIMIT: Duration = Duration::from_secs(90);
/// Exit code of a verb that was asked for what it cannot do.
const REFUSED: i32 = 2;
/// Lines of a failed verb that its error quotes.
const QUOTED: usize = 20;

/// A verb to start.
pub struct VerbStart<'a> {
    pub target: &'a FleetTarget,
    pub host: &'a FleetHost,
    /// Names its folder on the host.
    pub folder: String,
    pub programs: GivenPrograms<'a>,
    /// What it is, in messages: `its agent`.
    pub what: &'static str,
}

/// Why a verb is not ready.
#[derive(Debug)]
pub struct VerbFailure {
    pub words: String,
    /// It refused what it was asked for.
    pub refused: bool,
}

impl VerbStart<'_> {
    /// Puts kvmeter and `files` into a folder of the host and starts `kvmeter VERB` there; the host
    /// removes the folder when the verb has ended, however it ended. Returns it once it prints a
    /// line of which `read` makes something.
    pub fn start<T>(
        &self,
        files: &[(&str, &str)],
        verb: &str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<(Hosted, T), VerbFailure> {
        let launcher = &self.target.launcher;
        let base = self.target.folder.as_deref();
        let folder = HostFolder::create(launcher, &self.host.name, base, &self.folder)
            .map_err(|error| failure(error.into()))?;
        let started = self.begin(&folder, files, verb).map_err(failure);
        let started = started.and_then(|hosted| self.first_line(hosted, read));
        started.inspect_err(|_| {
            // A host that is lost keeps it.
            let _ = folder.remove();
        })
    }

    fn begin(
        &self,
        folder: &HostFolder,
        files: &[(&str, &str)],
        verb: &str,
    ) -> anyhow::Result<Hosted> {
        let program = program::install(folder, self.programs)?;
        for (name, content) in files {
            folder.put(name, content.as_bytes(), false)?;
        }
        let script = format!(
            "{program} leased --lease {} -- {verb}; code=$?; here=$PWD; cd / && \
             rm -rf -- \"$here\"; exit $code",
            Span(self.target.lease),
        );
        Ok(Hosted::start(folder, &script, self.target.lease)?)
    }

    fn first_line<T>(
        &self,
        mut hosted: Hosted,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<(Hosted, T), VerbFailure> {
        let (host, what, begin) = (&self.host.name, self.what, Instant::now());
        let mut lines: Vec<String> = Vec::new();
        let stop = stop_flag().map_err(failure)?;
        while begin.elapsed() < START_LIMIT {
            if stop.load(Ordering::Relaxed) {
                let words = format!("{host}: {what} was stopped before it was ready");
                return Err(VerbFailure { words, refused: false });
            }
            match hosted.line(POLL_INTERVAL) {
                Ok(Some(HostedLine::Stdout(line) | HostedLine::Stderr(line))) => {
                    if let Some(ready) = read(&line) {
                        return Ok((hosted, ready));
                    }
                    if lines.len() < QUOTED {
                        lines.push(line.strip_prefix("error: ").unwrap_or(&line).to_owned());
                    }
                }
                Ok(None) => {}
                Err(LinesEnded) => {
                    let refused = matches!(hosted.wait(END_LIMIT), Ok(HostedEnd::Code(REFUSED)));
                    let words = format!("{host}: {what} ended: {}", quote(&lines));
                    return Err(VerbFailure { words, refused });
                }
            }
        }
        let limit = Span(START_LIMIT);
        let words = format!("{host}: {what} is not ready within {limit}: {}", quote(&lines));
        Err(VerbFailure { words, refused: false })
    }
}

fn failure(error: anyhow::Error) -> VerbFailure {
    VerbFailure { words: format!("{error:#}"), refused: true }
}

fn quote(lines: &[String]) -> String {
    if lines.is_empty() { "it printed nothing".to_owned() } else { lines.join("\n") }
}

/// The end of a verb.
#[derive(Debug, Clone)]
pub struct VerbEnd {
    /// The last line that it printed.
    pub last: String,
    /// How it ended, if it was not stopped.
    pub by_itself: Option<HostedEnd>,
}

/// Renews the lease of a verb until it ends, or `stop` is set and it has ended or had its time.
pub fn keep(mut hosted: Hosted, stop: &AtomicBool) -> VerbEnd {
    let mut last = String::new();
    loop {
        match hosted.line(POLL_INTERVAL) {
            Ok(Some(HostedLine::Stdout(line) | HostedLine::Stderr(line))) => last = line,
            Ok(None) => {}
            Err(LinesEnded) => break,
        }
        if stop.load(Ordering::Relaxed) {
            hosted.stop();
        }
        if hosted.stopped_for().is_some_and(|time| time > END_LIMIT) {
            break;
        }
    }
    let was_stopped = hosted.stopped_for().is_some();
    // The host removes its folder by itself.
    let end = hosted.wait(END_LIMIT).unwrap_or(HostedEnd::Lost);
    VerbEnd { last, by_itself: (!was_stopped).then_some(end) }
}
