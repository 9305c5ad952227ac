//! Where the two ends are: CPUs and addresses.

use micro::job::{NetFlags, PORT};
use model::Address;

use crate::exit::request;

/// The CPUs of this end and of a server that is started here: each end has its own as far as
/// there are enough.
pub fn ends(flags: &NetFlags, cpus: &[u32]) -> (Vec<u32>, Vec<u32>) {
    if !flags.pin {
        return (Vec::new(), Vec::new());
    }
    let threads = (flags.threads as usize).clamp(1, cpus.len().max(1));
    let (own, others) = cpus.split_at(threads.min(cpus.len()));
    let own = if flags.at.cpus.is_some() { cpus } else { own };
    let servers = match &flags.server_cpus {
        Some(list) => list.cpus.clone(),
        None if others.is_empty() => cpus.to_vec(),
        None => others[..threads.min(others.len())].to_vec(),
    };
    (own.to_vec(), servers)
}

/// HOST, HOST:PORT or /PATH; port 0 is any free one.
pub fn address(flag: &str, text: &str) -> anyhow::Result<Address> {
    let (named, any) = match text.strip_suffix(":0") {
        Some(host) => (host, true),
        None => (text, false),
    };
    let address = Address::parse(named, PORT).map_err(|e| request(format!("--{flag}: {e}")))?;
    Ok(match address {
        Address::Tcp { host, .. } if any => Address::Tcp { host, port: 0 },
        other => other,
    })
}
