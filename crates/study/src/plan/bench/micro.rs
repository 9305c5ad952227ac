//! The table of a microbenchmark.

use std::str::FromStr;

use micro::net::{Kind, NetError, NetJob, Transport};
use model::{Bytes, MICRO, Span};
use toml::Spanned;

use super::settings::{BenchDeclaration, ChosenSettings, absent, declared, text_of};
use crate::error::StudyError;
use crate::text::{BenchTable, StudyText};

/// Seconds to start and end both sides, DPDK's environment included.
const AROUND_S: f64 = 0.5;

/// A microbenchmark with all its settings.
#[derive(Debug, Clone)]
pub struct MicroJob {
    bench: &'static BenchDeclaration,
    /// As `kvmeter micro` takes them.
    pub flags: Vec<String>,
    /// Given settings, and defaults that determine what is measured.
    pub(super) settings: Vec<(String, String)>,
    /// About how long a run takes.
    pub seconds: f64,
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
        absent(&key, value.get_ref()).map(|why| source.at(value.span(), &why))
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
    pub fn name(&self) -> &'static str {
        self.bench.name
    }
}
