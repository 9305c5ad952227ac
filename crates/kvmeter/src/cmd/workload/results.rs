//! The requests of a run in a results file: generated again from its workload.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use model::{Phase, Run};
use record::RunSelection;
use report::format;
use workload::fit::describe_stream;
use workload::trace::TraceTiming;
use workload::{Workload, WorkloadSpec};

use super::describe::{DescribeArgs, DescribedSource};
use crate::exit::request;
use crate::output::Output;

/// How every results file begins.
const MAGIC: &[u8] = b"SQLite format 3\0";
/// Runs that an error lists.
const LISTED: usize = 8;
/// More requests would take hours.
const MOST: u64 = 10_000_000_000;

/// Whether that is a results file, or a part of one: `FILE?key=value`.
pub fn is_results(target: &Path) -> bool {
    let is_one = |path: &Path| {
        let mut head = [0; 16];
        let read = path.is_file()
            && std::fs::File::open(path).is_ok_and(|mut file| file.read_exact(&mut head).is_ok());
        read && head == *MAGIC
    };
    let text = target.to_string_lossy();
    is_one(target) || text.match_indices('?').any(|(at, _)| is_one(Path::new(&text[..at])))
}

/// Describes the stream of the run that is named, or of the only one.
pub fn describe_run(args: &DescribeArgs, show: &Output) -> anyhow::Result<DescribedSource> {
    let reading = &args.reading;
    if reading.format.is_some() || reading.sample.is_some() || reading.skip_bad.is_some() {
        return Err(request(format!(
            "{}: a results file is no trace; leave out --trace-format, --trace-sample and \
             --trace-skip-bad",
            args.file.display()
        )));
    }
    let target = args.file.to_string_lossy();
    let selection = RunSelection::open(&target)?;
    let run = chosen(&selection.runs, args)?;
    let spec = spec_of(run)?;
    let workload = Workload::new(&spec)?;
    let operations = count_of(run)?;
    let bar = show.parts(1);
    bar.set_prefix(format!("generating the requests of run {}", run.id));
    let (description, fingerprint) = describe_stream(&workload, operations, |requests| {
        bar.set_message(format!("{} requests", format::count_short(requests as f64)));
    });
    bar.finish_and_clear();
    let count = format::count(operations);
    let is_same = run.stream.get("fingerprint") == Some(&format!("{fingerprint:016x}"));
    let words = match is_same {
        true => format!(
            "These are the {count} operations of run {}, warm-up included, generated again: their \
             fingerprint is that of the run.",
            run.id
        ),
        false => format!(
            "These are the first {count} operations of the workload of run {}, generated again: as \
             many as it drew, warm-up included. Its threads drew the last ones in parts of blocks, \
             so that its fingerprint is another.",
            run.id
        ),
    };
    Ok(DescribedSource {
        description,
        timing: TraceTiming::Untimed,
        format: "results",
        counts: Arc::default(),
        words: vec![words],
    })
}

/// The run that is named, or the only one that issued a workload.
fn chosen<'r>(runs: &'r [Run], args: &DescribeArgs) -> anyhow::Result<&'r Run> {
    let measured: Vec<&Run> = runs
        .iter()
        .filter(|run| run.phase == Phase::Measure)
        .filter(|run| args.run.as_ref().is_none_or(|id| run.id.starts_with(id.as_str())))
        .collect();
    let list = || {
        let named = measured.iter().take(LISTED).map(|run| format!("{} ({})", run.id, run.label));
        let more = if measured.len() > LISTED { ", ..." } else { "" };
        named.collect::<Vec<_>>().join(", ") + more
    };
    match (measured.as_slice(), &args.run) {
        ([one], _) => Ok(*one),
        ([], Some(id)) => Err(request(format!(
            "--run {id}: {} has no such run that issued a workload; `kvmeter report --json` has \
             their ids",
            args.file.display()
        ))),
        ([], None) => {
            Err(request(format!("{}: no run of it issued a workload", args.file.display())))
        }
        _ => Err(request(format!(
            "{}: it has {} such runs; choose one by --run ID: {}",
            args.file.display(),
            measured.len(),
            list()
        ))),
    }
}

fn spec_of(run: &Run) -> anyhow::Result<WorkloadSpec> {
    if let Some(trace) = run.settings.get("trace") {
        return Err(request(format!("run {} replayed a trace: describe {trace} instead", run.id)));
    }
    let Some(text) = run.stream.get(Run::WORKLOAD) else {
        return Err(request(format!(
            "run {} does not hold its workload: an earlier version of kvmeter, or no load, wrote \
             it; measure again",
            run.id
        )));
    };
    serde_json::from_str(text)
        .map_err(|error| request(format!("the workload of run {} cannot be read: {error}", run.id)))
}

fn count_of(run: &Run) -> anyhow::Result<u64> {
    let drawn = run.stream.get("operations_drawn").and_then(|text| text.parse::<u64>().ok());
    match drawn.unwrap_or(run.operations) {
        0 => Err(request(format!("run {} issued no operation", run.id))),
        many if many > MOST => Err(request(format!(
            "run {} drew {} operations, more than are generated again; describe a shorter run",
            run.id,
            format::count(many)
        ))),
        count => Ok(count),
    }
}
