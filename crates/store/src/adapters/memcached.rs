//! memcached, over the network.

use crate::remote::options;
use crate::wire::Protocol;
use crate::{OptionInfo, Remote, ServerFamily, StoreError, StoreOptions, StoreUrl, on_off};

pub struct Memcached;

const PROTOCOLS: &[(&str, Protocol)] = &[
    ("meta", Protocol::MemcachedMeta),
    ("text", Protocol::MemcachedText),
    ("binary", Protocol::MemcachedBinary),
];

impl ServerFamily for Memcached {
    const OPTIONS: &'static [OptionInfo] = &options::<2, 13>([
        OptionInfo::new("protocol", "meta", "`meta` (memcached 1.6 on), `text` or `binary`"),
        OptionInfo::new("eject", "off", "a lost server of several gives its keys to the others"),
    ]);
    const DEFAULT_PORT: u16 = 11211;
    const LONGEST_KEY: usize = 250;

    fn remote(url: &StoreUrl) -> Result<Remote, StoreError> {
        let given = StoreOptions::new(url, Self::OPTIONS)?;
        let protocol = given.choice("protocol", PROTOCOLS)?.unwrap_or(Protocol::MemcachedMeta);
        let eject = given.flag("eject")?.unwrap_or(false);
        let mut remote = Remote { eject, ..Remote::read(url, &given, protocol, 0)? };
        if eject {
            remote.options.push(("eject".to_owned(), on_off(true)));
        }
        Ok(remote)
    }
}
