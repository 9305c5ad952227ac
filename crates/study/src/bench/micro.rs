//! A microbenchmark as a run: the command `kvmeter micro` in a process of its own, so that its
//! ends, counters and DPDK's environment are those that a person would measure with.

use std::ffi::OsString;
use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use micro::net::{Job, Kind, NetError, Transport};
use micro::window::{Edge, Listener};
use model::{Bytes, Span};
use toml::Spanned;

use super::keys::{BenchDeclaration, ChosenSettings, declared, text_of};
use super::{BenchTable, MICRO};
use crate::error::StudyError;
use crate::source::StudyText;

/// More than a bench says, in bytes.
const MOST_SAID: u64 = 64 << 20;
/// Starting both ends, DPDK's environment with them, and ending them.
const AROUND_S: f64 = 0.5;
/// Beyond its own time a bench has hung: DPDK's environment alone may take a minute to start.
const GRACE: Duration = Duration::from_secs(180);
/// Between two looks at whether it has ended or is to be stopped.
const LOOK: Duration = Duration::from_millis(20);
/// A bench that is stopped may take so long to end its own server.
const ENDING: Duration = Duration::from_secs(10);
/// How the command says that what it was asked makes no sense.
const WRONG_REQUEST: i32 = 2;
const INVALID: i32 = 1;

/// A microbenchmark with all its settings.
#[derive(Debug, Clone)]
pub struct MicroJob {
    bench: &'static BenchDeclaration,
    flags: Vec<String>,
    /// Those that were given, and those that decide what is measured.
    pub(super) settings: Vec<(String, String)>,
    pub(super) seconds: f64,
}

/// The order of a table.
pub(super) fn order(
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
                NetError::Senseless { flag, .. } => {
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
fn job(bench: &BenchDeclaration, chosen: &[ChosenSettings<'_>]) -> Option<Job> {
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
    let usual = Job { kind, transport, ..Job::default() };
    let bytes = |key, usual| read::<Bytes>(chosen, key).map_or(usual, |Bytes(bytes)| bytes);
    Some(Job {
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

    /// What the command says of it, as JSON; `edge` hears at once when its measured window opens
    /// and closes. None where it was stopped.
    ///
    /// # Errors
    /// What the command says is wrong, or that it hangs.
    pub(super) fn run(
        &self,
        program: Option<&OsString>,
        stop: &AtomicBool,
        edge: &mut dyn FnMut(Edge),
    ) -> Result<Option<String>, StudyError> {
        let failed = |why: String| StudyError::Failed(format!("micro {}: {why}", self.name()));
        let program = program.ok_or_else(|| failed("kvmeter's own program is not known".into()))?;
        let listener = Listener::new().map_err(|error| failed(error.to_string()))?;
        let mut child = Command::new(program)
            .args(["--quiet", "micro", self.name(), "--json", "--with-parent"])
            .args(["--tell-window", listener.name()])
            .args(&self.flags)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| failed(error.to_string()))?;
        let (said, complained) = (text(child.stdout.take()), text(child.stderr.take()));
        let limit = Duration::from_secs_f64(self.seconds) + GRACE;
        let Some(status) = wait(&mut child, limit, stop, &listener, edge).map_err(failed)? else {
            return Ok(None);
        };
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let hear = |from: Receiver<String>| from.recv_timeout(ENDING).unwrap_or_default();
        let (said, complained) = (hear(said), hear(complained));
        let words = complained.trim().trim_start_matches("error: ").to_owned();
        match status.code() {
            Some(0) => Ok(Some(said)),
            // It measured, and says why that does not count.
            Some(INVALID) if said.trim_start().starts_with('{') => Ok(Some(said)),
            Some(WRONG_REQUEST) => {
                Err(StudyError::Request(format!("micro {}: {words}", self.name())))
            }
            _ if words.is_empty() => Err(failed(status.to_string())),
            _ => Err(failed(words)),
        }
    }
}

/// Waits for its end; None where it had to be stopped, in words where it hangs.
fn wait(
    child: &mut Child,
    limit: Duration,
    stop: &AtomicBool,
    listener: &Listener,
    edge: &mut dyn FnMut(Edge),
) -> Result<Option<ExitStatus>, String> {
    let mut until = Instant::now() + limit;
    let mut stopped = false;
    loop {
        match child.try_wait() {
            Ok(Some(_)) if stopped => return Ok(None),
            Ok(Some(status)) => {
                // What it said at last may still be there.
                while let Some(heard) = listener.hear(Duration::from_millis(1)) {
                    edge(heard);
                }
                return Ok(Some(status));
            }
            Ok(None) => {}
            Err(error) => return Err(error.to_string()),
        }
        if !stopped && stop.load(Ordering::Relaxed) {
            // A terminal has told it, too; whoever stopped only this process has not.
            stopped = true;
            until = Instant::now() + ENDING;
        }
        if Instant::now() > until {
            // Already gone, or it goes now; what it started ends with it.
            let _ = child.kill();
            let _ = child.wait();
            return match stopped {
                true => Ok(None),
                false => Err(format!("it did not end within {:.0} s", limit.as_secs_f64())),
            };
        }
        if let Some(heard) = listener.hear(LOOK) {
            edge(heard);
        }
    }
}

/// All of a stream, when it is over.
fn text(stream: Option<impl Read + Send + 'static>) -> Receiver<String> {
    let (say, hear) = channel();
    if let Some(stream) = stream {
        thread::spawn(move || {
            let mut bytes = Vec::new();
            // What came until then is what there is.
            let _ = stream.take(MOST_SAID).read_to_end(&mut bytes);
            let _ = say.send(String::from_utf8_lossy(&bytes).into_owned());
        });
    }
    hear
}
