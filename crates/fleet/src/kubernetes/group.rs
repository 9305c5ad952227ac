//! What is requested of a cluster: `namespace=bench,nodes=2,image=debian:12,cpus=4,memory=8Gi`.

use std::collections::BTreeMap;
use std::time::Duration;

use model::Span;
use serde::Deserialize;

use super::manifest::HOST_FOLDER;
use crate::error::FleetError;
use crate::fleet_file::FleetFile;
use crate::target::request;

/// How long pods may wait by default until all of them run.
const QUEUE: Duration = Duration::from_secs(600);
/// The group that `--on kubernetes:...` describes, among those of a fleet file.
pub(crate) const ONLY: &str = "kubernetes";
/// The Job is named by it, and Kubernetes allows 63 characters for that.
const MAX_NAME: usize = 20;
/// The limit of Kubernetes.
const LONGEST_NAME: usize = 253;
const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// Which cluster, and by which login.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClusterPlace {
    pub namespace: Option<String>,
    /// A context of the configuration.
    pub context: Option<String>,
    /// A file instead of `KUBECONFIG` and `~/.kube/config`.
    pub kubeconfig: Option<String>,
}

/// Pods of one kind, one on each node.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PodGroup {
    nodes: Option<usize>,
    image: Option<String>,
    cpus: Option<u32>,
    memory: Option<String>,
    #[serde(default)]
    pub node_selector: BTreeMap<String, String>,
    /// As `kubectl taint` writes what is tolerated: `KEY=VALUE:EFFECT`, of which all but KEY may lack.
    #[serde(default)]
    pub tolerations: Vec<String>,
    #[serde(default)]
    pub host_network: bool,
    /// A folder of the node for program, data and results.
    pub host_path: Option<String>,
    pub service_account: Option<String>,
    pub pull_secret: Option<String>,
    time: Option<Span>,
    queue: Option<Span>,
    /// Price and power of each node.
    pub platform: Option<String>,
    /// Values of the study that differ on the nodes.
    #[serde(default)]
    pub set: Vec<String>,
}

/// Reads the list after `kubernetes:`.
pub(crate) fn parse(list: Option<&str>) -> Result<FleetFile, FleetError> {
    let mut table = toml::Table::new();
    for piece in list.unwrap_or_default().split(',').map(str::trim).filter(|one| !one.is_empty()) {
        let Some((key, value)) = piece.split_once('=') else {
            return Err(request(format!(
                "kubernetes: `{piece}` is no KEY=VALUE; write \
                 `kubernetes:namespace=bench,nodes=2,image=debian:12,cpus=4,memory=8Gi`"
            )));
        };
        put(&mut table, &key.replace('-', "_"), value)?;
    }
    let mut file = FleetFile::default();
    let string = |value: toml::Value| value.as_str().map(str::to_owned);
    let mut taken = |key: &str| table.remove(key).and_then(string);
    file.folder = taken("folder");
    file.cluster = ClusterPlace {
        namespace: taken("namespace"),
        context: taken("context"),
        kubeconfig: taken("kubeconfig"),
    };
    let group = table.try_into().map_err(|error: toml::de::Error| {
        let known = match error.message().starts_with("unknown field") {
            true => "; `namespace`, `context`, `kubeconfig` and `folder` are known, too",
            false => "",
        };
        request(format!("kubernetes: {}{known}", error.message()))
    })?;
    file.pods = BTreeMap::from([(ONLY.to_owned(), group)]);
    Ok(file)
}

fn put(table: &mut toml::Table, key: &str, value: &str) -> Result<(), FleetError> {
    let wrong = |why: &str| request(format!("kubernetes: {key}: `{value}` {why}"));
    match key {
        "node_selector" => {
            let (label, value) = value.split_once('=').ok_or_else(|| {
                wrong("is no label; write `node-selector=KEY=VALUE`, once for each label")
            })?;
            let labels = table.entry(key).or_insert_with(|| toml::Table::new().into());
            if let toml::Value::Table(labels) = labels {
                labels.insert(label.to_owned(), value.to_owned().into());
            }
        }
        "toleration" | "tolerations" => {
            let all = table.entry("tolerations").or_insert_with(|| Vec::<String>::new().into());
            if let toml::Value::Array(all) = all {
                all.push(value.into());
            }
        }
        _ if table.contains_key(key) => return Err(wrong("is given a second time; give it once")),
        "nodes" | "cpus" => {
            let number: i64 = value.parse().map_err(|_| wrong("is no whole number"))?;
            table.insert(key.to_owned(), number.into());
        }
        "host_network" => {
            let on = match value {
                "yes" => true,
                "no" => false,
                _ => return Err(wrong("is neither yes nor no")),
            };
            table.insert(key.to_owned(), on.into());
        }
        _ => {
            table.insert(key.to_owned(), value.into());
        }
    }
    Ok(())
}

impl ClusterPlace {
    pub fn check(&self) -> Result<(), FleetError> {
        for (key, value) in [
            ("namespace", &self.namespace),
            ("context", &self.context),
            ("kubeconfig", &self.kubeconfig),
        ] {
            if value.as_ref().is_some_and(String::is_empty) {
                return Err(request(format!("kubernetes: {key}: is empty; leave it out")));
            }
        }
        if let Some(namespace) = &self.namespace {
            check_name("namespace", namespace)?;
        }
        Ok(())
    }
}

impl PodGroup {
    pub fn check(&self, name: &str) -> Result<(), FleetError> {
        let wrong = |words: String| Err(request(format!("{name}: {words}")));
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        if name.len() > MAX_NAME || !name.chars().all(plain) {
            return wrong(format!(
                "the name of a group has lowercase letters and digits, at most {MAX_NAME}"
            ));
        }
        if self.nodes == Some(0) {
            return wrong("nodes: is at least 1".to_owned());
        }
        if self.cpus.is_none_or(|cpus| cpus == 0) {
            return wrong(
                "cpus: is missing: how many whole CPUs each pod has, such as cpus=4".to_owned(),
            );
        }
        for (key, value, example) in
            [("image", &self.image, "debian:12"), ("memory", &self.memory, "8Gi")]
        {
            if value.as_ref().is_none_or(String::is_empty) {
                return wrong(format!("{key}: is missing; give it, such as {key}={example}"));
            }
        }
        for (key, value) in [
            ("image", &self.image),
            ("memory", &self.memory),
            ("service_account", &self.service_account),
            ("pull_secret", &self.pull_secret),
        ] {
            let Some(value) = value else { continue };
            if value.is_empty() || value.chars().any(|c| c.is_whitespace() || c.is_control()) {
                return wrong(format!("{key}: `{value}` is no value for Kubernetes"));
            }
        }
        if let Some(path) = self.host_path.as_ref().filter(|path| !path.starts_with('/')) {
            return wrong(format!("host_path: `{path}` does not begin with `/`"));
        }
        for toleration in &self.tolerations {
            self::toleration(toleration)
                .map_err(|why| request(format!("{name}: tolerations: `{toleration}` {why}")))?;
        }
        if self.time.is_some_and(|Span(time)| time < Duration::from_secs(1)) {
            return wrong("time: is at least 1s".to_owned());
        }
        Ok(())
    }

    pub fn nodes(&self) -> usize {
        self.nodes.unwrap_or(1)
    }

    pub fn image(&self) -> &str {
        self.image.as_deref().unwrap_or_default()
    }

    pub fn cpus(&self) -> u32 {
        self.cpus.unwrap_or_default()
    }

    pub fn memory(&self) -> &str {
        self.memory.as_deref().unwrap_or_default()
    }

    /// The time limit of the Job, once its pods run.
    pub fn time(&self) -> Option<Duration> {
        self.time.map(|Span(time)| time)
    }

    /// How long pods may wait.
    pub fn queue(&self) -> Duration {
        self.queue.map_or(QUEUE, |limit| limit.0)
    }

    /// Where the pods have their folder, if it is of the node.
    pub fn folder(&self) -> Option<&'static str> {
        self.host_path.as_ref().map(|_| HOST_FOLDER)
    }
}

/// Refuses what cannot be a name in Kubernetes (RFC 1123), before it is a part of an address.
pub(super) fn check_name(what: &str, name: &str) -> Result<(), FleetError> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
    let begins = |c: char| c.is_ascii_alphanumeric();
    if name.len() <= LONGEST_NAME && name.chars().all(plain) && name.starts_with(begins) {
        return Ok(());
    }
    Err(request(format!(
        "kubernetes: {what}: `{name}` is no name; one has lowercase letters, digits, `-` and `.`"
    )))
}

/// Key, value and effect of what is tolerated.
pub(super) fn toleration(text: &str) -> Result<(&str, Option<&str>, Option<&str>), String> {
    let (taint, effect) = match text.rsplit_once(':') {
        Some((taint, effect)) => (taint, Some(effect)),
        None => (text, None),
    };
    if let Some(effect) = effect.filter(|effect| !EFFECTS.contains(effect)) {
        return Err(format!("has the effect `{effect}`; known are {}", EFFECTS.join(", ")));
    }
    let (key, value) = match taint.split_once('=') {
        Some((key, value)) => (key, Some(value)),
        None => (taint, None),
    };
    if key.is_empty() {
        return Err("has no key; write KEY=VALUE:EFFECT".to_owned());
    }
    Ok((key, value, effect))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(list: &str) -> Result<(ClusterPlace, PodGroup), String> {
        let file = parse(Some(list)).map_err(|error| error.to_string())?;
        let group = file.pods[ONLY].clone();
        file.cluster.check().map_err(|error| error.to_string())?;
        group.check(ONLY).map_err(|error| error.to_string())?;
        Ok((file.cluster, group))
    }

    #[test]
    fn a_list_describes_a_group() {
        let (place, group) = group(
            "namespace=bench,nodes=2,image=debian:12,cpus=4,memory=8Gi,node-selector=pool=arm,\
             node-selector=disk=nvme,toleration=only=bench:NoSchedule,host-network=yes,time=2h,\
             queue=5m",
        )
        .expect("a group");
        assert_eq!(place.namespace.as_deref(), Some("bench"));
        assert_eq!((group.nodes(), group.cpus(), group.memory()), (2, 4, "8Gi"));
        let labels: Vec<_> = group.node_selector.iter().collect();
        assert_eq!(labels.len(), 2);
        assert_eq!(group.node_selector["pool"], "arm");
        assert_eq!(
            toleration(&group.tolerations[0]),
            Ok(("only", Some("bench"), Some("NoSchedule")))
        );
        assert!(group.host_network);
        assert_eq!(group.queue(), Duration::from_secs(300));
    }

    #[test]
    fn what_cannot_be_used_is_refused_with_the_way_out() {
        const WHOLE: &str = "image=a,cpus=1,memory=1Gi";
        for (list, words) in [
            ("", "cpus: is missing"),
            ("cpus=1,memory=1Gi", "image: is missing; give it, such as image=debian:12"),
            ("cpus=0,image=a,memory=1Gi", "cpus: is missing"),
            ("cpus=1.5", "`1.5` is no whole number"),
            ("nodes=0,image=a,cpus=1,memory=1Gi", "nodes: is at least 1"),
            ("namespace", "`namespace` is no KEY=VALUE"),
            ("nodse=1", "unknown field `nodse`"),
            ("cpus=1,cpus=2", "is given a second time"),
            ("node-selector=arm", "write `node-selector=KEY=VALUE`"),
            ("host-network=1", "is neither yes nor no"),
            (
                "namespace=../../nodes,image=a,cpus=1,memory=1Gi",
                "`../../nodes` is no name; one has",
            ),
        ] {
            let why = group(list).expect_err("refused");
            assert!(why.contains(words), "{list}: {why}");
        }
        for (list, words) in [
            ("toleration=a:Never", "has the effect `Never`; known are NoSchedule"),
            ("toleration==x", "has no key"),
            ("host-path=data", "does not begin with `/`"),
            ("time=1ms", "time: is at least 1s"),
            ("pull-secret=a b", "is no value for Kubernetes"),
        ] {
            let why = group(&format!("{WHOLE},{list}")).expect_err("refused");
            assert!(why.contains(words), "{list}: {why}");
        }
    }
}
