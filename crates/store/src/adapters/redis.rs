//! Redis and Valkey, over the network.

use crate::remote::options;
use crate::wire::Protocol;
use crate::{OptionInfo, Remote, ServerFamily, StoreError, StoreOptions, StoreUrl};

pub struct Redis;

const PROTOCOLS: &[(&str, Protocol)] = &[("resp2", Protocol::Resp2), ("resp3", Protocol::Resp3)];

/// Redis' own limit on `databases`.
const MOST_DATABASES: u32 = 1 << 20;

impl ServerFamily for Redis {
    const OPTIONS: &'static [OptionInfo] = &options::<2, 13>([
        OptionInfo::new("protocol", "resp2", "`resp2` or `resp3` (Redis 6 on)"),
        OptionInfo::new("db", "0", "number of the database"),
    ]);
    const DEFAULT_PORT: u16 = 6379;
    const LONGEST_KEY: usize = 512 << 20;

    fn remote(url: &StoreUrl) -> Result<Remote, StoreError> {
        let given = StoreOptions::new(url, Self::OPTIONS)?;
        let protocol = given.choice("protocol", PROTOCOLS)?.unwrap_or(Protocol::Resp2);
        let database = given.integer("db", 0, MOST_DATABASES)?.unwrap_or(0);
        Remote::read(url, &given, protocol, database)
    }
}
