//! A microbenchmark as a run: the command `kvmeter micro` in a process of its own, so that a study
//! measures exactly what the command does.

use std::ffi::OsString;
use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use micro::net::{Kind, NetError, NetJob, Transport};
use micro::window::{WindowEdge, WindowListener};
use model::{Bytes, Span};
use toml::Spanned;

use super::settings::{BenchDeclaration, ChosenSettings, declared, text_of};
use super::{BenchTable, MICRO};
use crate::error::StudyError;
use crate::study_text::StudyText;

/// Maximum output of a bench, in bytes.
const MAX_OUTPUT: u64 = 64 << 20;
/// Seconds to start and end both sides, DPDK's environment included.
const AROUND_S: f64 = 0.5;
/// A bench that exceeds its own time by this has hung: DPDK alone may take a minute to start.
const GRACE: Duration = Duration::from_secs(180);
/// How often its end and a stop are checked.
const LOOK: Duration = Duration::from_millis(20);
/// How long a stopped bench may take to end its own server.
const ENDING: Duration = Duration::from_secs(10);
/// Exit code of the command for an invalid request.
const WRONG_REQUEST: i32 = 2;
const INVALID: i32 = 1;

/// A microbenchmark with all its settings.
#[derive(Debug, Clone)]
pub struct MicroJob {
    bench: &'static BenchDeclaration,
    flags: Vec<String>,
    /// Given settings, and defaults that determine what is measured.
    pub(super) settings: Vec<(String, String)>,
    pub(super) seconds: f64,
}

/// Parses a table.
pub(super) fn parse(
    source: &StudyText,
    name: &Spanned<String>,
    table: &BenchTable,
) -> Result<MicroJob, StudyError> {
    let bench = declared(source, name)?;
    let chosen = bench.chosen(source, name, table)?;
    let lacks = |(key, value): (&Spanned<String>, &Spanned<toml::Value>)| {
        let key = format!("{MICRO}.{}.{}", bench.name, key.get_ref());
        super::absent(&key, value.get_ref()).map(|why| source.at(value.span(), &why))
    };
    if let Some(error) = table.iter().find_map(lacks) {
        return Err(error);
    }
    let mut settings: Vec<(String, String)> =
        chosen.iter().map(|(key, text, _)| (key.name.to_owned(), text.clone())).collect();
    if let Some(job) = job(bench, &chosen) {
        job.check().map_err(|error| {
            let place = match &error {
                NetError::InvalidSetting { flag, .. } => {
                    let key = flag.replace('-', "_");
                    chosen.iter().find(|(known, ..)| known.name == key).map(|(.., v)| v.span())
                }
                _ => None,
            };
            let words = error.to_string();
            source.at(place.unwrap_or(name.span()), words.trim_start_matches("--"))
        })?;
        for (key, usual) in [
            ("stack", job.transport.stack().to_string()),
            ("transport", job.transport.to_string()),
            ("connections", job.connections.to_string()),
        ] {
            if text_of(&chosen, key).is_none() {
                settings.push((key.to_owned(), usual));
            }
        }
    }
    let seconds = |key| text_of(&chosen, key).and_then(|text| Span::from_str(text).ok());
    let seconds = |key, usual: f64| seconds(key).map_or(usual, |Span(time)| time.as_secs_f64());
    let (window, before) = bench.usual_s;
    let flags = chosen.iter().filter_map(|(key, text, _)| key.flag(text)).collect();
    let seconds = AROUND_S + seconds("time", window) + seconds("warm_up", before);
    Ok(MicroJob { bench, flags, settings, seconds })
}

/// The cell of a network benchmark; none of another.
fn job(bench: &BenchDeclaration, chosen: &[ChosenSettings<'_>]) -> Option<NetJob> {
    fn read<T: FromStr>(chosen: &[ChosenSettings<'_>], key: &str) -> Option<T> {
        text_of(chosen, key)?.parse().ok()
    }
    let kind = match bench.name {
        "pingpong" => Kind::Pingpong,
        "flow" => Kind::Flow,
        _ => return None,
    };
    let transport = match (text_of(chosen, "stack"), text_of(chosen, "transport")) {
        (Some("dpdk"), _) => Transport::Ethernet,
        (_, Some("unix")) => Transport::Unix,
        (_, Some("udp")) => Transport::Udp,
        _ => Transport::Tcp,
    };
    let usual = NetJob { kind, transport, ..NetJob::default() };
    let bytes = |key, usual| read::<Bytes>(chosen, key).map_or(usual, |Bytes(bytes)| bytes);
    Some(NetJob {
        size: bytes("size", usual.size),
        stride: bytes("stride", usual.stride),
        reuse: bytes("reuse", usual.reuse),
        socket_buffer: read::<Bytes>(chosen, "socket_buffer").map(|Bytes(bytes)| bytes),
        connections: read(chosen, "connections").unwrap_or(usual.connections),
        threads: read(chosen, "threads").unwrap_or(usual.threads),
        timeout_s: read::<Span>(chosen, "timeout")
            .map_or(usual.timeout_s, |Span(time)| time.as_secs_f64()),
        rate: read::<model::Rate>(chosen, "rate").map(|rate| rate.0),
        ..usual
    })
}

impl MicroJob {
    pub(super) fn name(&self) -> &'static str {
        self.bench.name
    }

    /// Runs the command and returns its JSON; `edge` is called when its measured window opens and
    /// closes. None where it was stopped.
    ///
    /// # Errors
    /// The error of the command, or that it hangs.
    pub(super) fn run(
        &self,
        program: Option<&OsString>,
        stop: &AtomicBool,
        edge: &mut dyn FnMut(WindowEdge),
    ) -> Result<Option<String>, StudyError> {
        let failed = |why: String| StudyError::Failed(format!("micro {}: {why}", self.name()));
        let program = program.ok_or_else(|| failed("kvmeter's own program is not known".into()))?;
        let listener = WindowListener::new().map_err(|error| failed(error.to_string()))?;
        let mut child = Command::new(program)
            .args(["--quiet", "micro", self.name(), "--json", "--with-parent"])
            .args(["--tell-window", listener.name()])
            .args(&self.flags)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| failed(error.to_string()))?;
        let (output, errors) = (text(child.stdout.take()), text(child.stderr.take()));
        let limit = Duration::from_secs_f64(self.seconds) + GRACE;
        let Some(status) = wait(&mut child, limit, stop, &listener, edge).map_err(failed)? else {
            return Ok(None);
        };
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let receive = |from: Receiver<String>| from.recv_timeout(ENDING).unwrap_or_default();
        let (output, errors) = (receive(output), receive(errors));
        let words = errors.trim().trim_start_matches("error: ").to_owned();
        match status.code() {
            Some(0) => Ok(Some(output)),
            // It measured, and reports why the result is invalid.
            Some(INVALID) if output.trim_start().starts_with('{') => Ok(Some(output)),
            Some(WRONG_REQUEST) => {
                Err(StudyError::Request(format!("micro {}: {words}", self.name())))
            }
            _ if words.is_empty() => Err(failed(status.to_string())),
            _ => Err(failed(words)),
        }
    }
}

/// Waits for its end; None where it was stopped.
fn wait(
    child: &mut Child,
    limit: Duration,
    stop: &AtomicBool,
    listener: &WindowListener,
    edge: &mut dyn FnMut(WindowEdge),
) -> Result<Option<ExitStatus>, String> {
    let mut until = Instant::now() + limit;
    let mut stopped = false;
    loop {
        match child.try_wait() {
            Ok(Some(_)) if stopped => return Ok(None),
            Ok(Some(status)) => {
                // The last events may still be queued.
                while let Some(event) = listener.wait_for_edge(Duration::from_millis(1)) {
                    edge(event);
                }
                return Ok(Some(status));
            }
            Ok(None) => {}
            Err(error) => return Err(error.to_string()),
        }
        if !stopped && stop.load(Ordering::Relaxed) {
            // A terminal signals the child too; a stop of this process alone does not.
            stopped = true;
            until = Instant::now() + ENDING;
        }
        if Instant::now() > until {
            // Its own children end with it.
            let _ = child.kill();
            let _ = child.wait();
            return match stopped {
                true => Ok(None),
                false => Err(format!("it did not end within {:.0} s", limit.as_secs_f64())),
            };
        }
        if let Some(event) = listener.wait_for_edge(LOOK) {
            edge(event);
        }
    }
}

/// Reads a stream to its end in a thread.
fn text(stream: Option<impl Read + Send + 'static>) -> Receiver<String> {
    let (sender, receiver) = channel();
    if let Some(stream) = stream {
        thread::spawn(move || {
            let mut bytes = Vec::new();
            // An error ends the output early.
            let _ = stream.take(MAX_OUTPUT).read_to_end(&mut bytes);
            let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
        });
    }
    receiver
}
