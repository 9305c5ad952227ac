//! Redis, and Valkey, which takes the same arguments.

use model::{Address, Bytes};

use super::cluster::ClusterLayout;
use super::error::SettingError;
use super::program::{LaunchContext, Program, common_remedy};
use super::settings::{
    ARGUMENTS, BINARY, CPUS, GivenSettings, LISTEN, PORT, SOCKET, ServerSetting,
};

#[derive(Debug)]
pub(super) struct Redis {
    name: &'static str,
    binary: &'static str,
    package: &'static str,
    /// The start of its version line.
    title: &'static str,
}

const POLICIES: [&str; 8] = [
    "noeviction",
    "allkeys-lru",
    "allkeys-lfu",
    "allkeys-random",
    "volatile-lru",
    "volatile-lfu",
    "volatile-random",
    "volatile-ttl",
];

/// The most nodes of a cluster, as its specification advises.
const MOST_NODES: u32 = 1000;

/// Options whose value is a password.
const SECRETS: [&str; 4] =
    ["--requirepass", "--masterauth", "--primaryauth", "--tls-key-file-pass"];

const SETTINGS: &[ServerSetting] = &[
    ServerSetting::new("memory", "no limit", "most memory for data (maxmemory)")
        .owns(&["--maxmemory"]),
    ServerSetting::new(
        "policy",
        "noeviction",
        "eviction when the memory is full (maxmemory-policy)",
    )
    .owns(&["--maxmemory-policy"]),
    ServerSetting::new("threads", "1", "threads for sockets (io-threads); commands run in one")
        .owns(&["--io-threads"]),
    ServerSetting::new("connections", "10000", "most connections at once (maxclients)")
        .owns(&["--maxclients"]),
    ServerSetting::new("cluster", "none", "primaries of a cluster that kvmeter starts and joins")
        .owns(&["--cluster-enabled", "--cluster-port"]),
    ServerSetting::new("replicas", "0", "replicas of each primary of that cluster"),
    // `--port` is not owned: `--port 0 --tls-port N` is how TLS is given.
    PORT,
    SOCKET.owns(&["--unixsocket"]),
    LISTEN.owns(&["--bind"]),
    CPUS,
    BINARY,
    ARGUMENTS,
];

impl Redis {
    pub(super) const REDIS: Redis =
        Redis { name: "redis", binary: "redis-server", package: "redis-server", title: "Redis" };
    pub(super) const VALKEY: Redis = Redis {
        name: "valkey",
        binary: "valkey-server",
        package: "valkey-server",
        title: "Valkey",
    };
}

impl Program for Redis {
    fn name(&self) -> &'static str {
        self.name
    }

    fn binary(&self) -> &'static str {
        self.binary
    }

    fn package(&self) -> &'static str {
        self.package
    }

    fn settings(&self) -> &'static [ServerSetting] {
        SETTINGS
    }

    fn version_flag(&self) -> &'static str {
        "--version"
    }

    fn version(&self, printed: &str) -> Option<String> {
        let rest = printed.strip_prefix(self.title)?;
        let version = rest.split_whitespace().find_map(|word| word.strip_prefix("v="))?;
        Some(format!("{} {version}", self.title))
    }

    fn arguments(
        &self,
        given: &GivenSettings<'_>,
        context: LaunchContext<'_>,
    ) -> Result<Vec<String>, SettingError> {
        let mut arguments = Vec::new();
        let mut add = |name: &str, value: String| arguments.extend([format!("--{name}"), value]);
        match context.listen {
            Address::Unix(path) => {
                add("port", "0".to_owned());
                add("unixsocket", path.display().to_string());
            }
            Address::Tcp { host, port } => {
                add("bind", host.clone());
                add("port", port.to_string());
            }
        }
        add("dir", context.folder.display().to_string());
        // A snapshot in the middle of a run forks the server and writes to the disk.
        add("save", String::new());
        add("appendonly", "no".to_owned());
        if self.cluster(given)?.is_some() {
            add("cluster-enabled", "yes".to_owned());
            // A new replica is served at once rather than after 5 s.
            add("repl-diskless-sync-delay", "0".to_owned());
        }
        if let Some(memory) = given.bytes("memory", Bytes(1))? {
            add("maxmemory", memory.0.to_string());
        }
        if let Some(policy) = given.choice("policy", &POLICIES)? {
            add("maxmemory-policy", policy.to_owned());
        }
        // 128 is the limit of both programs.
        if let Some(threads) = given.number("threads", 1..=128)? {
            add("io-threads", threads.to_string());
        }
        if let Some(connections) = given.number("connections", 1..=16_777_216)? {
            add("maxclients", connections.to_string());
        }
        Ok(arguments)
    }

    fn cluster(&self, given: &GivenSettings<'_>) -> Result<Option<ClusterLayout>, SettingError> {
        let primaries = given.number("cluster", 1..=1000)?;
        let replicas = given.number("replicas", 0..=100)?;
        let Some(primaries) = primaries else {
            return match replicas {
                None => Ok(None),
                Some(_) => Err(given.wrong("replicas", "a number beside `cluster = PRIMARIES`")),
            };
        };
        let layout = ClusterLayout { primaries, replicas: replicas.unwrap_or(0) };
        if layout.nodes() > MOST_NODES {
            return Err(given.wrong("cluster", format!("at most {MOST_NODES} nodes in all")));
        }
        Ok(Some(layout))
    }

    /// In its protected mode a server without a password answers its own machine alone.
    fn open_to_others(&self) -> &'static [&'static str] {
        &["--protected-mode", "no"]
    }

    fn check(&self, arguments: &[String]) -> Result<(), SettingError> {
        let refuse = |argument: &str, instead: &str| SettingError::Argument {
            program: self.name,
            argument: argument.to_owned(),
            instead: instead.to_owned(),
        };
        if arguments.iter().any(|argument| argument == "--daemonize") {
            let why = "kvmeter runs it in the foreground to end it; leave this out";
            return Err(refuse("--daemonize", why));
        }
        if arguments.iter().any(|argument| argument == "--dir") {
            return Err(refuse("--dir", "its folder is kvmeter's own, and removed with it"));
        }
        let secret = |argument: &&String| SECRETS.contains(&argument.as_str());
        if let Some(argument) = arguments.iter().find(secret) {
            let why = "other users would see it in the list of processes, and results files record \
                       it; write it into a file and give `\"--include\", \"FILE\"`";
            return Err(refuse(argument, why));
        }
        // A configuration file is accepted only as the first argument, which is not the user's.
        match arguments.first() {
            Some(first) if !first.starts_with('-') => {
                Err(refuse(first, "write each option as `\"--name\", \"value\"`"))
            }
            _ => Ok(()),
        }
    }

    fn probe_request(&self) -> &'static [u8] {
        b"PING\r\n"
    }

    fn is_loading(&self, answer: &[u8]) -> bool {
        answer.starts_with(b"-LOADING")
    }

    fn unmet(&self, given: &GivenSettings<'_>, words: &str) -> Option<&'static str> {
        // With too few file descriptors it warns and continues with fewer clients.
        let reduced = words.contains("maxclients has been reduced");
        (reduced && given.has("connections")).then_some("connections")
    }

    fn remedy(&self, words: &str) -> Option<&'static str> {
        let known =
            [("FATAL CONFIG FILE ERROR", "check `arguments`: the server rejects one of them")];
        let way = known.iter().find(|(sign, _)| words.contains(sign)).map(|(_, way)| *way);
        way.or_else(|| common_remedy(words))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distinguishes_redis_from_valkey() {
        let redis = "Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64 build=a";
        let valkey = "Valkey server v=8.0.1 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64 build=b";
        assert_eq!(Redis::REDIS.version(redis).as_deref(), Some("Redis 7.0.15"));
        assert_eq!(Redis::VALKEY.version(valkey).as_deref(), Some("Valkey 8.0.1"));
        assert_eq!(Redis::REDIS.version(valkey), None);
    }
}
