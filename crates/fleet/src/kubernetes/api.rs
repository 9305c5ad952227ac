//! The API server: how it is reached, and what its errors mean.

use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use model::text::shell_word;
use tokio::runtime::{Builder, Runtime};

use super::group::{ClusterPlace, check_name};
use crate::error::FleetError;
use crate::target::request;

/// Time for an answer.
const LIMIT: Duration = Duration::from_secs(30);
const CONNECT: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(200);
/// Since this minor version the server can end a command's standard input alone.
const OLDEST: u32 = 30;

/// A connection to one namespace of a cluster.
pub(super) struct Cluster {
    runtime: Runtime,
    pub client: Client,
    pub namespace: String,
    /// Its address.
    server: String,
    /// Options of `kubectl` for this namespace.
    options: String,
    /// Jobs that could not be deleted, with the reason and the way out.
    left: Mutex<Vec<String>>,
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster").field("server", &self.server).finish_non_exhaustive()
    }
}

impl Cluster {
    pub fn connect(place: &ClusterPlace) -> Result<Cluster, FleetError> {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime
            .map_err(|error| FleetError::Here(format!("kubernetes: no runtime: {error}")))?;
        let mut config = runtime.block_on(configuration(place))?;
        if let Some(namespace) = &place.namespace {
            config.default_namespace.clone_from(namespace);
        }
        check_name("namespace", &config.default_namespace)?;
        config.connect_timeout = Some(CONNECT);
        // A server that is away is waited for here, with a limit.
        config.default_retry = false;
        let (server, namespace) =
            (config.cluster_url.to_string(), config.default_namespace.clone());
        let client = runtime.block_on(async { Client::try_from(config) }).map_err(|error| {
            request(format!(
                "kubernetes: {server}: the configuration cannot be used: {}",
                causes(&error)
            ))
        })?;
        let options = kubectl_options(place, &namespace);
        Ok(Cluster { runtime, client, namespace, server, options, left: Mutex::default() })
    }

    /// Keeps that a Job could not be deleted.
    pub fn note_left(&self, job: &str, why: &str) {
        let words = format!(
            "kubernetes: the Job {job} is not deleted: {why}; its pods end by themselves, and the \
             cluster deletes it then; or delete it: `kubectl delete job {job}{}`",
            self.options
        );
        self.left.lock().unwrap_or_else(PoisonError::into_inner).push(words);
    }

    /// What is left of this run in the cluster, once.
    pub fn take_left(&self) -> Vec<String> {
        std::mem::take(&mut *self.left.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The answer to a question, within a limit.
    pub fn ask<T>(
        &self,
        question: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, FleetError> {
        self.answer(question)?.map_err(|status| self.refused(&status))
    }

    /// Like `ask`, with what the server refuses apart.
    pub fn answer<T>(
        &self,
        question: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<Result<T, kube::core::Status>, FleetError> {
        let limited = async { tokio::time::timeout(LIMIT, question).await };
        match self.runtime.block_on(limited) {
            Ok(Ok(answer)) => Ok(Ok(answer)),
            Ok(Err(kube::Error::Api(status))) => Ok(Err(*status)),
            Ok(Err(error)) => Err(self.unreachable(&causes(&error))),
            Err(_) => Err(self.unreachable(&format!("no answer within {} s", LIMIT.as_secs()))),
        }
    }

    /// Like `ask`, of a server that is away for no longer than `patience`.
    pub fn ask_within<T, F: Future<Output = Result<T, kube::Error>>>(
        &self,
        patience: Duration,
        question: impl Fn() -> F,
    ) -> Result<T, FleetError> {
        self.answer_within(patience, question)?.map_err(|status| self.refused(&status))
    }

    /// Like `answer`, of a server that is away for no longer than `patience`.
    pub fn answer_within<T, F: Future<Output = Result<T, kube::Error>>>(
        &self,
        patience: Duration,
        question: impl Fn() -> F,
    ) -> Result<Result<T, kube::core::Status>, FleetError> {
        let begin = Instant::now();
        loop {
            match self.answer(question()) {
                Err(_) if begin.elapsed() < patience => thread::sleep(POLL),
                answer => return answer,
            }
        }
    }

    pub fn refused(&self, status: &kube::core::Status) -> FleetError {
        let (namespace, why) = (&self.namespace, &status.message);
        match status.code {
            401 => request(format!(
                "kubernetes: {} does not accept these credentials: {why}; log in again, or choose \
                 another context=NAME",
                self.server
            )),
            404 if why.contains(&format!("namespaces \"{namespace}\"")) => request(format!(
                "kubernetes: there is no namespace `{namespace}`; create it, or name another one \
                 with namespace=NAME"
            )),
            _ => request(format!("kubernetes: the API server refuses it: {why}")),
        }
    }

    fn unreachable(&self, why: &str) -> FleetError {
        request(format!(
            "kubernetes: {} is not reached: {}; see `kubectl cluster-info`",
            self.server,
            why.trim_start_matches("ServiceError: ")
        ))
    }

    /// Refuses servers that cannot connect commands.
    pub fn check_version(&self) -> Result<(), FleetError> {
        let version = self.ask(self.client.apiserver_version())?;
        let digits: String = version.minor.chars().take_while(char::is_ascii_digit).collect();
        if digits.parse().is_ok_and(|minor: u32| minor < OLDEST) && version.major == "1" {
            return Err(request(format!(
                "kubernetes: {} has version {}; at least 1.{OLDEST} is needed",
                self.server, version.git_version
            )));
        }
        Ok(())
    }
}

fn kubectl_options(place: &ClusterPlace, namespace: &str) -> String {
    let given = [
        ("namespace", Some(namespace)),
        ("context", place.context.as_deref()),
        ("kubeconfig", place.kubeconfig.as_deref()),
    ];
    let option = |(name, value): (&str, Option<&str>)| {
        value.map_or_else(String::new, |value| format!(" --{name}={}", shell_word(value)))
    };
    given.into_iter().map(option).collect()
}

/// The configuration that is given, else the user's own, else that of the pod in which this runs.
pub(super) async fn configuration(place: &ClusterPlace) -> Result<Config, FleetError> {
    let options = KubeConfigOptions { context: place.context.clone(), ..Default::default() };
    let found = match &place.kubeconfig {
        Some(file) => match Kubeconfig::read_from(file) {
            Ok(read) => {
                Config::from_custom_kubeconfig(read, &options).await.map_err(|error| causes(&error))
            }
            Err(error) => Err(causes(&error)),
        }
        .map_err(|why| format!("{file}: {why}")),
        None if place.context.is_some() => {
            Config::from_kubeconfig(&options).await.map_err(|error| causes(&error))
        }
        None => Config::infer().await.map_err(|error| causes(&error)),
    };
    found.map_err(|why| {
        // Further lines quote the file, which has secrets.
        let why = why.lines().next().unwrap_or_default();
        request(format!(
            "kubernetes: no cluster is configured: {why}; name a file with kubeconfig=FILE or the \
             variable KUBECONFIG"
        ))
    })
}

/// An error with what caused it; texts that repeat their cause are not repeated.
pub(super) fn causes(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let text = cause.to_string();
        if !words.contains(&text) {
            words.push_str(": ");
            words.push_str(&text);
        }
        next = cause.source();
    }
    words
}
