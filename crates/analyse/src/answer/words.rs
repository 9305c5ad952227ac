//! Metrics and levels in words, so that an answer can be read without the keys of `--json`.

use model::design::FactorLevels;
use model::{LatencyClock, Op};

use crate::metric::{DistributionPoint, Metric, RunField};

/// A combination of what is given in which none of it varies, beside others.
pub(super) const ELSEWHERE: &str = "elsewhere";

/// Signals that answers often name.
const SIGNALS: [(&str, &str); 30] = [
    ("branch_miss_ratio", "the share of mispredicted branches"),
    ("client.llc.miss_ratio", "the miss ratio of the clients' last-level cache"),
    ("cpu_s_per_mop", "CPU time per million operations"),
    ("ipc", "instructions per cycle"),
    ("ipc.core", "instructions per cycle of a core"),
    ("joules_per_op", "energy per operation"),
    ("limit.cpu", "the share of the CPUs in use"),
    ("limit.memory", "the share of memory in use"),
    ("llc.miss_ratio", "the miss ratio of the last-level cache"),
    ("machine.busy", "CPU utilisation"),
    ("mbwu.units", "the number of work units"),
    ("micro.load_median", "the latency of a load from memory"),
    ("management_traffic.device", "the share of the device's traffic that manages data"),
    ("micro.triad", "memory bandwidth"),
    ("mpki.branch", "mispredicted branches per thousand instructions"),
    ("mpki.dtlb", "misses of the data TLB per thousand instructions"),
    ("mpki.itlb", "misses of the instruction TLB per thousand instructions"),
    ("mpki.l1d", "misses of the L1 data cache per thousand instructions"),
    ("mpki.l1i", "misses of the L1 instruction cache per thousand instructions"),
    ("mpki.l2", "misses of L2 per thousand instructions"),
    ("mpki.llc", "misses of the last-level cache per thousand instructions"),
    ("ops_per_joule", "operations per joule"),
    ("ops_per_joule_net", "operations per joule above idle"),
    ("residency.awake", "time awake (C0)"),
    ("server.cpu_s_per_mop", "the server's CPU time per million requests"),
    ("server.memory.resident", "the server's memory"),
    ("usd_per_gop", "the cost of a billion operations"),
    ("volume.busy", "how busy the device is"),
    ("volume.queue", "the number of requests at the device"),
    ("write_amplification", "write amplification"),
];

/// `the 99th percentile of reads`, `throughput`; a signal that has no words by its name.
pub fn metric_words(name: &str) -> String {
    match Metric::parse(name) {
        Ok(Metric::Field(field)) => field_words(field).to_owned(),
        Ok(Metric::Latency { clock, op, point }) => latency_words(clock, op, point),
        _ => {
            let known = SIGNALS.iter().find(|(signal, _)| *signal == name);
            match (known, name.split_once('.')) {
                (Some((_, words)), _) => (*words).to_owned(),
                (None, Some(("residency", state))) => format!("the time in {state}"),
                _ => name.to_owned(),
            }
        }
    }
}

fn field_words(field: RunField) -> &'static str {
    match field {
        RunField::Throughput => "throughput",
        RunField::AchievedRate => "the achieved rate",
        RunField::TargetRate => "the target rate",
        RunField::HitRatio => "the hit ratio",
        RunField::Power => "power",
        RunField::Seconds => "the length of the window",
        RunField::Operations => "the number of operations",
        RunField::Verified => "the number of verified answers",
        RunField::Misses => "the number of misses",
        RunField::Errors => "the number of errors",
        RunField::Threads => "the number of threads",
        RunField::Busy => "how busy the harness is",
    }
}

fn latency_words(clock: Option<LatencyClock>, op: Option<Op>, point: DistributionPoint) -> String {
    let of = match op {
        None => "latency".to_owned(),
        Some(op) => match op {
            Op::ReadModifyWrite => "read-modify-writes".to_owned(),
            Op::Delete => "deletions".to_owned(),
            other => format!("{}s", other.name()),
        },
    };
    let latency = if op.is_some() { format!("latency of {of}") } else { of.clone() };
    let statistic = match point {
        DistributionPoint::Mean => format!("the mean {latency}"),
        DistributionPoint::Min => format!("the lowest {latency}"),
        DistributionPoint::Max => format!("the highest {latency}"),
        DistributionPoint::Count => format!("the number of {of}"),
        DistributionPoint::Percentile(50.0) => format!("the median {latency}"),
        DistributionPoint::Percentile(percent) => {
            format!("the {} percentile of {of}", ordinal(percent))
        }
    };
    match clock {
        None | Some(LatencyClock::Response) => statistic,
        Some(LatencyClock::Service) => format!("{statistic}, from sending"),
        Some(LatencyClock::Arrival) => format!("{statistic}, until arrival"),
        Some(LatencyClock::Server) => format!("{statistic} in the server"),
    }
}

/// `99th`, `99.9th`, `1st`.
fn ordinal(number: f64) -> String {
    let text = number.to_string();
    let teen = (11.0..=13.0).contains(&number);
    let ending = match text.chars().last() {
        Some('1') if !teen => "st",
        Some('2') if !teen => "nd",
        Some('3') if !teen => "rd",
        _ => "th",
    };
    format!("{text}{ending}")
}

/// A factor or setting as the name of what varies: `SMT`, `idle states`, `block cache`.
pub fn factor_words(factor: &str) -> String {
    match factor {
        "smt" => "SMT".to_owned(),
        "idle" => "idle states".to_owned(),
        "cpus" => "CPUs".to_owned(),
        other => other.rsplit('.').next().unwrap_or(other).replace('_', " "),
    }
}

/// A level with what it is a level of: `SMT on`, `idle states up to C1E`, `RocksDB`, `rate 10k`.
pub fn level_words(factor: &str, level: &str) -> String {
    match (factor, level) {
        ("store", store) => store_words(store).to_owned(),
        ("workload" | "machine" | "experiment", level) => level.to_owned(),
        ("threads", "1") => "1 thread".to_owned(),
        ("threads", count) if count.bytes().all(|byte| byte.is_ascii_digit()) => {
            format!("{count} threads")
        }
        ("idle", "all") => "all idle states".to_owned(),
        ("idle", "none") => "no idle states".to_owned(),
        ("idle", state) if state.starts_with(['C', 'c']) => format!("idle states up to {state}"),
        (_, level) => format!("{} {level}", factor_words(factor)),
    }
}

fn store_words(store: &str) -> &str {
    match store {
        "rocksdb" => "RocksDB",
        "spill" => "Spill",
        "lmdb" => "LMDB",
        "redis" => "Redis",
        "valkey" => "Valkey",
        other => other,
    }
}

/// The levels of these names: `SMT on, no idle states`.
pub(super) fn levels_words<'n>(
    names: impl IntoIterator<Item = &'n str>,
    at: &FactorLevels,
) -> String {
    let words = names.into_iter().filter_map(|name| Some(level_words(name, at.get(name)?)));
    words.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_told_in_words() {
        for (name, words) in [
            ("throughput_ops_s", "throughput"),
            ("latency_us.read.p99", "the 99th percentile of reads"),
            ("latency_us.p99_9", "the 99.9th percentile of latency"),
            ("latency_us.read.p50", "the median latency of reads"),
            ("latency_us.mean", "the mean latency"),
            ("server_latency_us.p99", "the 99th percentile of latency in the server"),
            ("latency_us.update.max", "the highest latency of updates"),
            ("ops_per_joule", "operations per joule"),
            ("residency.C6", "the time in C6"),
            ("some.signal", "some.signal"),
        ] {
            assert_eq!(metric_words(name), words);
        }
        assert_eq!((ordinal(1.0), ordinal(12.0)), ("1st".to_owned(), "12th".to_owned()));
    }

    #[test]
    fn levels_are_told_in_words() {
        for (factor, level, words) in [
            ("smt", "on", "SMT on"),
            ("idle", "none", "no idle states"),
            ("idle", "C1E", "idle states up to C1E"),
            ("store", "rocksdb", "RocksDB"),
            ("threads", "1", "1 thread"),
            ("threads", "2", "2 threads"),
            ("threads", "1 per cpu", "threads 1 per cpu"),
            ("workload", "ycsb-a", "ycsb-a"),
            ("block_cache", "64MiB per cpu", "block cache 64MiB per cpu"),
            ("mbwu.devices", "2", "devices 2"),
        ] {
            assert_eq!(level_words(factor, level), words);
        }
    }
}
