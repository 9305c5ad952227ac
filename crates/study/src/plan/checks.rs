//! Checks of workloads and stores before any run.

use model::{Op, Phase};
use store::StoreUrl;
use workload::{Workload, WorkloadSpec};

use super::settings::has_servers;
use crate::error::StudyError;
use crate::load::{InvalidOption, LoadConfig};
use crate::text::{StudySpec, StudyText};

/// Refuses a workload that a store cannot serve, before anything is written.
pub fn check_store(store: &StoreUrl, spec: &WorkloadSpec) -> Result<(), StudyError> {
    check_requests(store, spec)
        .and_then(|()| check_keys(store, spec))
        .and_then(|()| check_values(store, spec))
        .map_err(StudyError::Request)
}

/// Keys that are looked at to see whether a store takes them.
const SAMPLE: u64 = 1000;

/// Refuses a store that does not take the workload's keys, before anything is written.
pub(super) fn check_keys(store: &StoreUrl, spec: &WorkloadSpec) -> Result<(), String> {
    let most = store.describe().map_err(|error| error.to_string())?.longest_key;
    let workload = Workload::new(spec).map_err(|error| error.to_string())?;
    let remote = store.remote().map_err(|error| error.to_string())?;
    let mut key = Vec::new();
    for record in 0..spec.records.0.min(SAMPLE) {
        workload.key(record, &mut key);
        if let Some(remote) = &remote {
            remote.protocol.check_key(&key).map_err(|error| error.to_string())?;
        }
        if key.len() > most {
            return Err(format!(
                "`{}` takes keys of at most {most} bytes, but this workload has one of {}",
                store.scheme,
                key.len()
            ));
        }
    }
    Ok(())
}

/// Refuses a store whose options do not take the workload's longest values.
pub(super) fn check_values(store: &StoreUrl, spec: &WorkloadSpec) -> Result<(), String> {
    let Some(most) = store.longest_value().map_err(|error| error.to_string())? else {
        return Ok(());
    };
    let workload = Workload::new(spec).map_err(|error| error.to_string())?;
    let longest = workload.longest_value();
    match longest > most.bytes {
        true => {
            let raised =
                most.raised_by.map_or(String::new(), |option| format!("raise `{option}`, or "));
            Err(format!(
                "`{}` takes values of at most {} bytes, but this workload has values of up to \
                 {longest}; {raised}make values shorter",
                store.scheme, most.bytes
            ))
        }
        false => Ok(()),
    }
}

/// Caches have no order of keys, and only behind caches there is a database to wait for.
pub(super) fn check_requests(store: &StoreUrl, spec: &WorkloadSpec) -> Result<(), String> {
    match (store.multiplexes(), spec.mix.contains(Op::Scan), &spec.miss_latency) {
        (true, true, _) => Err(format!("`{}` cannot scan, but the workload does", store.scheme)),
        (false, _, Some(_)) => Err(format!(
            "`miss_latency` models the database behind a cache, and `{}` is not one that kvmeter \
             reaches by connections; use memcached or redis, or set it to `none`",
            store.scheme
        )),
        _ => Ok(()),
    }
}

pub(super) fn check_workload(
    spec: &WorkloadSpec,
    load_config: &LoadConfig,
    phase: Phase,
) -> Result<(), StudyError> {
    spec.check()?;
    if u64::from(load_config.threads) > spec.records.0 {
        return Err(StudyError::Request(format!(
            "{} threads for {} records; lower `threads` or raise `records`",
            load_config.threads, spec.records.0
        )));
    }
    let no_load_has = [
        ("warm_up", load_config.shape.warm_up.is_some()),
        ("steady", load_config.steady.is_some()),
    ];
    if let (Phase::Load, Some((key, _))) = (phase, no_load_has.iter().find(|(_, given)| *given)) {
        let why = "a load has no warm-up and no steady state; leave it out".to_owned();
        return Err(InvalidOption { key, why }.into());
    }
    Workload::new(spec)?;
    Ok(())
}

/// Refuses options that only servers support for a store in this process.
pub(crate) fn check_needs_servers(
    store: &StoreUrl,
    load_config: &LoadConfig,
) -> Result<(), StudyError> {
    match load_config.needs_servers {
        Some(key) if has_servers(store) && !store.multiplexes() => {
            Err(StudyError::Request(format!(
                "`{key}` is for stores whose threads share connections; each thread of `{}` has a \
                 connection and a request of its own, so give more `threads`",
                store.scheme
            )))
        }
        Some(key) if !store.multiplexes() => Err(StudyError::Request(format!(
            "`{key}` is for stores behind a network, and `{}` is not one; leave it out",
            store.scheme
        ))),
        _ => Ok(()),
    }
}

/// A file's name has at most 255 bytes; a time and endings come behind it.
const LONGEST_NAME: usize = 150;

/// The name becomes part of a file's.
pub(super) fn check_name(source: &StudyText, spec: &StudySpec) -> Result<(), StudyError> {
    let name = spec.name.get_ref();
    if name.len() > LONGEST_NAME {
        let words = format!(
            "a name has at most {LONGEST_NAME} bytes, and this one {}: it becomes part of the names \
             of files",
            name.len()
        );
        return Err(source.at(spec.name.span(), &words));
    }
    let plain = |c: char| c.is_alphanumeric() || "-_.+ ".contains(c);
    if name.starts_with(char::is_alphanumeric) && name.chars().all(plain) {
        return Ok(());
    }
    let words =
        "a name begins with a letter or digit and holds only those, `-`, `_`, `.`, `+` and spaces";
    Err(source.at(spec.name.span(), words))
}
