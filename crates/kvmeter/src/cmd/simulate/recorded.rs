//! Arrivals from a recorded run.

use std::sync::Arc;

use cachesim::{RecordedArrivals, Traffic};
use model::LoopKind;
use model::random::{Draws, mix};
use record::RunSelection;

use crate::exit::request;

/// Limit on arrivals, taken from the run's beginning.
const MOST: u64 = 1_000_000;

/// Gives traffic the arrivals of a run: its operations of each interval, at even distances if its
/// arrivals were uniform, else at random. The packet size is the traffic's, as a results file has no
/// sizes of requests.
pub fn take(text: &str, traffic: &mut Traffic) -> anyhow::Result<()> {
    let selection = RunSelection::open(text)?;
    let runs: Vec<_> = selection.runs.iter().filter(|run| !run.series.is_empty()).collect();
    let run = match &runs[..] {
        [run] => run,
        [] => {
            return Err(request(format!("--from-run {text}: it has no run with a time series")));
        }
        [first, ..] => {
            let file = text.split('?').next().unwrap_or(text);
            let keys = ["workload", "rate", "repeat"];
            let settings = keys.iter().filter_map(|key| Some((key, first.settings.get(*key)?)));
            let filter: Vec<String> =
                settings.map(|(key, value)| format!("{key}={value}")).collect();
            return Err(request(format!(
                "--from-run {text}: it has {} runs; select one, e.g. `{file}?{}`",
                runs.len(),
                filter.join("&")
            )));
        }
    };
    let even = matches!(&run.pacing, LoopKind::Open { arrivals, .. } if arrivals == "constant");
    let packet = traffic.port.packet.get_ref().0 as u32;
    let most = traffic.pool.stride.get_ref().0 - traffic.pool.offset.get_ref().0;
    let mut draws = Draws::from(mix(traffic.seed ^ 0xa881));
    let mut arrivals: Vec<(f64, u32)> = Vec::new();
    for point in &run.series {
        let begin = (point.at_s - point.seconds).max(0.0);
        for i in 0..point.operations.min(MOST - (arrivals.len() as u64).min(MOST)) {
            let share = if even { i as f64 / point.operations as f64 } else { draws.unit() };
            arrivals.push((begin + share * point.seconds, packet));
        }
    }
    arrivals.sort_by(|a, b| a.0.total_cmp(&b.0));
    traffic.port.recording = Some(Arc::new(RecordedArrivals::of(arrivals, most)?));
    traffic.name = format!("{} as in {text}", traffic.name);
    Ok(())
}
