//! The client machines that generate the load instead of this one.


use std::path::PathBuf;

use agents::{AgentError, Credentials, TlsFiles, Token};
use model::{Address, Phase, Rate, RunSettings};
use toml::Spanned;

use crate::error::StudyError;
use crate::load_config::LoadConfig;
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

    pub(crate) fn settings(&self, settings: &mut RunSettings) {
        let hosts: Vec<String> = self.hosts.iter().map(Address::to_string).collect();
        settings.insert("agents".to_owned(), hosts.join(","));
        settings.insert("agents.count".to_owned(), hosts.len().to_string());
        if let Some(rate) = self.measure {
            settings.insert("agents.measure_rate".to_owned(), Rate(rate).to_string());
            settings.insert("measured_by".to_owned(), "coordinator".to_owned());
        }
    }

    /// Whether these agents can run a step; otherwise the key that prevents it, and why.
    fn check(&self, segment: &Segment, step: &Step) -> Result<(), (&'static str, String)> {
        let store = &segment.store;
        let count = self.hosts.len();
        let LoadConfig { threads, until, pacing, .. } = step.load_config;
        match &segment.server {
            Some(server) if !server.is_reachable() => {
                let why = "need a server that they can reach; have the one that is started here \
                           listen at an address of this machine (`listen`, not 0.0.0.0), or start \
                           it yourself and name it";
                return Err(("agents", why.to_owned()));
            }
            None if store.servers.is_empty() => {
                let why = format!(
                    "is for stores behind a network, and `{}` runs in this process; leave it out, \
                     or measure a server, e.g. `memcached://HOST`",
                    store.scheme
                );
                return Err(("agents", why));
            }
            _ => {}
        }
        if (threads as usize) < count {
            let why = format!(
                "are of all agents together, and {threads} cannot be divided among {count}; give \
                 at least one for each"
            );
            return Err(("threads", why));
        }
        if !step.load_config.cpus.is_empty() {
            let why = "are those of this machine, and agents run on others; leave it out";
            return Err(("cpus", why.to_owned()));
        }
        if step.load_config.steady.is_some() {
            let why = "would open each agent's window at another time; warm up instead";
            return Err(("steady", why.to_owned()));
        }
        let least = workload::BLOCK * count as u64;
        let counted = match (step.phase, pacing) {
            (Phase::Load, _) => Some(("records", step.workload.records.0)),
            (_, model::Pacing::Closed { .. }) => {
                until.operations.map(|count| ("operations", count))
            }
            _ => None,
        };
        if let Some((key, few)) = counted.filter(|(_, number)| *number < least) {
            let why = format!("{few} are too few for {count} agents; give at least {least}");
            return Err((key, why));
        }
        if self.measure.is_some_and(|rate| rate <= 0.0) {
            return Err(("measure_rate", "must be more than zero".to_owned()));
        }
        if self.measure.is_some() && counted.is_some() {
            let why = "needs a window that ends by the clock; give a time, not a number of \
                       operations, and no load";
            return Err(("measure_rate", why.to_owned()));
        }
        Ok(())
    }
}

impl Plan {
    /// The same plan with the load on agents.
    ///
    /// # Errors
    /// A run that agents cannot do: the key that prevents it, and why.
    pub fn with_agents(mut self, agents: AgentsConfig) -> Result<Plan, (&'static str, String)> {
        let cpus = host::cpus(&host::Root::live()).map_or(1, |order| order.cpus.len() as u32);
        if self.steps().any(|(_, step)| step.trace.is_some()) {
            let why = "is replayed by this machine alone; leave out the agents".to_owned();
            return Err(("trace", why));
        }
        // Activities still run on this machine.
        let loads_store =
            |segment: &&mut Segment| segment.steps.iter().all(|step| step.activity.is_none());
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
    plan.with_agents(agents).map_err(|(key, why)| {
        let place = match key {
            "measure_rate" => measure.map(Spanned::span),
            _ => spec.measure.span_of(key).or_else(|| spec.load.span_of(key)),
        };
        source.at(place.unwrap_or_else(|| machines.span()), &format!("{key}: {why}"))
    })
}
