//! Redis and Valkey, over the network.

use crate::remote::{ReplicaReads, options};
use crate::wire::Protocol;
use crate::{OptionInfo, Remote, ServerFamily, StoreError, StoreOptions, StoreUrl, on_off};

pub struct Redis;

const PROTOCOLS: &[(&str, Protocol)] = &[("resp2", Protocol::Resp2), ("resp3", Protocol::Resp3)];

const REPLICAS: &[(&str, ReplicaReads)] = &[
    ("never", ReplicaReads::Never),
    ("prefer", ReplicaReads::Prefer),
    ("only", ReplicaReads::Only),
];

/// Redis' own limit on `databases`.
const MOST_DATABASES: u32 = 1 << 20;

impl ServerFamily for Redis {
    const OPTIONS: &'static [OptionInfo] = &options::<4, 15>([
        OptionInfo::new("protocol", "resp2", "`resp2` or `resp3` (Redis 6 on)"),
        OptionInfo::new("db", "0", "number of the database"),
        OptionInfo::new("cluster", "off", "the servers are nodes of a cluster; others are found"),
        OptionInfo::new("replicas", "never", "reads of a cluster go there: `prefer` or `only`"),
    ]);
    const DEFAULT_PORT: u16 = 6379;
    const LONGEST_KEY: usize = 512 << 20;

    fn remote(url: &StoreUrl) -> Result<Remote, StoreError> {
        let given = StoreOptions::new(url, Self::OPTIONS)?;
        let protocol = given.choice("protocol", PROTOCOLS)?.unwrap_or(Protocol::Resp2);
        let database = given.integer("db", 0, MOST_DATABASES)?.unwrap_or(0);
        let replicas = given.choice("replicas", REPLICAS)?;
        let cluster = match (given.flag("cluster")?.unwrap_or(false), replicas) {
            (true, replicas) => Some(replicas.unwrap_or_default()),
            (false, None) => None,
            (false, Some(_)) => {
                let words = "`replicas` belongs to a cluster; add `cluster=on`";
                return Err(StoreError::Request(words.to_owned()));
            }
        };
        if cluster.is_some() && database != 0 {
            let words = "a cluster has no databases but 0; leave `db` out";
            return Err(StoreError::Request(words.to_owned()));
        }
        let mut remote = Remote { cluster, ..Remote::read(url, &given, protocol, database)? };
        if let Some(reads) = cluster {
            let name = REPLICAS.iter().find(|(_, known)| *known == reads);
            remote.options.push(("cluster".to_owned(), on_off(true)));
            remote
                .options
                .extend(name.map(|(name, _)| ("replicas".to_owned(), (*name).to_owned())));
        }
        Ok(remote)
    }
}
