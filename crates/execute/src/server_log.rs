//! A running server's own log of its requests: Redis' `MONITOR`, memcached's `watch`.

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use drive::Network;
use reactor::Stream;
use store::wire::Protocol;
use store::{Remote, StoreUrl};
use workload::trace::TraceFormat;

use crate::error::ExecuteError;

/// How often the end is looked for while no request comes.
const LOOK: Duration = Duration::from_millis(100);
/// The longest answer to the command that begins the log.
const LONGEST_ANSWER: usize = 1 << 10;

/// A connection on which the server logs its requests until it is closed. The server forgets it with
/// the connection.
pub struct ServerLog {
    pub format: TraceFormat,
    /// `memcached 1.6.18`.
    pub version: String,
    stream: Stream,
    losses: LogLosses,
}

/// How many lines the server left out of a log, by its own statistics.
pub struct LogLosses {
    network: Network,
    before: u64,
}

impl LogLosses {
    /// Lines since the log began; 0 where the server keeps no such count.
    ///
    /// # Errors
    /// A server that is gone.
    pub fn lines(&self) -> Result<u64, ExecuteError> {
        Ok(dropped(&self.network)?.saturating_sub(self.before))
    }
}

/// memcached's counts: threads drop lines where their buffer is full, and a watcher skips others.
fn dropped(network: &Network) -> Result<u64, ExecuteError> {
    let statistics = network.server_statistics()?.into_iter().flatten();
    let counts = ["log_worker_dropped", "log_watcher_skipped"];
    let values = statistics.filter(|(name, _)| counts.contains(&name.as_str()));
    Ok(values.filter_map(|(_, value)| value.parse::<u64>().ok()).sum())
}

/// The one server of a store whose requests are captured.
pub(crate) fn one_server(store: &StoreUrl) -> Result<Remote, ExecuteError> {
    let remote = store.remote()?.filter(|remote| !remote.servers.is_empty());
    let Some(remote) = remote else {
        return Err(ExecuteError::Request(format!(
            "`{}` has no server whose requests could be captured; name one, such as \
             `memcached://HOST` or `redis://HOST`, or a trace or packet capture",
            store.scheme
        )));
    };
    if remote.servers.len() > 1 || remote.cluster.is_some() {
        return Err(ExecuteError::Request(
            "each server has its own requests; name one server, without `cluster=on`".into(),
        ));
    }
    Ok(remote)
}

impl ServerLog {
    /// Begins the log of one server.
    ///
    /// # Errors
    /// A store that has no such log, several servers, a server that refuses.
    pub fn begin(store: &StoreUrl) -> Result<ServerLog, ExecuteError> {
        let wrong = |why: String| ExecuteError::Request(why);
        let remote = one_server(store)?;
        let (format, commands): (_, &[&[u8]]) = match remote.protocol {
            Protocol::Resp2 | Protocol::Resp3 => (TraceFormat::RedisMonitor, &[b"MONITOR\r\n"]),
            Protocol::MemcachedText | Protocol::MemcachedMeta => (
                TraceFormat::MemcachedWatch,
                // Servers before 1.6.19 do not log deletions.
                &[b"watch fetchers mutations deletions\r\n", b"watch fetchers mutations\r\n"],
            ),
            Protocol::MemcachedBinary => {
                return Err(wrong("`watch` is of the text protocol; leave out `protocol`".into()));
            }
        };
        let limit = remote.timeout;
        let network = Network::connect(remote)?;
        let losses = LogLosses { before: dropped(&network)?, network };
        let (mut stream, version) = losses.network.connection(0)?;
        let mut answer = String::new();
        for command in commands {
            answer = ask(&mut stream, command, Instant::now() + limit)
                .map_err(|error| ExecuteError::Failed(format!("{store}: {error}")))?;
            if matches!(answer.as_str(), "OK" | "+OK") {
                let unlimited = stream.set_limit(LOOK.min(limit));
                unlimited.map_err(|error| ExecuteError::Failed(error.to_string()))?;
                return Ok(ServerLog { format, version, stream, losses });
            }
        }
        Err(wrong(format!(
            "{store}: the server refuses to log its requests: `{}`; the login may lack the \
             permission",
            answer.trim_start_matches('-')
        )))
    }

    /// Its lines until an instant, a flag that is raised, or the server's end of the connection.
    pub fn lines(
        self,
        until: Option<Instant>,
        stop: &Arc<AtomicBool>,
    ) -> (Box<dyn Read + Send>, LogLosses) {
        let lines = LogLines { stream: self.stream, until, stop: Arc::clone(stop) };
        (Box::new(lines), self.losses)
    }
}

/// The first line of the answer to a command; a server that sends it in drops has no longer.
fn ask(stream: &mut Stream, command: &[u8], until: Instant) -> io::Result<String> {
    stream.write_all(command)?;
    stream.flush()?;
    let mut line = Vec::new();
    // Byte by byte: what follows belongs to the log.
    let mut byte = [0];
    while !line.ends_with(b"\n") && line.len() < LONGEST_ANSWER {
        stream.read_exact(&mut byte)?;
        if Instant::now() > until {
            return Err(io::ErrorKind::TimedOut.into());
        }
        line.push(byte[0]);
    }
    Ok(String::from_utf8_lossy(&line).trim_end().to_owned())
}

struct LogLines {
    stream: Stream,
    until: Option<Instant>,
    stop: Arc<AtomicBool>,
}

impl Read for LogLines {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            let over = self.until.is_some_and(|until| Instant::now() >= until);
            if over || self.stop.load(Ordering::Relaxed) {
                return Ok(0);
            }
            match self.stream.read(out) {
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock
                    ) => {}
                other => return other,
            }
        }
    }
}
