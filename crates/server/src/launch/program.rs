use std::path::Path;

use model::Address;

use super::cluster::ClusterLayout;
use super::error::{LaunchError, SettingError};
use super::settings::{CommonSettings, GivenSettings, ServerSetting, ServerSettings};

/// The address and folder of a server.
#[derive(Debug, Clone, Copy)]
pub struct LaunchContext<'a> {
    /// A numeric host, so that no name needs to be looked up; or a unix socket.
    pub listen: &'a Address,
    /// Its own folder, removed after its end.
    pub folder: &'a Path,
}

/// A server program that kvmeter can start: one file each, listed in
/// [`PROGRAMS`](super::PROGRAMS).
pub trait Program: Sync + std::fmt::Debug {
    /// The name in a study: `[server.NAME]`.
    fn name(&self) -> &'static str;
    /// The executable, searched on the PATH.
    fn binary(&self) -> &'static str;
    /// The Debian package that contains it.
    fn package(&self) -> &'static str;
    fn settings(&self) -> &'static [ServerSetting];
    /// The argument that makes it print its version and end.
    fn version_flag(&self) -> &'static str;
    /// Name and version from its output: `memcached 1.6.18`.
    fn version(&self, printed: &str) -> Option<String>;
    /// The argument list before the user's own `arguments`.
    ///
    /// # Errors
    /// A setting with an invalid value.
    fn arguments(
        &self,
        given: &GivenSettings<'_>,
        context: LaunchContext<'_>,
    ) -> Result<Vec<String>, SettingError>;
    /// The limit of open files that it sets for itself and requires: a simulator around it allows
    /// only its own.
    ///
    /// # Errors
    /// A setting with an invalid value.
    fn open_files(&self, _: &GivenSettings<'_>) -> Result<Option<u32>, SettingError> {
        Ok(None)
    }
    /// The cluster of which each process is a node; None of single servers.
    ///
    /// # Errors
    /// A setting with an invalid value.
    fn cluster(&self, _: &GivenSettings<'_>) -> Result<Option<ClusterLayout>, SettingError> {
        Ok(None)
    }
    /// Arguments with which it answers other machines, where it does not by itself.
    fn open_to_others(&self) -> &'static [&'static str] {
        &[]
    }
    /// Refuses arguments that take the server out of kvmeter's control.
    ///
    /// # Errors
    /// The argument, and what to do instead.
    fn check(&self, arguments: &[String]) -> Result<(), SettingError>;
    /// The request that probes whether it answers.
    fn probe_request(&self) -> &'static [u8];
    /// Whether the answer reports that it is still loading.
    fn is_loading(&self, answer: &[u8]) -> bool;
    /// The setting that a running server did not accept as given, from its output.
    fn unmet(&self, given: &GivenSettings<'_>, words: &str) -> Option<&'static str>;
    /// The remedy, if the last output of a server that did not start is known.
    fn remedy(&self, words: &str) -> Option<&'static str>;
}

/// Remedies that all programs share.
pub(super) fn common_remedy(words: &str) -> Option<&'static str> {
    let known = [
        ("ddress already in use", "leave out `port`, and kvmeter takes a free one"),
        ("ermission denied", "choose a `port` above 1023, or a `socket` in a folder of this user"),
        ("annot allocate memory", "give it less `memory`"),
    ];
    known.iter().find(|(sign, _)| words.contains(sign)).map(|(_, way)| *way)
}

/// Checks settings without starting anything; returns the cluster that is to be formed.
///
/// # Errors
/// An invalid setting, with its key.
pub fn check(
    program: &dyn Program,
    settings: &ServerSettings,
) -> Result<Option<ClusterLayout>, LaunchError> {
    let given = GivenSettings::new(program.name(), program.settings(), settings)?;
    let common = CommonSettings::read(&given)?;
    program.check(&common.arguments)?;
    // The address does not affect which values a setting takes.
    let listen = Address::Unix("/".into());
    program.arguments(&given, LaunchContext { listen: &listen, folder: Path::new("/") })?;
    Ok(program.cluster(&given)?)
}
