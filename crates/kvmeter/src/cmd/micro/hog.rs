use std::time::{Duration, Instant};

use micro::hog::{AchievedTraffic, Hog, HogSpec};
use micro::job::HogArgs;
use model::ByteRate;
use report::format::significant;
use report::micro::{MemoryTraffic, size};
use report::table::Table;
use serde_json::{Map, Value, json};

use super::session::{MicroRun, name_flag, one};
use crate::exit::ExitOutcome;
use crate::output::Output;

/// Each thread goes around in this many times the last-level caches.
const OUTSIDE_CACHES: u64 = 4;
/// Intervals over which the evenness of the rate is shown.
const INTERVAL: Duration = Duration::from_millis(100);

pub fn run(args: &HogArgs, show: &Output) -> anyhow::Result<ExitOutcome> {
    let session = MicroRun::begin("hog", &args.at, show)?;
    let (hog, spec) = start(args, &session)?;
    let (whole, intervals) = watch(&hog, args.time.0, &session, show);
    hog.stop();
    let mut warnings = Vec::new();
    if spec.buffer < session.last_level_bytes() * 2 {
        warnings.push(format!(
            "buffers of {} partly fit into the caches: not all of this is memory traffic",
            size(spec.buffer)
        ));
    }
    if let (false, Some(target)) = (whole.reached_target, whole.target_gb_s) {
        warnings.push(format!(
            "{} GB/s were requested, more than these CPUs could move; name more with --cpus",
            significant(target, 3)
        ));
    }
    let reached_target = whole.reached_target;
    let outcome = session.end(
        object(&spec, &whole, &intervals)?,
        &[table(&spec, &whole, &intervals)],
        warnings,
    )?;
    Ok(if reached_target { outcome } else { ExitOutcome::Invalid })
}

/// Serves a study, beside a run of it.
pub fn serve(args: &HogArgs, show: &Output) -> anyhow::Result<ExitOutcome> {
    let session = MicroRun::begin("hog", &args.at, show)?;
    let (hog, _) = start(args, &session)?;
    micro::hog::serve(&hog, std::io::stdin().lock(), std::io::stdout().lock())?;
    Ok(ExitOutcome::Done)
}

fn start(args: &HogArgs, session: &MicroRun<'_>) -> anyhow::Result<(Hog, HogSpec)> {
    let buffer = args.size.map_or_else(|| session.last_level_bytes() * OUTSIDE_CACHES, |s| s.0);
    session.check_memory(buffer.saturating_mul(session.cpus.len() as u64))?;
    let spec = HogSpec {
        cpus: session.cpus.clone(),
        bytes_s: args.rate.map(|ByteRate(rate)| rate),
        traffic: args.traffic,
        buffer,
        pages: args.memory.pages,
        placement: args.memory.place,
    };
    Ok((Hog::start(&spec).map_err(name_flag)?, spec))
}

/// The whole time, and the rate of each interval in GB/s.
fn watch(
    hog: &Hog,
    time: Duration,
    session: &MicroRun<'_>,
    show: &Output,
) -> (AchievedTraffic, Vec<f64>) {
    let bar = show.parts(time.as_millis() as u64);
    bar.set_prefix("hog");
    let begun = Instant::now();
    let (all, mut last) = (hog.mark(), hog.mark());
    let mut intervals = Vec::new();
    while begun.elapsed() < time && !session.stopped() {
        std::thread::sleep(INTERVAL.min(time.saturating_sub(begun.elapsed())));
        let achieved = hog.since(&last);
        last = hog.mark();
        // The last interval is shorter and shows the clock rather than the hog.
        if achieved.seconds > INTERVAL.as_secs_f64() / 2.0 {
            intervals.push(achieved.gb_s);
        }
        bar.set_position(begun.elapsed().as_millis() as u64);
        bar.set_message(format!("{} GB/s", significant(achieved.gb_s, 3)));
    }
    let whole = hog.since(&all);
    bar.finish_and_clear();
    intervals.sort_by(f64::total_cmp);
    (whole, intervals)
}

fn object(
    spec: &HogSpec,
    whole: &AchievedTraffic,
    sorted: &[f64],
) -> anyhow::Result<Map<String, Value>> {
    let mut hog = serde_json::to_value(whole)?;
    if let Value::Object(object) = &mut hog {
        let mut put = |key: &str, value: Value| object.insert(key.to_owned(), value);
        put("interval_s", INTERVAL.as_secs_f64().into());
        put("interval_min_gb_s", sorted.first().copied().into());
        put("interval_median_gb_s", sorted.get(sorted.len() / 2).copied().into());
        put("interval_max_gb_s", sorted.last().copied().into());
        put("cpus", json!(spec.cpus));
        put("traffic", json!(spec.traffic));
        put("buffer_bytes", spec.buffer.into());
        put("pages", json!(spec.pages));
        put("placement", json!(spec.placement));
    }
    one("hog", Ok(hog))
}

fn table(spec: &HogSpec, whole: &AchievedTraffic, sorted: &[f64]) -> Table {
    let at = |place: usize| sorted.get(place).copied();
    report::micro::traffic(&MemoryTraffic {
        kind: spec.traffic.to_string(),
        cpus: &spec.cpus,
        buffer_bytes: spec.buffer,
        target_gb_s: whole.target_gb_s,
        gb_s: whole.gb_s,
        reached_target: whole.reached_target,
        bytes: whole.bytes,
        seconds: whole.seconds,
        intervals_gb_s: [at(0), at(sorted.len() / 2), sorted.last().copied()],
        interval_ms: INTERVAL.as_millis(),
    })
}
