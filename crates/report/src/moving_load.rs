//! What a run says of a load that moves, in sentences.

use analyse::{AfterBurst, LoadMeans, MovingLoad, RiseAndFall};
use model::Run;

use crate::format;
use crate::tables::op_name;

/// None of a run whose rate does not move.
pub fn sentences(run: &Run) -> Vec<String> {
    let Some(load) = analyse::moving_load(run) else { return Vec::new() };
    let mut all = Vec::new();
    match &load.rise_and_fall {
        Some(both) => all.push(rise_and_fall(&load, both)),
        None => all.push(
            "The load rose and fell at equal rates in too few intervals to compare the two."
                .to_owned(),
        ),
    }
    all.extend(load.after_burst.as_ref().map(|burst| after_burst(&load, burst)));
    all
}

fn rise_and_fall(load: &MovingLoad, both: &RiseAndFall) -> String {
    let RiseAndFall { from_ops_s, to_ops_s, rising, falling } = both;
    let mut words = format!(
        "At the same offered rates, {} to {}: while the load fell, {} latency was {} at p50 and {} \
         at p99, {} and {} against {} and {} while it rose",
        format::rate(*from_ops_s),
        format::rate(*to_ops_s),
        op_name(load.op),
        format::latency(falling.p50_ns),
        format::latency(falling.p99_ns),
        change(rising.p50_ns, falling.p50_ns),
        change(rising.p99_ns, falling.p99_ns),
        format::latency(rising.p50_ns),
        format::latency(rising.p99_ns),
    );
    words += &energy(load, ("rising", rising), ("falling", falling));
    words + &format!(" ({} and {} intervals).", rising.intervals, falling.intervals)
}

fn after_burst(load: &MovingLoad, burst: &AfterBurst) -> String {
    let AfterBurst { usual_ops_s, peak_ops_s, before, after, after_s, back_after_s } = burst;
    let mut words = format!(
        "In the {} after the burst of {} to {}, {} p99 was {}, {} against {} before it",
        format::seconds(*after_s),
        format::rate(*usual_ops_s),
        format::rate(*peak_ops_s),
        op_name(load.op),
        format::latency(after.p99_ns),
        change(before.p99_ns, after.p99_ns),
        format::latency(before.p99_ns),
    );
    words += &match back_after_s {
        Some(seconds) if *seconds <= 0.0 => "; it was back at once".to_owned(),
        Some(seconds) => format!("; it was back after {}", format::seconds(*seconds)),
        None => "; it did not come back in this run".to_owned(),
    };
    words + &energy(load, ("before", before), ("after", after)) + "."
}

/// Joules of an operation on both sides, or why there are none.
fn energy(
    load: &MovingLoad,
    (one, a): (&str, &LoadMeans),
    (other, b): (&str, &LoadMeans),
) -> String {
    let Some((signal, measured)) = &load.power else {
        return "; power was not measured".to_owned();
    };
    let (Some(a), Some(b)) = (a.joules_per_op, b.joules_per_op) else {
        return format!("; {signal} has no sample in some intervals");
    };
    let modelled = if *measured { "" } else { ", modelled" };
    format!(
        "; an operation took {:.3} mJ {one} and {:.3} mJ {other}, {} ({signal}{modelled})",
        a * 1e3,
        b * 1e3,
        change(a, b)
    )
}

/// `+12 %`.
fn change(from: f64, to: f64) -> String {
    format!("{:+.0} %", (to / from - 1.0) * 100.0)
}
