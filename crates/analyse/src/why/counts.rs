//! Sentences on what was counted inside the kernel: waits for a CPU, block devices, softirqs and
//! TCP connections.

use model::{
    BlockOperation, KernelHistogram, KernelQuantity, ProfiledSide, RunProfile, TcpFigures,
};

use super::percent;

/// Softirqs with less of one CPU's time are not named.
const LEAST_CPU: f64 = 0.005;

/// On a process: its waits for a CPU and its connections.
pub(super) fn of_process(profile: &RunProfile, side: ProfiledSide, process: &str) -> Vec<String> {
    let Some(counts) = &profile.counts else { return Vec::new() };
    let is_of = |of: Option<ProfiledSide>, name: &str| of == Some(side) && name == process;
    let queue = counts.of(KernelQuantity::RunQueue).find(|waits| is_of(waits.side, &waits.subject));
    let tcp = counts.connections.iter().find(|tcp| is_of(Some(tcp.side), &tcp.process));
    queue.and_then(waits_for_cpu).into_iter().chain(tcp.map(connections)).collect()
}

/// On the machine: its block devices, then its softirqs.
pub(super) fn of_machine(profile: &RunProfile) -> Vec<String> {
    let Some(counts) = &profile.counts else { return Vec::new() };
    let devices = counts.of(KernelQuantity::BlockLatency).filter_map(|latency| {
        let same = |other: &&KernelHistogram| {
            (&other.subject, other.operation) == (&latency.subject, latency.operation)
        };
        let of = |quantity| counts.of(quantity).find(same);
        let wait = of(KernelQuantity::BlockWait);
        requests(wait, latency, of(KernelQuantity::BlockSize), profile.seconds)
    });
    devices.chain(softirqs(profile)).collect()
}

/// What was not counted.
pub(super) fn reservations(profile: &RunProfile) -> Vec<String> {
    let Some(counts) = &profile.counts else { return Vec::new() };
    let missing = counts.missing.iter();
    let mut words: Vec<String> = missing
        .map(|missing| format!("No figures of {}: {}.", missing.what, missing.reason))
        .collect();
    if counts.lost > 0 {
        words.push(format!("{} events inside the kernel were not counted.", counts.lost));
    }
    words
}

fn waits_for_cpu(waits: &KernelHistogram) -> Option<String> {
    Some(format!(
        "Its threads waited {} for a CPU, {} in all: {} at the median, {} at the 99th percentile.",
        times(waits.count()),
        time(waits.sum() as f64),
        time(waits.quantile(0.5)?),
        time(waits.quantile(0.99)?)
    ))
}

fn connections(tcp: &TcpFigures) -> String {
    let many = |count: u64, one: &str, many: &str| match count {
        1 => format!("1 {one}"),
        count => format!("{count} {many}"),
    };
    format!(
        "It had {}: {} sent again, round trips of {} at the median and {} at most, {} on average \
         sent but not acknowledged, {} received but not read.",
        many(tcp.connections, "TCP connection", "TCP connections"),
        many(tcp.retransmitted, "segment", "segments"),
        time(tcp.median_rtt_us * 1e3),
        time(tcp.max_rtt_us * 1e3),
        bytes(tcp.mean_send_queue),
        bytes(tcp.mean_receive_queue)
    )
}

fn requests(
    wait: Option<&KernelHistogram>,
    latency: &KernelHistogram,
    size: Option<&KernelHistogram>,
    seconds: f64,
) -> Option<String> {
    let operation = match latency.operation? {
        BlockOperation::Read => "reads",
        BlockOperation::Write => "writes",
        BlockOperation::Flush => "flushes",
        BlockOperation::Discard => "discards",
        BlockOperation::Other => "other requests",
    };
    let (count, median, p99) = (latency.count(), latency.quantile(0.5)?, latency.quantile(0.99)?);
    let rate = |value: f64| value / seconds.max(1e-9);
    let size = size.and_then(|size| {
        let (all, median) = (size.sum() as f64, size.quantile(0.5)?);
        Some(format!("; {}/s in requests of {} at the median", bytes(rate(all)), bytes(median)))
    });
    let wait = wait.and_then(|wait| Some((wait.quantile(0.5)?, wait.quantile(0.99)?)));
    let wait = wait.map(|(median, p99)| {
        format!("half waited {} or more for the device, 99 % at most {}; ", time(median), time(p99))
    });
    Some(format!(
        "{}: {count} {operation}, {}/s: {}half took {} or more, 99 % at most {}{}.",
        latency.subject,
        digits(rate(count as f64)),
        wait.unwrap_or_default(),
        time(median),
        time(p99),
        size.unwrap_or_default()
    ))
}

fn softirqs(profile: &RunProfile) -> Option<String> {
    let counts = profile.counts.as_ref()?;
    let cpus =
        |histogram: &KernelHistogram| histogram.sum() as f64 / 1e9 / profile.seconds.max(1e-9);
    let mut kinds: Vec<_> = counts.of(KernelQuantity::Softirq).collect();
    kinds.sort_by_key(|kind| std::cmp::Reverse(kind.sum()));
    let all: f64 = kinds.iter().map(|kind| cpus(kind)).sum();
    let large = kinds.iter().filter(|kind| cpus(kind) >= LEAST_CPU);
    let words = large.filter_map(|kind| {
        let p99 = time(kind.quantile(0.99)?);
        Some(format!("{} {} (99 % at most {p99} each)", kind.subject, percent(cpus(kind))))
    });
    let words: Vec<String> = words.collect();
    let named = if words.is_empty() { String::new() } else { format!(": {}", words.join(", ")) };
    (!kinds.is_empty()).then(|| format!("Softirqs took {} of one CPU{named}.", percent(all)))
}

fn times(count: u64) -> String {
    match count {
        1 => "once".to_owned(),
        count => format!("{count} times"),
    }
}

/// Three digits, or all before the point.
fn digits(value: f64) -> String {
    match value {
        large if large >= 99.95 => format!("{large:.0}"),
        middle if middle >= 9.995 => format!("{middle:.1}"),
        small => format!("{small:.2}"),
    }
}

fn scaled(value: f64, step: f64, units: &[&str]) -> String {
    let (mut value, mut unit) = (value, 0);
    while value >= step * 0.9995 && unit + 1 < units.len() {
        value /= step;
        unit += 1;
    }
    match unit {
        0 if value.fract() == 0.0 => format!("{value} {}", units[0]),
        unit => format!("{} {}", digits(value), units[unit]),
    }
}

fn time(nanoseconds: f64) -> String {
    scaled(nanoseconds, 1e3, &["ns", "µs", "ms", "s"])
}

fn bytes(value: f64) -> String {
    scaled(value, 1024.0, &["B", "KiB", "MiB", "GiB"])
}

#[cfg(test)]
mod tests {
    use model::{KernelBucket, KernelCounts, MissingCounts, SampleClock};

    use super::*;

    fn histogram(
        quantity: KernelQuantity,
        subject: &str,
        values: &[(u64, u64)],
    ) -> KernelHistogram {
        let block = subject == "vda";
        let bucket = |(value, count): &(u64, u64)| KernelBucket {
            low: *value,
            width: 1,
            count: *count,
            sum: value * count,
        };
        KernelHistogram {
            quantity,
            subject: subject.to_owned(),
            side: (quantity == KernelQuantity::RunQueue).then_some(ProfiledSide::Server),
            operation: block.then_some(BlockOperation::Read),
            buckets: values.iter().map(bucket).collect(),
        }
    }

    fn profile() -> RunProfile {
        RunProfile {
            clock: SampleClock::Software,
            frequency: 99,
            kernel: true,
            seconds: 2.0,
            operations: 1,
            lost: 0,
            stacks: Vec::new(),
            counts: Some(KernelCounts {
                histograms: vec![
                    histogram(
                        KernelQuantity::RunQueue,
                        "memcached",
                        &[(14_000, 98), (3_000_000, 2)],
                    ),
                    histogram(KernelQuantity::BlockWait, "vda", &[(6_000, 990), (900_000, 20)]),
                    histogram(
                        KernelQuantity::BlockLatency,
                        "vda",
                        &[(80_000, 1_000), (1_200_000, 10)],
                    ),
                    histogram(KernelQuantity::BlockSize, "vda", &[(16_384, 1_010)]),
                    histogram(KernelQuantity::Softirq, "RCU", &[(1_000, 100)]),
                    histogram(KernelQuantity::Softirq, "NET_RX", &[(20_000, 40_000)]),
                ],
                connections: vec![TcpFigures {
                    side: ProfiledSide::Server,
                    process: "memcached".to_owned(),
                    connections: 8,
                    retransmitted: 1,
                    median_rtt_us: 45.0,
                    max_rtt_us: 1_200.0,
                    mean_send_queue: 12.5,
                    max_send_queue: 100,
                    mean_receive_queue: 2048.0,
                    max_receive_queue: 4096,
                }],
                missing: vec![MissingCounts {
                    what: "softirqs".to_owned(),
                    reason: "why; how".to_owned(),
                }],
                lost: 3,
            }),
            top_down: None,
        }
    }

    #[test]
    fn sentences_have_the_numbers_that_were_counted() {
        let profile = profile();
        let server = of_process(&profile, ProfiledSide::Server, "memcached");
        assert_eq!(
            server,
            [
                "Its threads waited 100 times for a CPU, 7.37 ms in all: 14.0 µs at the median, \
                 3.00 ms at the 99th percentile.",
                "It had 8 TCP connections: 1 segment sent again, round trips of 45.0 µs at the \
                 median and 1.20 ms at most, 12.5 B on average sent but not acknowledged, 2.00 KiB \
                 received but not read."
            ]
        );
        assert!(of_process(&profile, ProfiledSide::Client, "memcached").is_empty());
        assert_eq!(
            of_machine(&profile),
            [
                "vda: 1010 reads, 505/s: half waited 6.00 µs or more for the device, 99 % at most \
                 900 µs; half took 80.0 µs or more, 99 % at most 80.0 µs; 7.89 MiB/s in requests of \
                 16.0 KiB at the median.",
                "Softirqs took 40 % of one CPU: NET_RX 40 % (99 % at most 20.0 µs each)."
            ]
        );
        assert_eq!(
            reservations(&profile),
            ["No figures of softirqs: why; how.", "3 events inside the kernel were not counted."]
        );
    }

    #[test]
    fn without_counts_nothing_is_stated() {
        let profile = RunProfile { counts: None, ..profile() };
        assert!(of_machine(&profile).is_empty() && reservations(&profile).is_empty());
        assert!(of_process(&profile, ProfiledSide::Server, "memcached").is_empty());
        let profile = RunProfile { counts: Some(KernelCounts::default()), ..profile };
        assert!(of_machine(&profile).is_empty() && reservations(&profile).is_empty());
    }
}
