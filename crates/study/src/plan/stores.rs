//! The stores of a study, each with its options checked and the server that is started for it.

use std::path::{Path, PathBuf};

use host::Root;
use model::Address;
use server::launch::{ServerSettings, Value};
use store::{ADAPTERS, DataLocation, StoreUrl};
use toml::Spanned;

use super::settings::has_servers;
use crate::error::StudyError;
use crate::knobs::KnobLevels;
use crate::server_spec::ServerSpec;
use crate::text::{StudySpec, StudyText, option_text};

/// A store of a study.
pub(super) struct StudyStore {
    pub(super) url: StoreUrl,
    /// Its directory is deleted after the study.
    pub(super) temporary: bool,
    pub(super) server: Option<ServerSpec>,
}

pub(super) fn stores(
    source: &StudyText,
    spec: &StudySpec,
    data: &Path,
    levels: &KnobLevels,
) -> Result<Vec<StudyStore>, StudyError> {
    check_servers(source, spec)?;
    let missing = unavailable(source, spec);
    let mut stores: Vec<StudyStore> = Vec::new();
    for (scheme, options) in &spec.store {
        if missing.iter().any(|(name, _)| name == scheme.get_ref()) {
            continue;
        }
        let mut url = StoreUrl {
            scheme: scheme.get_ref().clone(),
            path: PathBuf::new(),
            servers: Vec::new(),
            options: Vec::new(),
        };
        let adapter =
            url.adapter().map_err(|error| source.at(scheme.span(), &error.to_string()))?;
        let mut place = scheme.span();
        let in_directory =
            matches!(adapter.location, DataLocation::Directory | DataLocation::Library);
        // A plug-in's other options are known once it is loaded.
        let mut options: Vec<_> = options.iter().collect();
        options.sort_by_key(|(key, _)| key.get_ref() != StoreUrl::LIBRARY);
        for (key, value) in options {
            let text =
                option_text(value.get_ref()).map_err(|words| source.at(value.span(), &words))?;
            if key.get_ref() == "path" && in_directory {
                url.path = text.into();
                place = value.span();
                continue;
            }
            if let (DataLocation::Servers { default_port }, "servers") =
                (adapter.location, key.get_ref().as_str())
            {
                for server in text.split(',') {
                    let address = Address::parse(server.trim(), default_port)
                        .map_err(|error| source.at(value.span(), &error.to_string()))?;
                    url.servers.push(address);
                }
                continue;
            }
            url.options.push((key.get_ref().clone(), text));
            // Checked one by one, so that an error points at the very option.
            url.check().map_err(|error| source.at(key.span(), &error.to_string()))?;
        }
        let known = url
            .check()
            .and_then(|()| url.describe())
            .map_err(|e| source.at(scheme.span(), &e.to_string()))?;
        let temporary = known.on_disk && !url.has_directory();
        if temporary {
            url.path = data.join(&url.scheme);
        }
        let taken = |other: &&StudyStore| url.has_directory() && other.url.path == url.path;
        if let Some(other) = stores.iter().find(taken) {
            let scheme = &other.url.scheme;
            let words = format!("`{scheme}` has this directory already; give each its own");
            return Err(source.at(place, &words));
        }
        let server = server_of(source, spec, (scheme, &url), levels)?;
        let url = match &server {
            Some(server) => server.store(url).map_err(|why| source.at(scheme.span(), &why))?,
            None => url,
        };
        stores.push(StudyStore { url, temporary, server });
    }
    if stores.is_empty() {
        return Err(StudyError::Request(format!(
            "{}: no store is given; add a table such as [store.rocksdb]",
            source.origin
        )));
    }
    Ok(stores)
}

/// The stores that this build or machine lacks, each with the reason; empty if none would remain,
/// which is refused when stores are read or their servers are started.
pub(super) fn unavailable(source: &StudyText, spec: &StudySpec) -> Vec<(String, String)> {
    let missing: Vec<(String, String)> = spec
        .store
        .iter()
        // A library that the study names itself is looked for when its options are read.
        .filter(|(_, options)| !options.keys().any(|key| key.get_ref() == "library"))
        .filter_map(|(scheme, _)| {
            let name = scheme.get_ref();
            let adapter = ADAPTERS.iter().find(|adapter| adapter.scheme == name)?;
            let why = match adapter.available() {
                Err(why) => why.to_string(),
                // On other machines it is looked for when it is started.
                Ok(_) if source.server_hosts().is_some() => return None,
                Ok(_) => missing_program(spec, name)?,
            };
            Some((name.clone(), why))
        })
        .collect();
    if missing.len() == spec.store.len() { Vec::new() } else { missing }
}

/// Why the program of a store's server is not here. One that the study names itself is looked for
/// when it is started.
fn missing_program(spec: &StudySpec, name: &str) -> Option<String> {
    let (_, settings) = spec.server.iter().find(|(known, _)| known.get_ref() == name)?;
    if settings.keys().any(|key| key.get_ref() == "binary") {
        return None;
    }
    let program = server::launch::program(name).ok()?;
    Some(server::launch::located(program).err()?.to_string())
}

/// Refuses a server without a store that uses it.
pub(super) fn check_servers(source: &StudyText, spec: &StudySpec) -> Result<(), StudyError> {
    for name in spec.server.keys() {
        if !spec.store.keys().any(|store| store.get_ref() == name.get_ref()) {
            let name_is = name.get_ref();
            let words = format!("no store uses this server; add a table [store.{name_is}]");
            return Err(source.at(name.span(), &words));
        }
    }
    Ok(())
}

/// The list of CPUs that a server on a NUMA node has under these levels; none if it is no node.
fn cpus_of_node(root: &Root, node: &str, levels: &KnobLevels) -> Option<Value> {
    let mut cpus = host::node_cpus(root, node).ok()??;
    let left = levels.cpus_left(root);
    cpus.retain(|cpu| left.contains(cpu));
    Some(Value::Text(model::cpu_list::show(&cpus))).filter(|_| !cpus.is_empty())
}

/// The server that is to be started for a networked store that names none of its own.
pub(super) fn server_of(
    source: &StudyText,
    spec: &StudySpec,
    (scheme, url): (&Spanned<String>, &StoreUrl),
    levels: &KnobLevels,
) -> Result<Option<ServerSpec>, StudyError> {
    let table = spec.server.iter().find(|(name, _)| name.get_ref() == scheme.get_ref());
    let name = scheme.get_ref();
    match (table, url.servers.is_empty(), has_servers(url)) {
        (None, true, true) => {
            let started = match server::launch::program(name) {
                Ok(_) => format!(", or have one started by a table [server.{name}]"),
                Err(_) => String::new(),
            };
            let words =
                format!("the server is missing: name it with `servers = \"HOST:PORT\"`{started}");
            Err(source.at(scheme.span(), &words))
        }
        (None, _, _) => Ok(None),
        (Some((table, _)), _, false) => {
            let words = format!("`{name}` lives in this process and has no server");
            Err(source.at(table.span(), &words))
        }
        (Some((table, _)), false, true) => {
            let words = "the store names its servers already; leave out one of the two";
            Err(source.at(table.span(), words))
        }
        (Some((table, settings)), true, true) => {
            let pair = |(key, value): (&Spanned<String>, &Spanned<Value>)| {
                let of_node = match (key.get_ref().as_str(), value.get_ref()) {
                    ("cpus", Value::Text(node)) => cpus_of_node(source.root(), node, levels),
                    _ => None,
                };
                (key.get_ref().clone(), of_node.unwrap_or_else(|| value.get_ref().clone()))
            };
            let server_settings = ServerSettings(settings.iter().map(pair).collect());
            let server = ServerSpec::new(name, server_settings).map_err(|error| {
                let about = settings.keys().find(|key| error.key() == Some(key.get_ref()));
                source.at(about.map_or(table.span(), Spanned::span), &error.to_string())
            })?;
            let Some(hosts) = source.server_hosts() else { return Ok(Some(server)) };
            server.on(hosts.clone()).map(Some).map_err(|why| source.at(table.span(), &why))
        }
    }
}
