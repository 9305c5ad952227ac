//! Which Redfish service is read, and how it is reached.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::probe::energy::settings::{ReadFlag, SettingError, SourceSettings};

/// A Redfish service, and the chassis whose power is read.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RedfishSettings {
    /// `https://ADDRESS`, or `https://ADDRESS/redfish/v1/Chassis/ID` where there are several.
    pub url: String,
    /// The user, by basic authentication; without one there is no login.
    #[serde(default)]
    pub user: Option<String>,
    /// The file with the password, which others cannot read.
    #[serde(default)]
    pub password_file: Option<PathBuf>,
    /// The environment variable with the password.
    #[serde(default)]
    pub password_env: Option<String>,
    /// The PEM file of the authorities that sign its certificate; without one the system's.
    #[serde(default)]
    pub ca: Option<PathBuf>,
}

const SCHEME: &str = "https://";

impl RedfishSettings {
    /// The service without a path.
    pub(super) fn origin(&self) -> &str {
        let end = self.url[SCHEME.len()..].find('/').map_or(self.url.len(), |at| SCHEME.len() + at);
        &self.url[..end]
    }

    /// The path of the chassis, where one was named.
    pub(super) fn chassis(&self) -> Option<&str> {
        let path = self.url[self.origin().len()..].trim_end_matches('/');
        (!path.is_empty()).then_some(path)
    }
}

impl SourceSettings for RedfishSettings {
    /// `URL?user=NAME&password_file=FILE&ca=FILE`.
    const FLAG: Option<ReadFlag<Self>> = Some(|value| {
        let (url, options) = value.split_once('?').unwrap_or((value, ""));
        let mut settings = RedfishSettings { url: url.to_owned(), ..RedfishSettings::default() };
        for option in options.split('&').filter(|option| !option.is_empty()) {
            let (key, text) = option.split_once('=').unwrap_or((option, ""));
            match key {
                "user" => settings.user = Some(text.to_owned()),
                "password_file" => settings.password_file = Some(text.into()),
                "password_env" => settings.password_env = Some(text.to_owned()),
                "ca" => settings.ca = Some(text.into()),
                "password" => {
                    let expected = "password_file or password_env: a password on a command line is \
                                    shown to every user";
                    return Err(SettingError::new("redfish", "password", expected));
                }
                other => {
                    let expected = "user, password_file, password_env or ca";
                    return Err(SettingError::new("redfish", other, expected));
                }
            }
        }
        Ok(settings)
    });
    const TAKES_REST: bool = true;

    fn check(&self) -> Result<(), SettingError> {
        let Some(address) = self.url.strip_prefix(SCHEME).filter(|rest| !rest.is_empty()) else {
            return Err(SettingError::new("redfish.url", &self.url, "an https:// address"));
        };
        let host = address.split('/').next().unwrap_or_default();
        if host.is_empty() || host.contains('@') {
            // It is kept in results files and shown.
            let expected = "an address without a user and a password: it is stored with the runs";
            return Err(SettingError::new("redfish.url", model::masked(&self.url), expected));
        }
        if address.contains(['?', '#', ' ']) {
            let expected = "an address and at most the path of a chassis";
            return Err(SettingError::new("redfish.url", &self.url, expected));
        }
        match (&self.user, &self.password_file, &self.password_env) {
            (None, None, None) | (Some(_), Some(_), None) | (Some(_), None, Some(_)) => Ok(()),
            (Some(user), None, None) => {
                let expected = "a login without password_file or password_env beside it";
                Err(SettingError::new("redfish.user", user, expected))
            }
            (Some(_), Some(file), Some(_)) => {
                let expected = "the only source of the password; leave out password_env";
                Err(SettingError::new("redfish.password_file", file.display(), expected))
            }
            (None, ..) => {
                let expected = "given: a password belongs to a user";
                Err(SettingError::new("redfish.user", "", expected))
            }
        }
    }
}
