//! A load that moves: what differs between rising and falling load, and after a burst.

use model::signal::CLIENT_OFFERED_RATE;
use model::{Op, Origin, Run, Series, SeriesPoint, Unit};

/// A change of the offered rate below this share is none.
const LEAST_CHANGE: f64 = 0.01;
/// The fewest intervals of rising and of falling load that are compared.
const MIN_INTERVALS: usize = 3;
/// A burst's peak is more than the usual rate by this factor.
const BURST: f64 = 2.2;
/// Seconds before and after a burst that are compared.
const BEFORE_S: f64 = 10.0;
const AFTER_S: f64 = 5.0;
/// From this multiple of the latency before the burst on, it has not come back.
const NOT_BACK: f64 = 1.25;

/// One interval of a run whose rate moves.
#[derive(Debug, Clone, Copy)]
struct MovingInterval {
    at_s: f64,
    seconds: f64,
    offered_ops_s: f64,
    operations: f64,
    p50_ns: f64,
    p99_ns: f64,
    watts: Option<f64>,
}

/// The means over some intervals: of latency by operations, of energy by time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LoadMeans {
    pub intervals: usize,
    pub p50_ns: f64,
    pub p99_ns: f64,
    pub joules_per_op: Option<f64>,
}

/// Rising and falling load at the same offered rates.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RiseAndFall {
    /// The range of offered rates that both have.
    pub from_ops_s: f64,
    pub to_ops_s: f64,
    pub rising: LoadMeans,
    pub falling: LoadMeans,
}

/// The seconds before and after the first burst.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AfterBurst {
    pub usual_ops_s: f64,
    pub peak_ops_s: f64,
    pub before: LoadMeans,
    pub after: LoadMeans,
    /// Length of what is compared.
    pub after_s: f64,
    /// When p99 had come back, in seconds after the burst; None where it had not.
    pub back_after_s: Option<f64>,
}

/// What a run says of a load that moves.
#[derive(Debug, Clone, PartialEq)]
pub struct MovingLoad {
    /// The latencies are those of its most frequent operation.
    pub op: Op,
    /// The series of power, where there is one, and whether it was measured.
    pub power: Option<(String, bool)>,
    pub rise_and_fall: Option<RiseAndFall>,
    pub after_burst: Option<AfterBurst>,
}

/// The offered rates of a run whose rate moves.
pub fn offered_rate(run: &Run) -> Option<&Series> {
    run.samples.iter().find(|series| series.signal == CLIENT_OFFERED_RATE.name)
}

/// None for a run whose rate does not move.
pub fn moving_load(run: &Run) -> Option<MovingLoad> {
    let offered = offered_rate(run)?;
    let operations =
        |op: Op| run.series.iter().filter(|p| p.op == op).map(|p| p.operations).sum::<u64>();
    let op = Op::ALL.into_iter().max_by_key(|op| operations(*op))?;
    let power = power(run);
    let intervals = intervals(run, offered, op, power);
    Some(MovingLoad {
        op,
        power: power.map(|series| (series.signal.clone(), series.origin == Origin::Measured)),
        rise_and_fall: rise_and_fall(&intervals),
        after_burst: after_burst(&intervals),
    })
}

/// The series of power that covers most: one that was measured before one that was modelled, then the
/// one with the highest mean.
fn power(run: &Run) -> Option<&Series> {
    let mean = |series: &Series| series.values.iter().sum::<f64>() / series.values.len() as f64;
    let watts = run.samples.iter().filter(|s| s.unit == Unit::Watts && !s.values.is_empty());
    watts.max_by(|a, b| {
        let measured = |series: &Series| series.origin == Origin::Measured;
        measured(a).cmp(&measured(b)).then(mean(a).total_cmp(&mean(b)))
    })
}

fn intervals(run: &Run, offered: &Series, op: Op, power: Option<&Series>) -> Vec<MovingInterval> {
    let mut points: Vec<&SeriesPoint> = run.series.iter().collect();
    points.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
    let mut all: Vec<MovingInterval> = Vec::new();
    for (at_s, offered_ops_s) in offered.at_s.iter().zip(&offered.values) {
        let mut interval = MovingInterval {
            at_s: *at_s,
            seconds: 0.0,
            offered_ops_s: *offered_ops_s,
            operations: 0.0,
            p50_ns: f64::NAN,
            p99_ns: f64::NAN,
            watts: None,
        };
        let first = points.partition_point(|point| point.at_s < at_s - 1e-6);
        for point in points[first..].iter().take_while(|point| point.at_s <= at_s + 1e-6) {
            interval.seconds = point.seconds;
            interval.operations += point.operations as f64;
            if point.op == op && point.operations > 0 {
                (interval.p50_ns, interval.p99_ns) = (point.p50_ns as f64, point.p99_ns as f64);
            }
        }
        let from = at_s - interval.seconds;
        interval.watts = power.and_then(|series| {
            let inside = series.at_s.iter().zip(&series.values);
            let inside = inside.filter(|(at, _)| **at > from && **at <= *at_s);
            let values: Vec<f64> = inside.map(|(_, watts)| *watts).collect();
            (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
        });
        if interval.seconds > 0.0 && interval.p99_ns.is_finite() {
            all.push(interval);
        }
    }
    all
}

fn means(intervals: &[MovingInterval]) -> LoadMeans {
    let operations: f64 = intervals.iter().map(|one| one.operations).sum();
    let of = |value: fn(&MovingInterval) -> f64| {
        intervals.iter().map(|one| value(one) * one.operations).sum::<f64>() / operations
    };
    let joules: Option<f64> =
        intervals.iter().map(|one| one.watts.map(|watts| watts * one.seconds)).sum();
    LoadMeans {
        intervals: intervals.len(),
        p50_ns: of(|one| one.p50_ns),
        p99_ns: of(|one| one.p99_ns),
        joules_per_op: joules.map(|joules| joules / operations),
    }
}

fn rise_and_fall(all: &[MovingInterval]) -> Option<RiseAndFall> {
    let (mut rising, mut falling) = (Vec::new(), Vec::new());
    for pair in all.windows(2) {
        let (before, now) = (pair[0].offered_ops_s, pair[1]);
        if now.offered_ops_s > before * (1.0 + LEAST_CHANGE) {
            rising.push(now);
        } else if now.offered_ops_s < before * (1.0 - LEAST_CHANGE) {
            falling.push(now);
        }
    }
    let range = |intervals: &[MovingInterval]| {
        let rates = || intervals.iter().map(|one| one.offered_ops_s);
        (rates().fold(f64::INFINITY, f64::min), rates().fold(0.0, f64::max))
    };
    let ((low, high), (other_low, other_high)) = (range(&rising), range(&falling));
    let (from, to) = (low.max(other_low), high.min(other_high));
    for intervals in [&mut rising, &mut falling] {
        intervals.retain(|one| (from..=to).contains(&one.offered_ops_s));
    }
    (rising.len().min(falling.len()) >= MIN_INTERVALS).then(|| RiseAndFall {
        from_ops_s: from,
        to_ops_s: to,
        rising: means(&rising),
        falling: means(&falling),
    })
}

fn after_burst(all: &[MovingInterval]) -> Option<AfterBurst> {
    let mut rates: Vec<f64> = all.iter().map(|one| one.offered_ops_s).collect();
    rates.sort_by(f64::total_cmp);
    let (usual, peak) = (*rates.get(rates.len() / 2)?, *rates.last()?);
    if peak < usual * BURST {
        return None;
    }
    let high = |one: &MovingInterval| one.offered_ops_s >= (usual + peak) / 2.0;
    let begin = all.iter().position(high)?;
    let end = begin + all[begin..].iter().position(|one| !high(one))?;
    let length =
        |intervals: &[MovingInterval]| intervals.iter().map(|one| one.seconds).sum::<f64>();
    let mut first = begin;
    while first > 0 && length(&all[first - 1..begin]) <= BEFORE_S + 1e-6 {
        first -= 1;
    }
    // The next burst ends what is after this one.
    let rest = &all[end..];
    let rest = &rest[..rest.iter().position(high).unwrap_or(rest.len())];
    let mut count = 1;
    while count < rest.len() && length(&rest[..=count]) <= AFTER_S + 1e-6 {
        count += 1;
    }
    if first == begin {
        return None;
    }
    let before = means(&all[first..begin]);
    let ended = rest.first().map_or(0.0, |one| one.at_s - one.seconds);
    let back = rest.iter().find(|one| one.p99_ns < before.p99_ns * NOT_BACK);
    Some(AfterBurst {
        usual_ops_s: usual,
        peak_ops_s: peak,
        before,
        after: means(&rest[..count]),
        after_s: length(&rest[..count]),
        back_after_s: back.map(|one| one.at_s - one.seconds - ended),
    })
}
