//! What a workload is, in words.

use workload::describe::{Figure, TraceDescription};
use workload::trace::TraceTiming;

use crate::format;

/// Sentences, the most important first.
pub fn sentences(description: &TraceDescription, timing: TraceTiming) -> Vec<String> {
    let mut words = vec![mix(description), keys(description)];
    words.push(popularity(description));
    words.extend(cache(description));
    words.push(drift(description));
    words.extend(prefixes(description));
    words.push(arrivals(description, timing));
    words
}

fn drift(description: &TraceDescription) -> String {
    let Some(drift) = &description.drift else {
        return "It is too short to say whether the popular keys change.".to_owned();
    };
    if !drift.moves {
        return "The popular keys stay the same.".to_owned();
    }
    let (kind, among, share) = match drift.is_slow {
        true => (" slowly", "an interval half of the trace away", drift.far),
        false => ("", "the next one", drift.successive),
    };
    let pace = drift.half_life_requests.map_or_else(String::new, |requests| {
        format!("; half of them are others after about {} requests", format::count_short(requests))
    });
    format!(
        "The popular keys change{kind}: of the 100 most popular ones of an interval {} are among \
         those of {among}, where chance alone leaves {}{pace}. A workload file does not have that.",
        format::percent(share),
        format::percent(drift.within)
    )
}

/// None where keys have no prefix, or all the same one.
fn prefixes(description: &TraceDescription) -> Option<String> {
    let prefixes = description.prefixes.as_ref().filter(|prefixes| prefixes.prefixes > 1)?;
    let count = format::count_short(prefixes.prefixes as f64);
    let (same, chance) = (prefixes.same_as_before.value, prefixes.by_chance);
    let (same, chance) = (format::percent(same), format::percent(chance));
    Some(match prefixes.is_local {
        true => format!(
            "Its keys have {count} prefixes and are local: {same} of the requests have the prefix \
             of the one before, {chance} by chance. A workload file does not have that."
        ),
        false => format!(
            "Its keys have {count} prefixes and are not local: {same} of the requests have the \
             prefix of the one before, as by chance."
        ),
    })
}

fn mix(description: &TraceDescription) -> String {
    let reads = description.reads as f64 / description.requests as f64;
    let kind = match reads {
        1.0 => "It only reads".to_owned(),
        0.0 => "It reads nothing".to_owned(),
        _ => format!("Reads are {} of it", format::percent(reads)),
    };
    let requests = format::count_short(description.requests as f64);
    match (description.duration_s, description.mean_rate_ops_s) {
        (Some(seconds), Some(rate)) => format!(
            "{kind}: {requests} requests in {}, {} on average.",
            format::seconds(seconds),
            format::rate(rate)
        ),
        _ => format!("{kind}: {requests} requests."),
    }
}

fn keys(description: &TraceDescription) -> String {
    let once = description.popularity.one_hit_wonders;
    format!(
        "It requests {} distinct keys; {} of them are one-hit wonders, requested once.",
        about(description.keys, format::count_short),
        about(once, format::percent)
    )
}

fn popularity(description: &TraceDescription) -> String {
    let top = about(description.popularity.top_1_percent, format::percent);
    let skew = format!("The most popular 1 % of the keys get {top} of the requests");
    match &description.popularity.zipf {
        Some(zipf) if zipf.is_zipf => format!(
            "{skew}; popularity follows Zipf's law with exponent {:.2} ({:.2} to {:.2}).",
            zipf.theta, zipf.theta_low, zipf.theta_high
        ),
        Some(_) => format!("{skew}; popularity does not follow Zipf's law."),
        None => format!("{skew}; there are too few keys to say whether that is Zipf's law."),
    }
}

fn cache(description: &TraceDescription) -> Option<String> {
    let curve = description.miss_ratio.as_ref()?;
    let at = |share: f64| curve.points.iter().find(|point| point.share >= share - 1e-9);
    let (small, large) = (at(0.1)?, at(1.0)?);
    let or_so = if curve.exact { "" } else { "about " };
    Some(format!(
        "An LRU cache of a tenth of the items ({}) would miss {or_so}{} of the reads, one of all of \
         them {or_so}{}.",
        format::count_short(small.items as f64),
        format::percent(small.by_items),
        format::percent(large.by_items)
    ))
}

fn arrivals(description: &TraceDescription, timing: TraceTiming) -> String {
    if timing == TraceTiming::Untimed {
        return "The trace has no times: nothing is known of its rate.".to_owned();
    }
    let most = description.dispersion.iter().max_by(|a, b| a.index.total_cmp(&b.index));
    let bursts = match most {
        None => "it is too short to say whether arrivals are bursty".to_owned(),
        Some(most) if most.index > 2.0 => format!(
            "arrivals are bursty: over intervals of {} their index of dispersion is {}, where Poisson \
             arrivals have 1",
            format::seconds(most.interval_s),
            format::significant(most.index, 2)
        ),
        Some(_) => "arrivals are not bursty at any time scale".to_owned(),
    };
    match &description.inter_arrival {
        Some(times) => format!(
            "Its arrivals fit `{}` best (Kolmogorov-Smirnov distance {:.3}); {bursts}.",
            times.family, times.distance
        ),
        None => format!("Inter-arrival times are not known; {bursts}."),
    }
}

/// A figure, with `about` where it is estimated.
fn about(figure: Figure, shown: fn(f64) -> String) -> String {
    match figure.exact {
        true => shown(figure.value),
        false => format!("about {}", shown(figure.value)),
    }
}
