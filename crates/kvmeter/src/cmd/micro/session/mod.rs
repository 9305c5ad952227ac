//! What all microbenchmarks have in common: CPUs, quiet check, output.

mod outcome;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use host::{QuietCheck, Root};
use micro::BatchSpread;
use micro::job::PlacementFlags;
use micro::window::{WindowEdge, WindowReporter};
use report::micro::NsSpread;
use serde_json::{Map, Value};

use crate::exit::request;
use crate::interrupt::stop_flag;
use crate::output::Output;

/// A running microbenchmark.
pub struct MicroRun<'a> {
    name: &'static str,
    show: &'a Output,
    json: bool,
    answers: bool,
    pub root: Root,
    /// In the order for threads.
    pub cpus: Vec<u32>,
    quiet: QuietCheck,
    pub stop: Arc<AtomicBool>,
    started_at: String,
    reporter: Option<WindowReporter>,
}

impl<'a> MicroRun<'a> {
    pub fn begin(
        name: &'static str,
        at: &PlacementFlags,
        show: &'a Output,
    ) -> anyhow::Result<MicroRun<'a>> {
        let root = Root::live();
        let allowed = host::cpus(&root)?.cpus;
        let cpus = match &at.cpus {
            Some(list) => list.cpus.clone(),
            None => allowed.clone(),
        };
        if let Some(cpu) = cpus.iter().find(|cpu| !allowed.contains(cpu)) {
            return Err(request(format!(
                "--cpus: CPU {cpu} cannot be used; kvmeter may use {allowed:?}"
            )));
        }
        Ok(MicroRun {
            name,
            show,
            json: at.json,
            answers: at.window.is_some(),
            quiet: QuietCheck::begin(&root),
            root,
            cpus,
            stop: stop_flag()?,
            started_at: execute::now(),
            reporter: window_reporter(at),
        })
    }

    /// Reports an edge of the measured window, if that was requested.
    pub fn report_edge(&self, edge: WindowEdge) {
        if let Some(reporter) = &self.reporter {
            reporter.report(edge);
        }
    }

    pub fn first_cpu(&self) -> u32 {
        self.cpus.first().copied().unwrap_or_default()
    }

    /// Bytes of all last-level caches as the kernel states them; 32 MiB where it does not.
    pub fn last_level_bytes(&self) -> u64 {
        const USUAL: u64 = 32 << 20;
        let caches = host::caches(&self.root).unwrap_or_default();
        let data = caches.into_iter().filter(|(name, _)| !name.ends_with('i'));
        let last = data.max_by(|(a, _), (b, _)| a.cmp(b));
        let sum = last.map(|(_, caches)| caches.iter().filter_map(|cache| cache.size).sum());
        sum.filter(|bytes| *bytes > 0).unwrap_or(USUAL)
    }

    /// Refuses what would drive the machine out of memory.
    pub fn check_memory(&self, bytes: u64) -> anyhow::Result<()> {
        let Ok(there) = host::memory_available_bytes(&self.root) else { return Ok(()) };
        if bytes > there {
            return Err(request(format!(
                "--size: {} are needed and {} are available; name a smaller size",
                report::format::bytes(bytes as f64),
                report::format::bytes(there as f64)
            )));
        }
        Ok(())
    }

    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// A closure that reads the flag of the first Ctrl-C.
    pub fn stop(&self) -> impl Fn() -> bool + Sync + use<> {
        let stop = Arc::clone(&self.stop);
        move || stop.load(Ordering::Relaxed)
    }
}

/// The connection that reports the window, if its listener still exists.
pub fn window_reporter(at: &PlacementFlags) -> Option<WindowReporter> {
    at.window.as_ref().and_then(|name| WindowReporter::connect(name).ok())
}

/// An object with one entry.
pub fn one(key: &str, value: serde_json::Result<Value>) -> anyhow::Result<Map<String, Value>> {
    Ok(Map::from_iter([(key.to_owned(), value?)]))
}

/// An error with the flag of the setting that it names.
pub fn name_flag(fault: micro::MicroError) -> anyhow::Error {
    match fault {
        micro::MicroError::Request { key, why } => request(format!("--{key}: {why}")),
        other => other.into(),
    }
}

/// A spread for a table.
pub fn spread(of: &BatchSpread) -> NsSpread {
    NsSpread { min: of.min_ns, median: of.median_ns, mean: of.mean_ns, max: of.max_ns }
}
