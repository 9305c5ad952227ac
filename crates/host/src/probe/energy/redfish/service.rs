//! Requests to a Redfish service: HTTPS with its certificate checked, within limits of time and size.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use model::Unavailable;
use serde_json::Value;
use tls::{Tls, TlsFailure};
use ureq::Agent;
use ureq::tls::{Certificate, RootCerts, TlsConfig, TlsProvider};

use super::settings::RedfishSettings;
use crate::probe::energy::secret::Secret;

/// Longest answer: a chassis with all its sensors stays far below.
const MAX_ANSWER: u64 = 1 << 20;

pub(super) struct Service {
    agent: Agent,
    origin: String,
    /// The header `Authorization`.
    login: Option<String>,
}

/// Why a request has no answer.
#[derive(Debug)]
pub(super) enum Failure {
    /// The service answered with this status; its address.
    Status(u16, String),
    Other(Unavailable),
}

impl From<Failure> for Unavailable {
    fn from(failure: Failure) -> Unavailable {
        match failure {
            Failure::Other(why) => why,
            Failure::Status(401 | 403, url) => Unavailable::new(
                format!("{url} refuses the login"),
                "give a user of the controller with the right to log in and read: `user` and \
                 `password_file` of the probe redfish",
            ),
            Failure::Status(status, url) => Unavailable::new(
                format!("{url} answered with HTTP status {status}"),
                "name the path of a chassis that is there: `/redfish/v1/Chassis/ID`",
            ),
        }
    }
}

impl Service {
    /// Reads the files that the settings name; it sends nothing.
    pub(super) fn new(settings: &RedfishSettings) -> Result<Service, Unavailable> {
        let tls = Tls { ca: settings.ca.clone(), ..Tls::default() };
        let trusted = tls.trusted().map_err(|error| {
            Unavailable::new(format!("redfish: {error}"), "change `ca` of the probe redfish")
        })?;
        let trusted: Vec<Certificate<'static>> = trusted
            .iter()
            .map(|certificate| Certificate::from_der(certificate).to_owned())
            .collect();
        let tls = TlsConfig::builder()
            .provider(TlsProvider::Rustls)
            .root_certs(RootCerts::new_with_certs(&trusted))
            .unversioned_rustls_crypto_provider(tls::provider())
            .build();
        // Never through a proxy, and never to another address than the one that is trusted.
        let agent = Agent::config_builder()
            .tls_config(tls)
            .https_only(true)
            .proxy(None)
            .max_redirects(0)
            .http_status_as_error(false)
            .build();
        let login = login(settings)?;
        Ok(Service { agent: agent.into(), origin: settings.origin().to_owned(), login })
    }

    pub(super) fn origin(&self) -> &str {
        &self.origin
    }

    /// The JSON of a resource. `limit` holds for name, connection, handshake and answer in all.
    pub(super) fn get(&self, path: &str, limit: Duration) -> Result<Value, Failure> {
        let url = format!("{}{path}", self.origin);
        let mut request = self.agent.get(&url).header("Accept", "application/json");
        if let Some(login) = &self.login {
            request = request.header("Authorization", login);
        }
        let request = request.config().timeout_global(Some(limit)).build();
        let mut answer = request.call().map_err(|error| failed(&url, &error))?;
        let status = answer.status().as_u16();
        if status != 200 {
            return Err(Failure::Status(status, url));
        }
        let text = answer.body_mut().with_config().limit(MAX_ANSWER).read_to_string();
        let text = text.map_err(|error| failed(&url, &error))?;
        serde_json::from_str(&text).map_err(|error| {
            let start: String = text.trim().chars().take(60).collect();
            Failure::Other(Unavailable::new(
                format!("{url} answered `{start}`, which is not JSON ({error})"),
                "name the address of a Redfish service",
            ))
        })
    }
}

fn failed(url: &str, error: &ureq::Error) -> Failure {
    let tls = match error {
        ureq::Error::Io(error) => TlsFailure::inside(error),
        ureq::Error::Rustls(error) => Some(TlsFailure::of(error.clone())),
        _ => None,
    };
    Failure::Other(match tls {
        Some(why) => Unavailable::new(
            format!("{url}: {why}"),
            "trust its signer with `ca`, or give the controller a certificate for its name",
        ),
        None => Unavailable::new(
            format!("{url} did not answer: {error}"),
            "open the address from this machine (`curl`) until it answers",
        ),
    })
}

/// The header of basic authentication (RFC 7617).
fn login(settings: &RedfishSettings) -> Result<Option<String>, Unavailable> {
    let Some(user) = &settings.user else { return Ok(None) };
    let secret = Secret {
        probe: "redfish",
        name: "password",
        file: settings.password_file.as_deref(),
        env: settings.password_env.as_deref(),
    };
    let password = secret.read()?.unwrap_or_default();
    Ok(Some(format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))))
}
