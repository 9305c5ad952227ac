//! `kvmeter workload capture`: the requests of a running server, or of another trace, as a trace
//! without values and names.

mod limits;
mod secret;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use clap::{Args, ValueEnum, ValueHint};
use execute::{LogLosses, ServerLog, ServerReads};
use model::{Bytes, Count, Span};
use report::format;
use serde_json::json;
use workload::trace::{
    KeyHasher, TraceError, TraceFormat, TraceOptions, TraceRecords, TraceWriter,
};

use self::limits::{CaptureEnd, Limits};
use self::secret::secret;
use crate::exit::{ExitOutcome, request};
use crate::flags::trace::TraceReadingFlags;
use crate::interrupt::stop_flag;
use crate::output::Output;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kvmeter workload capture memcached://localhost --time 1m --out monday.kvtrace\n  \
    kvmeter workload capture 'redis://host?password_env=PW' --time 10s --out redis.kvtrace\n  \
    kvmeter workload capture memcached://localhost --method ebpf --out all.kvtrace\n  \
    tcpdump -s 0 -w - port 11211 | kvmeter workload capture - --out captured.kvtrace\n  \
    kvmeter workload describe monday.kvtrace\n\n\
    No value is written, and of a key only a keyed hash, its length and the class of its prefix. \
    memcached's log costs little and leaves requests out where it is too slow; Redis' MONITOR can \
    halve the server; eBPF sees every command of a server here: docs/your-workload.md has what \
    they cost.")]
pub struct CaptureArgs {
    /// A running server (memcached://HOST, redis://HOST, valkey://HOST), or a trace or packet capture;
    /// `-` is standard input
    #[arg(value_name = "STORE|TRACE", value_hint = ValueHint::FilePath)]
    pub file: String,
    /// How requests of a server are seen
    #[arg(long, value_enum, default_value_t = Method::Log)]
    pub method: Method,
    /// The trace that is written; it must not exist
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub out: PathBuf,
    /// Longest time of a capture from a server
    #[arg(long, short = 't', value_name = "TIME", default_value = "1m")]
    pub time: Span,
    /// Greatest number of requests
    #[arg(long = "ops", value_name = "N")]
    pub operations: Option<Count>,
    /// Greatest size of the trace
    #[arg(long, value_name = "SIZE", default_value = "1GiB")]
    pub max_size: Bytes,
    /// Longest time by which the log of a Redis may fall behind before the capture ends
    #[arg(long, value_name = "TIME", default_value = "2s")]
    pub max_lag: Span,
    /// How keys are written
    #[arg(long, value_enum, default_value_t = Keys::Hashed)]
    pub keys: Keys,
    /// File with the secret of the hash, 32 hexadecimal digits: captures with the same one have the
    /// same keys [default: a random one that is not kept]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub key_secret: Option<PathBuf>,
    #[command(flatten)]
    pub reading: TraceReadingFlags,
    /// Print what was captured as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// How requests of a server are seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Method {
    /// The server's own log: memcached's `watch`, `MONITOR` of Redis
    Log,
    /// What the server's process on this machine reads from its clients, copied by eBPF
    Ebpf,
}

/// How keys are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Keys {
    /// A keyed hash, the length, and the class of the prefix
    Hashed,
    /// As they are
    Plain,
}

pub fn run(args: &CaptureArgs, show: &Output) -> anyhow::Result<ExitOutcome> {
    let hasher = match (args.keys, &args.key_secret) {
        (Keys::Plain, Some(_)) => {
            return Err(request("--key-secret is of hashed keys; leave out --keys plain"));
        }
        (Keys::Plain, None) => None,
        (Keys::Hashed, file) => Some(KeyHasher::new(secret(file.as_deref())?)),
    };
    if args.time.0.is_zero() || args.max_size.0 == 0 || args.operations == Some(Count(0)) {
        return Err(request("--time, --ops and --max-size must be more than zero"));
    }
    if args.out.exists() {
        return Err(exists(&args.out));
    }
    let stop = stop_flag()?;
    let until = Instant::now().checked_add(args.time.0);
    let CaptureSource { mut records, name: source, losses } = open(args, until, &stop, show)?;
    let out = create(&args.out)?;
    let facts = [
        ("kvmeter", env!("CARGO_PKG_VERSION")),
        ("source", source.as_str()),
        ("began", &execute::now()),
    ];
    let failed = |error| write_failed(&args.out, &error);
    let mut writer = TraceWriter::new(out, &facts, hasher).map_err(failed)?;
    let bar = show.parts(1);
    bar.set_prefix(format!("capturing {source}"));
    let of_server = losses.is_some();
    let lags = of_server && records.format() == TraceFormat::RedisMonitor;
    let mut limits = Limits::of(args, of_server, until, lags);
    let end = loop {
        match records.next() {
            Ok(Some(record)) => {
                let at_ns = record.at_ns;
                writer.append(&record).map_err(failed)?;
                if let Some(end) = limits.reached(&writer, at_ns) {
                    break end;
                }
                if writer.requests().is_multiple_of(4096) {
                    let requests = format::count_short(writer.requests() as f64);
                    bar.set_message(format!("{requests} requests"));
                }
                if !of_server && stop.load(Ordering::Relaxed) {
                    break CaptureEnd::Stopped;
                }
            }
            Ok(None) if stop.load(Ordering::Relaxed) => break CaptureEnd::Stopped,
            Ok(None) => break limits.at_the_end(),
            Err(error) => break CaptureEnd::Failed(error),
        }
    };
    bar.finish_and_clear();
    let lost = losses.as_ref().map(Losses::count).transpose().unwrap_or_else(|error| {
        show.warn(&format!("how many requests were left out is unknown: {error}"));
        None
    });
    // Lines that the reader saw to be missing are among those that the server counts.
    let lost = lost.unwrap_or(0).max(records.counts().lost());
    if let Some(advice) = losses.filter(|_| lost > 0).map(|losses| losses.advice()) {
        show.warn(&format!(
            "{} of the requests are left out, {}: {advice}",
            format::count(lost),
            format::percent(lost as f64 / (lost + writer.requests()) as f64)
        ));
    }
    finish(args, writer, &records, (lost, &end), show)
}

/// Whether a source is a server's URL.
fn is_server(source: &str) -> bool {
    source.contains("://")
}

/// The requests of a source.
struct CaptureSource {
    records: TraceRecords,
    name: String,
    /// Of a server.
    losses: Option<Losses>,
}

/// What a capture of a server leaves out.
enum Losses {
    Log(Box<LogLosses>),
    Reads(syscall_trace::LostReads),
}

impl Losses {
    /// Lines of the log, or reads of a socket.
    fn count(&self) -> Result<u64, execute::ExecuteError> {
        match self {
            Losses::Log(losses) => losses.lines(),
            Losses::Reads(losses) => Ok(losses.reads()),
        }
    }

    /// Why, and what helps.
    fn advice(&self) -> &'static str {
        match self {
            Losses::Log(_) => {
                "the buffers of the server's log were full; start memcached with `-o \
                 worker_logbuf_size=4096,watcher_logbuf_size=16384` (KiB), or use --method ebpf or \
                 a packet capture"
            }
            Losses::Reads(_) => {
                "reads came faster than they were written down; capture for less time, or while \
                 the machine has a free CPU"
            }
        }
    }
}

fn open(
    args: &CaptureArgs,
    until: Option<Instant>,
    stop: &Arc<AtomicBool>,
    show: &Output,
) -> anyhow::Result<CaptureSource> {
    let wrong = |error: TraceError| request(error.to_string());
    let options = args.reading.options()?;
    if !is_server(&args.file) {
        if args.method == Method::Ebpf {
            return Err(request("--method is of servers; leave it out for a trace"));
        }
        let records = TraceRecords::open(&args.file, &options).map_err(wrong)?;
        let name = options_name(&args.file);
        return Ok(CaptureSource { records, name, losses: None });
    }
    if options.format.is_some() {
        return Err(request(
            "--trace-format is of files; what a server is asked has its own format",
        ));
    }
    let store = args.file.parse().map_err(|error: store::StoreError| request(error.to_string()))?;
    let (lines, losses, name, format): (Box<dyn Read + Send>, _, _, _) = match args.method {
        Method::Log => {
            let log = ServerLog::begin(&store)?;
            if log.format == TraceFormat::RedisMonitor {
                show.note(
                    "MONITOR makes the server send every command and value to this client too, \
                     which can halve its highest rate; it ends with this capture",
                );
            }
            let (name, format) = (log.version.clone(), log.format);
            let (lines, losses) = log.lines(until, stop);
            (lines, Losses::Log(Box::new(losses)), name, format)
        }
        Method::Ebpf => {
            let reads = ServerReads::begin(&store)?;
            let name = reads.process.clone();
            let (packets, losses) = reads.packets(until, stop);
            (packets, Losses::Reads(losses), name, TraceFormat::PacketCapture)
        }
    };
    // A line or a packet that is no request ends no capture.
    let options = TraceOptions { format: Some(format), skip_bad: u64::MAX, ..options };
    let records = TraceRecords::read(store.to_string().into(), lines, &options);
    let records = records.map_err(|error| match error {
        TraceError::Empty { file } => request(format!(
            "{file} served no request that could be seen; capture while it is in use, or longer \
             than {} (--time)",
            args.time
        )),
        error => wrong(error),
    })?;
    Ok(CaptureSource { records, name, losses: Some(losses) })
}

fn options_name(file: &str) -> String {
    let name = Path::new(file).file_name().unwrap_or_default();
    if file == "-" { "standard input".to_owned() } else { name.to_string_lossy().into_owned() }
}

/// A new file that only this user reads: requests are personal data.
fn create(path: &Path) -> anyhow::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = File::options();
    options.write(true).create_new(true).mode(0o600);
    options.open(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => exists(path),
        _ => request(format!("--out {}: {error}", path.display())),
    })
}

fn exists(path: &Path) -> anyhow::Error {
    request(format!("--out {}: it exists already; name another file", path.display()))
}

fn write_failed(path: &Path, error: &std::io::Error) -> anyhow::Error {
    request(format!(
        "{}: {error}; what was written before is kept, and --trace-skip-bad 1 reads it",
        path.display()
    ))
}

/// Ends the trace and says what it holds.
fn finish(
    args: &CaptureArgs,
    writer: TraceWriter<File>,
    records: &TraceRecords,
    (lost, end): (u64, &CaptureEnd),
    show: &Output,
) -> anyhow::Result<ExitOutcome> {
    let counts = records.counts();
    let requests = writer.requests();
    let closed = writer.finish(lost).and_then(|file| {
        file.sync_all()?;
        file.metadata().map(|data| data.len())
    });
    let bytes = closed.map_err(|error| write_failed(&args.out, &error))?;
    if args.json {
        show.json(&json!({
            "trace": args.out, "requests": requests, "bytes": bytes, "lost": lost,
            "records_skipped": counts.skipped(), "records_ignored": counts.ignored(),
            "ended_by": end.name(),
        }))?;
    } else {
        let size = format::bytes(bytes as f64);
        let all = format::count(requests);
        show.print(&format!("{}: {all} requests, {size}; {end}", args.out.display()))?;
        if counts.skipped() > 0 {
            show.warn(&format!("{} malformed records are left out", counts.skipped()));
        }
        show.note(&format!("next: kvmeter workload describe {}", args.out.display()));
    }
    match end {
        CaptureEnd::Failed(error) => Err(request(format!("{error}; what came before it is kept"))),
        CaptureEnd::Lag | CaptureEnd::Closed => Ok(ExitOutcome::Invalid),
        _ => Ok(ExitOutcome::Done),
    }
}
