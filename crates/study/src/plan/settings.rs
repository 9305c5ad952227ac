//! The settings of a run as flat text, by which runs are filtered and compared.

use model::{Bytes, Count, RunSettings};
use store::{DataLocation, StoreUrl};
use workload::WorkloadSpec as Workload;

use crate::load::LoadConfig;
use crate::server_spec::ServerSpec;

pub(crate) fn settings(
    (store, server): (&StoreUrl, Option<&ServerSpec>),
    name: &str,
    workload: &Workload,
    load_config: &LoadConfig,
    repeat: u32,
) -> RunSettings {
    let mut settings = RunSettings::new();
    let mut put = |key: &str, value: String| settings.insert(key.to_owned(), value);
    put("store", store.scheme.clone());
    if let Some(server) = server {
        server.settings(&mut settings);
    }
    let mut put = |key: &str, value: String| settings.insert(key.to_owned(), value);
    if !store.servers.is_empty() {
        let servers: Vec<String> = store.servers.iter().map(ToString::to_string).collect();
        put("store.servers", servers.join(","));
    }
    for (option, value) in &store.options {
        put(&format!("store.{option}"), value.clone());
    }
    put("workload", name.to_owned());
    put("workload.records", Count(workload.records.0).to_string());
    put("workload.data_bytes", Bytes(workload.data_bytes()).0.to_string());
    put("workload.is", workload.describe());
    put("seed", workload.seed.to_string());
    put("repeat", repeat.to_string());
    load_config.settings(store.multiplexes(), &mut settings);
    settings
}

/// Whether it is servers that are there or will be started.
pub(super) fn has_servers(store: &StoreUrl) -> bool {
    store.adapter().is_ok_and(|adapter| matches!(adapter.location, DataLocation::Servers { .. }))
}
