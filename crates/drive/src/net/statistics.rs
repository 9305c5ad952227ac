//! Servers' own statistics under common names.

use model::Unit;
use store::wire::APPENDFSYNC;
use store::{Statistic, Survives};

/// The common name, and the names of memcached and Redis. Monotonic ones end in `.total`.
const NAMES: &[(&str, Unit, &[&str])] = &[
    ("gets.total", Unit::Count, &["cmd_get"]),
    ("sets.total", Unit::Count, &["cmd_set"]),
    ("commands.total", Unit::Count, &["total_commands_processed"]),
    ("hits.total", Unit::Count, &["get_hits", "keyspace_hits"]),
    ("misses.total", Unit::Count, &["get_misses", "keyspace_misses"]),
    ("evictions.total", Unit::Count, &["evictions", "evicted_keys"]),
    ("items", Unit::Count, &["curr_items"]),
    ("memory", Unit::Bytes, &["bytes", "used_memory"]),
    ("memory_limit", Unit::Bytes, &["limit_maxbytes", "maxmemory"]),
    ("connections", Unit::Count, &["curr_connections", "connected_clients"]),
    ("threads", Unit::Count, &["threads", "io_threads"]),
];

/// Sums over the servers. Names that not all servers report are left out.
pub(super) fn of(server_statistics: &[Vec<(String, String)>]) -> Vec<Statistic> {
    let mut all = Vec::new();
    for (name, unit, theirs) in NAMES {
        let values: Vec<f64> = server_statistics
            .iter()
            .filter_map(|server| {
                let (_, text) = server.iter().find(|(name, _)| theirs.contains(&name.as_str()))?;
                text.parse().ok()
            })
            .collect();
        if !values.is_empty() && values.len() == server_statistics.len() {
            let (name, value) = ((*name).to_owned(), values.iter().sum());
            all.push(Statistic { name, value, unit: *unit });
        }
    }
    all
}

/// Whether a server may evict: memcached always, Redis with a memory limit and an evicting policy.
pub(super) fn evicts(server_statistics: &[(String, String)]) -> bool {
    let server_statistics = |name: &str| {
        server_statistics.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    };
    match server_statistics("maxmemory") {
        Some("0") => false,
        Some(_) => server_statistics("maxmemory_policy") != Some("noeviction"),
        None => true,
    }
}

/// What acknowledged writes survive: nothing of memcached's; of Redis what its append-only file does,
/// which is written before the answer, and synced before it where the server says `always`. None
/// where the server does not say it.
pub(super) fn survives(server_statistics: &[(String, String)]) -> Option<Survives> {
    let value = |name: &str| {
        server_statistics.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    };
    match (value("limit_maxbytes"), value("aof_enabled"), value(APPENDFSYNC)) {
        (Some(_), ..) | (_, Some("0"), _) => Some(Survives::Nothing),
        (_, Some(_), Some("always")) => Some(Survives::PowerLoss),
        (_, Some(_), Some(_)) => Some(Survives::ProcessKill),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn statistics_are_summed_under_common_names() {
        let one = pairs(&[("get_hits", "3"), ("bytes", "10"), ("version", "1.6.18")]);
        let two = pairs(&[("get_hits", "4"), ("bytes", "20"), ("threads", "4")]);
        let all = of(&[one, two]);
        let value = |name: &str| all.iter().find(|it| it.name == name).map(|it| it.value);
        assert_eq!(value("hits.total"), Some(7.0));
        assert_eq!(value("memory"), Some(30.0));
        assert_eq!(value("threads"), None, "one of the servers does not say");
    }

    #[test]
    fn writes_survive_what_the_server_says() {
        let of = |all: &[(&str, &str)]| survives(&pairs(all));
        assert_eq!(of(&[("limit_maxbytes", "67108864")]), Some(Survives::Nothing));
        assert_eq!(of(&[("aof_enabled", "0")]), Some(Survives::Nothing));
        let synced = |how| of(&[("aof_enabled", "1"), (APPENDFSYNC, how)]);
        assert_eq!(synced("always"), Some(Survives::PowerLoss));
        assert_eq!(synced("everysec"), Some(Survives::ProcessKill));
        // The login may lack the permission, or it is another server.
        assert_eq!(of(&[("aof_enabled", "1")]), None);
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn eviction_depends_on_limit_and_policy() {
        assert!(evicts(&pairs(&[("limit_maxbytes", "67108864")])));
        assert!(!evicts(&pairs(&[("maxmemory", "0"), ("maxmemory_policy", "allkeys-lru")])));
        assert!(!evicts(&pairs(&[("maxmemory", "1"), ("maxmemory_policy", "noeviction")])));
        assert!(evicts(&pairs(&[("maxmemory", "1"), ("maxmemory_policy", "allkeys-lru")])));
    }
}
