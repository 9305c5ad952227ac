//! The client machines that generate the load instead of this one.

use std::path::PathBuf;

use agents::{AgentError, Credentials, TlsFiles, Token};
use model::{Address, Phase, Rate, RunSettings};
use toml::Spanned;

use crate::error::StudyError;
use crate::load::{InvalidOption, LoadConfig};
use crate::plan::{Plan, Segment, Step};
use crate::spec::{AgentsTable, StudySpec};
use crate::study_text::StudyText;

/// The machines that generate the load instead of this one.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentsConfig {
    pub hosts: Vec<Address>,
    pub secrets: CredentialFiles,
    /// Operations per second that this machine issues itself over one connection. Latencies are then
    /// its own, and the agents are background load.
    pub measure: Option<f64>,
}

/// Where the credentials are; they are read when the agents are called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CredentialFiles {
    pub files: TlsFiles,
    pub token_file: Option<PathBuf>,
    /// The environment variable that holds the token where no file does.
    pub token_variable: String,
}

impl CredentialFiles {
    pub fn load(&self) -> Result<Credentials, AgentError> {
        let token = match &self.token_file {
            Some(path) => Some(Token::from_file(path)?),
            None => Token::from_variable(&self.token_variable)?,
        };
        Credentials::load(&self.files, token)
    }
}

impl AgentsConfig {
    /// Reads `HOST`, `HOST:PORT` and so on.
    ///
    /// # Errors
    /// The first invalid address.
    pub fn hosts<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Vec<Address>, StudyError> {
        let read = |text: &str| match Address::parse(text, agents::DEFAULT_PORT) {
            Ok(Address::Unix(_)) => Err(StudyError::Request(format!(
                "{text}: agents listen on TCP; write `HOST` or `HOST:PORT`"
            ))),
            Ok(address) => Ok(address),
            Err(error) => Err(StudyError::Request(error.to_string())),
        };
        let hosts = texts.into_iter().map(read).collect::<Result<Vec<_>, _>>()?;
        let twice = (1..hosts.len()).find(|at| hosts[..*at].contains(&hosts[*at]));
        match twice {
            Some(at) => Err(StudyError::Request(format!(
                "agent {} is named twice: an agent serves once",
                hosts[at]
            ))),
            None if hosts.is_empty() => Err(StudyError::Request("no agent is named".to_owned())),
            None => Ok(hosts),
        }
    }

    pub fn settings(&self, settings: &mut RunSettings) {
        let hosts: Vec<String> = self.hosts.iter().map(Address::to_string).collect();
        settings.insert("agents".to_owned(), hosts.join(","));
        settings.insert("agents.count".to_owned(), hosts.len().to_string());
        if let Some(rate) = self.measure {
            settings.insert("agents.measure_rate".to_owned(), Rate(rate).to_string());
            settings.insert("measured_by".to_owned(), "coordinator".to_owned());
        }
    }

    /// Whether these agents can run a step; otherwise the key that prevents it, and why.
    fn check(&self, segment: &Segment, step: &Step) -> Result<(), InvalidOption> {
        let no = |key, why: String| Err(InvalidOption { key, why });
        let store = &segment.store;
        let count = self.hosts.len();
        let Some(load) = step.activity.load() else { return Ok(()) };
        let LoadConfig { threads, until, pacing, .. } = load.load_config;
        match &segment.server {
            Some(server) if !server.is_reachable() => {
                let why = "need a server that they can reach; have the one that is started here \
                           listen at an address of this machine (`listen`, not 0.0.0.0), or start \
                           it yourself and name it";
                return no("agents", why.to_owned());
            }
            None if store.servers.is_empty() => {
                let why = format!(
                    "is for stores behind a network, and `{}` runs in this process; leave it out, \
                     or measure a server, e.g. `memcached://HOST`",
                    store.scheme
                );
                return no("agents", why);
            }
            _ => {}
        }
        if (threads as usize) < count {
            let why = format!(
                "are of all agents together, and {threads} cannot be divided among {count}; give \
                 at least one for each"
            );
            return no("threads", why);
        }
        if !load.load_config.cpus.is_empty() {
            let why = "are those of this machine, and agents run on others; leave it out";
            return no("cpus", why.to_owned());
        }
        if load.load_config.steady.is_some() {
            let why = "would open each agent's window at another time; warm up instead";
            return no("steady", why.to_owned());
        }
        let least = workload::BLOCK * count as u64;
        let counted = match (step.phase(), pacing) {
            (Phase::Load, _) => Some(("records", load.workload.records.0)),
            (_, model::Pacing::Closed { .. }) => {
                until.operations.map(|count| ("operations", count))
            }
            _ => None,
        };
        if let Some((key, few)) = counted.filter(|(_, number)| *number < least) {
            let why = format!("{few} are too few for {count} agents; give at least {least}");
            return no(key, why);
        }
        if self.measure.is_some_and(|rate| rate <= 0.0) {
            return no("measure_rate", "must be more than zero".to_owned());
        }
        if self.measure.is_some() && counted.is_some() {
            let why = "needs a window that ends by the clock; give a time, not a number of \
                       operations, and no load";
            return no("measure_rate", why.to_owned());
        }
        Ok(())
    }
}

impl Plan {
    /// The same plan with the load on agents.
    ///
    /// # Errors
    /// A run that agents cannot do: the key that prevents it, and why.
    pub fn with_agents(mut self, agents: AgentsConfig) -> Result<Plan, InvalidOption> {
        let cpus = host::cpus(&host::Root::live()).map_or(1, |order| order.cpus.len() as u32);
        if self.steps().any(|(_, step)| step.activity.trace().is_some()) {
            let why = "is replayed by this machine alone; leave out the agents".to_owned();
            return Err(InvalidOption { key: "trace", why });
        }
        // Runs without a store still happen on this machine.
        let loads_store = |segment: &&mut Segment| {
            segment.steps.iter().all(|step| step.activity.load().is_some())
        };
        for segment in self.segments.iter_mut().filter(loads_store) {
            segment.steps.iter().try_for_each(|step| agents.check(segment, step))?;
            for step in &mut segment.steps {
                agents.settings(&mut step.settings);
            }
            // Data that no step loads is loaded by this machine alone.
            segment.preparing.threads = segment.preparing.threads.min(cpus);
        }
        self.agents = Some(agents);
        Ok(self)
    }
}

/// A study's plan with its table `[agents]`; errors point into the text.
pub(crate) fn with_agents_table(
    plan: Plan,
    source: &StudyText,
    spec: &StudySpec,
    machines: &Spanned<AgentsTable>,
) -> Result<Plan, StudyError> {
    let table = machines.get_ref();
    let names = table.hosts.get_ref().iter().map(String::as_str);
    let hosts = AgentsConfig::hosts(names)
        .map_err(|error| source.at(table.hosts.span(), &error.to_string()))?;
    let secrets = CredentialFiles {
        files: TlsFiles { ca: table.ca.clone(), cert: table.cert.clone(), key: table.key.clone() },
        token_file: table.token_file.clone(),
        token_variable: table
            .token_env
            .clone()
            .unwrap_or_else(|| agents::flags::TOKEN_VARIABLE.to_owned()),
    };
    let measure = table.measure_rate.as_ref();
    let agents = AgentsConfig { hosts, secrets, measure: measure.map(|rate| rate.get_ref().0) };
    plan.with_agents(agents).map_err(|InvalidOption { key, why }| {
        let place = match key {
            "measure_rate" => measure.map(Spanned::span),
            _ => spec.measure.span_of(key).or_else(|| spec.load.span_of(key)),
        };
        source.at(place.unwrap_or_else(|| machines.span()), &format!("{key}: {why}"))
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use model::StopCondition;
    use store::StoreUrl;
    use workload::WorkloadSpec;

    use super::*;
    use crate::server_spec::ServerSpec;

    #[test]
    fn impossible_runs_are_refused_with_the_key() {
        let agents = |count: usize| AgentsConfig {
            hosts: (0..count).map(|n| Address::Tcp { host: format!("h{n}"), port: 9377 }).collect(),
            secrets: CredentialFiles {
                files: TlsFiles::default(),
                token_file: None,
                token_variable: String::new(),
            },
            measure: None,
        };
        let plan = |store: &str, load_config: LoadConfig| {
            let spec = WorkloadSpec::preset("ycsb-c").unwrap();
            let load_configs = [load_config];
            Plan::single(
                (store.parse().unwrap(), None),
                "c",
                spec,
                Phase::Measure,
                &load_configs,
                1,
            )
            .unwrap()
        };
        let server = "memcached://192.0.2.1";
        let refused = |store: &str, load_config: LoadConfig, agents: AgentsConfig| {
            plan(store, load_config).with_agents(agents).unwrap_err().key
        };
        assert_eq!(refused("null", LoadConfig::closed(2), agents(2)), "agents");
        // A server that is started here, at an address that others reach, or not.
        let started = |listen: &str| {
            let wanted = server::launch::ServerSettings::default().with("listen", listen);
            let order = ServerSpec::new("memcached", wanted).unwrap();
            let named: StoreUrl = server.parse().unwrap();
            let store = StoreUrl { servers: Vec::new(), ..named };
            let (spec, load_configs) =
                (WorkloadSpec::preset("ycsb-c").unwrap(), [LoadConfig::closed(2)]);
            Plan::single((store, Some(order)), "c", spec, Phase::Measure, &load_configs, 1)
                .unwrap()
                .with_agents(agents(2))
        };
        assert!(started("192.0.2.7").is_ok());
        for listen in ["127.0.0.1", "0.0.0.0"] {
            let InvalidOption { key, why } = started(listen).unwrap_err();
            assert!(key == "agents" && why.contains("`listen`"), "{key}: {why}");
        }
        assert_eq!(refused(server, LoadConfig::closed(1), agents(2)), "threads");
        let steady = Some((Duration::from_secs(1), 25));
        assert_eq!(
            refused(server, LoadConfig { steady, ..LoadConfig::closed(2) }, agents(2)),
            "steady"
        );
        let until = StopCondition { operations: Some(100), time: None };
        let counted = LoadConfig { until, ..LoadConfig::closed(2) };
        assert_eq!(refused(server, counted.clone(), agents(2)), "operations");
        let measuring = AgentsConfig { measure: Some(100.0), ..agents(1) };
        assert_eq!(refused(server, counted, measuring), "measure_rate");
        let plan = plan(server, LoadConfig::closed(3)).with_agents(agents(2)).unwrap();
        let settings = &plan.segments[0].steps[0].settings;
        assert_eq!(settings["agents"], "h0:9377,h1:9377");
        assert_eq!(settings["agents.count"], "2");
    }

    #[test]
    fn hosts_are_parsed_and_mistakes_named() {
        let hosts = AgentsConfig::hosts(["a", "b:1"]).unwrap();
        assert_eq!(hosts[0].to_string(), "a:9377");
        for (texts, why) in
            [(&["a", "a"][..], "twice"), (&["/x"], "TCP"), (&["a:x"], "port"), (&[], "no agent")]
        {
            let error = AgentsConfig::hosts(texts.iter().copied()).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
