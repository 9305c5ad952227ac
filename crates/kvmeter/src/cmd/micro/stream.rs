use micro::MicroError;
use micro::job::{MicroResults, StreamArgs};
use micro::stream::{KernelResult, StreamPoint, StreamSpec};
use micro::window::WindowEdge;
use report::micro::{KernelRate, StreamCell, size};
use report::table::Table;
use serde_json::to_value;

use super::session::{MicroRun, name_flag, one};
use crate::exit::{ExitOutcome, request};
use crate::output::Output;

/// STREAM's rule: each array is at least four times the last-level caches.
const OUTSIDE_CACHES: u64 = 4;

pub fn run(args: &StreamArgs, show: &Output) -> anyhow::Result<ExitOutcome> {
    let session = MicroRun::begin("stream", &args.at, show)?;
    let threads = match args.threads.is_empty() {
        true => vec![session.cpus.len()],
        false => args.threads.clone(),
    };
    let usual = session.last_level_bytes() * OUTSIDE_CACHES;
    let sizes = args.size.as_ref().map_or(vec![usual], |sizes| sizes.all(powers));
    let most = sizes.last().copied().unwrap_or_default();
    if sizes.is_empty() {
        return Err(request("--size: no power of two lies in that range; name sizes"));
    }
    session.check_memory(most.saturating_mul(3))?;

    let stop = session.stop();
    let bar = show.parts((threads.len() * sizes.len()) as u64);
    bar.set_prefix("stream");
    let mut points: Vec<StreamPoint> = Vec::new();
    session.report_edge(WindowEdge::Opens);
    for array_bytes in &sizes {
        for threads in &threads {
            bar.set_message(format!("{threads} threads, {}", size(*array_bytes)));
            let spec = StreamSpec {
                threads: *threads,
                cpus: session.cpus.clone(),
                array_bytes: *array_bytes,
                rounds: args.rounds,
                time: args.time.0,
                stores: args.stores,
                pages: args.memory.pages,
                placement: args.memory.place,
            };
            match micro::stream::run(&spec, &stop) {
                Ok(point) => points.push(point),
                Err(MicroError::Stopped) if !points.is_empty() => break,
                Err(fault) => return Err(name_flag(fault)),
            }
            bar.inc(1);
        }
    }
    session.report_edge(WindowEdge::Closes);
    bar.finish_and_clear();
    let mut warnings = Vec::new();
    if args.size.is_some() && most < usual {
        warnings.push(format!(
            "arrays of {} are smaller than four times the last-level caches ({}): this is the \
             bandwidth of caches, not of memory",
            size(most),
            size(usual)
        ));
    }
    if threads.iter().any(|threads| *threads > session.cpus.len()) {
        warnings.push(format!("there are more threads than CPUs ({})", session.cpus.len()));
    }
    if session.answers() {
        return session.answer(MicroResults::Stream(points), warnings);
    }
    session.end(one("stream", to_value(&points))?, &[table(&points)], warnings)
}

/// The powers of two in a range, both ends included.
fn powers(from: u64, to: u64) -> Vec<u64> {
    (0..u64::BITS).map(|shift| 1 << shift).filter(|size| (from..=to).contains(size)).collect()
}

fn table(points: &[StreamPoint]) -> Table {
    let kernel = |result: &KernelResult| KernelRate {
        name: result.kernel.name(),
        best_gb_s: result.best_gb_s,
        mean_gb_s: result.mean_gb_s,
        worst_gb_s: result.worst_gb_s,
        min_s: result.min_s,
        mean_s: result.mean_s,
        max_s: result.max_s,
    };
    let cells = points.iter().map(|point| StreamCell {
        threads: point.threads,
        cpus: &point.cpus,
        array_bytes: point.array_bytes,
        stores: point.stores.to_string(),
        placement: point.placement.to_string(),
        rounds: point.rounds,
        huge_bytes: &point.huge_bytes,
        nodes: point.pages_on_node.keys().copied().collect(),
        kernels: point.kernels.iter().map(kernel).collect(),
    });
    report::micro::stream(&cells.collect::<Vec<_>>())
}
