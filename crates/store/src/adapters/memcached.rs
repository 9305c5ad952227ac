//! memcached, over the network.

use crate::remote::options;
use crate::wire::Protocol;
use crate::{OptionInfo, Remote, ServerFamily, StoreError, StoreOptions, StoreUrl};

pub struct Memcached;

const PROTOCOLS: &[(&str, Protocol)] = &[
    ("meta", Protocol::MemcachedMeta),
    ("text", Protocol::MemcachedText),
    ("binary", Protocol::MemcachedBinary),
];

impl ServerFamily for Memcached {
    const OPTIONS: &'static [OptionInfo] = &options::<1, 12>([OptionInfo::new(
        "protocol",
        "meta",
        "`meta` (memcached 1.6 on), `text` or `binary`",
    )]);
    const DEFAULT_PORT: u16 = 11211;
    const LONGEST_KEY: usize = 250;

    fn remote(url: &StoreUrl) -> Result<Remote, StoreError> {
        let given = StoreOptions::new(url, Self::OPTIONS)?;
        let protocol = given.choice("protocol", PROTOCOLS)?.unwrap_or(Protocol::MemcachedMeta);
        Remote::read(url, &given, protocol, 0)
    }
}
