//! A networked store as its URL describes it, before anything is connected.

use std::path::PathBuf;
use std::time::Duration;

use model::Address;

use crate::wire::{Login, Protocol, Secret};
use crate::{MachineResource, OptionInfo, StoreError, StoreOptions, StoreUrl, on_off};

/// Servers that speak one protocol, and how to connect to them.
#[derive(Debug, Clone)]
pub struct Remote {
    pub scheme: String,
    pub protocol: Protocol,
    pub servers: Vec<Address>,
    /// None: plain text.
    pub tls: Option<TlsFiles>,
    pub login: Login,
    /// How long a connection or an answer may take.
    pub timeout: Duration,
    /// The servers are nodes of a cluster, of which the others are found.
    pub cluster: Option<ReplicaReads>,
    /// A server that is lost gives its keys to the others, where several share them.
    pub eject: bool,
    /// The servers may be emptied where a study asks for it.
    pub may_flush: bool,
    /// The options in force, with the defaults that were not given; no secret is among them.
    pub options: Vec<(String, String)>,
}

/// Which reads of a cluster go to replicas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReplicaReads {
    #[default]
    Never,
    /// All, while there is a replica.
    Prefer,
    /// All; a primary without a replica is refused.
    Only,
}

/// The files and settings of TLS.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsFiles {
    /// Certificates that are trusted, PEM; the system's without it.
    pub ca: Option<PathBuf>,
    /// The client's own certificate and key, PEM.
    pub cert: Option<PathBuf>,
    pub key: Option<PathBuf>,
    /// The name that the server's certificate must carry, instead of the host's.
    pub server_name: Option<String>,
    /// Any certificate is accepted.
    pub any_certificate: bool,
}

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(5);

/// The option that accepts any certificate; a run records it.
pub const ANY_CERTIFICATE: &str = "any_certificate";

/// Options that all networked stores take.
const COMMON: [OptionInfo; 11] = [
    OptionInfo::new("tls", "off", "connect through TLS"),
    OptionInfo::new("ca", "the system's", "PEM file of the authorities that are trusted")
        .naming(MachineResource::File),
    OptionInfo::new("cert", "none", "PEM file of the client's certificate")
        .naming(MachineResource::File),
    OptionInfo::new("key", "none", "PEM file of the certificate's key")
        .naming(MachineResource::File),
    OptionInfo::new("server_name", "the host", "name that the server's certificate must carry"),
    OptionInfo::new(ANY_CERTIFICATE, "off", "accept any certificate; for tests only"),
    OptionInfo::new("user", "none", "user to log in as"),
    OptionInfo::new("password_env", "none", "environment variable that holds the password")
        .naming(MachineResource::Variable),
    OptionInfo::new("password_file", "none", "file that holds the password")
        .naming(MachineResource::File),
    OptionInfo::new("timeout", "5s", "longest wait for a connection or an answer"),
    OptionInfo::new("clear", "refuse", "`flush` lets a study delete all data of the server"),
];

/// A store's own options followed by those of all networked stores. `ALL` must be the sum of both
/// numbers, or one less for a store that has no `clear`.
pub(crate) const fn options<const OWN: usize, const ALL: usize>(
    own: [OptionInfo; OWN],
) -> [OptionInfo; ALL] {
    assert!(ALL == OWN + COMMON.len() || ALL + 1 == OWN + COMMON.len());
    let mut all = [COMMON[0]; ALL];
    let mut at = 0;
    while at < ALL {
        all[at] = if at < OWN { own[at] } else { COMMON[at - OWN] };
        at += 1;
    }
    all
}

/// How servers are reached and logged in to, as the options say that all networked stores share.
#[derive(Debug, Clone)]
pub(crate) struct Access {
    /// None: plain text.
    pub(crate) tls: Option<TlsFiles>,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<Secret>,
    /// How long a connection or an answer may take.
    pub(crate) timeout: Duration,
    /// The options in force; no secret is among them.
    pub(crate) options: Vec<(String, String)>,
}

impl Access {
    pub(crate) fn read(given: &StoreOptions<'_>) -> Result<Access, StoreError> {
        let path = |name| given.text(name).map(PathBuf::from);
        let wants_tls = given.flag("tls")?.unwrap_or(false);
        let files = TlsFiles {
            ca: path("ca"),
            cert: path("cert"),
            key: path("key"),
            server_name: given.text("server_name").map(str::to_owned),
            any_certificate: given.flag(ANY_CERTIFICATE)?.unwrap_or(false),
        };
        if !wants_tls && files != TlsFiles::default() {
            let words = "`ca`, `cert`, `key`, `server_name` and `any_certificate` belong to TLS; \
                         add `tls=on`";
            return Err(StoreError::Request(words.to_owned()));
        }
        if files.cert.is_some() != files.key.is_some() {
            let words = "a client's certificate needs its key: give both `cert` and `key`";
            return Err(StoreError::Request(words.to_owned()));
        }
        let password = match (given.text("password_env"), given.text("password_file")) {
            (Some(_), Some(_)) => {
                let words =
                    "give the password by `password_env` or by `password_file`, not by both";
                return Err(StoreError::Request(words.to_owned()));
            }
            (Some(variable), None) => Some(Secret::from_env(variable).map_err(request)?),
            (None, Some(file)) => Some(Secret::from_file(file.as_ref()).map_err(request)?),
            (None, None) => None,
        };
        let user = given.text("user").map(str::to_owned);
        if user.is_some() && password.is_none() {
            let words = "`user` needs a password: add `password_env` or `password_file`";
            return Err(StoreError::Request(words.to_owned()));
        }
        let timeout = given.span("timeout")?.unwrap_or(DEFAULT_TIMEOUT);
        let mut options = vec![
            ("tls".to_owned(), on_off(wants_tls)),
            ("timeout".to_owned(), model::Span(timeout).to_string()),
        ];
        if files.any_certificate {
            options.push((ANY_CERTIFICATE.to_owned(), on_off(true)));
        }
        Ok(Access { tls: wants_tls.then_some(files), user, password, timeout, options })
    }
}

impl Remote {
    /// Reads what all networked stores have in common.
    pub(crate) fn read(
        url: &StoreUrl,
        given: &StoreOptions<'_>,
        protocol: Protocol,
        database: u32,
    ) -> Result<Remote, StoreError> {
        let Access { tls, user, password, timeout, mut options } = Access::read(given)?;
        let name = protocol.name().replace("memcached ", "").to_lowercase();
        options.insert(0, ("protocol".to_owned(), name));
        let clear = [("refuse", false), ("flush", true)];
        Ok(Remote {
            scheme: url.scheme.clone(),
            protocol,
            servers: url.servers.clone(),
            tls,
            login: Login { user, password, database },
            cluster: None,
            eject: false,
            timeout,
            may_flush: given.choice("clear", &clear)?.unwrap_or(false),
            options,
        })
    }
}

fn request(error: impl std::fmt::Display) -> StoreError {
    StoreError::Request(error.to_string())
}
