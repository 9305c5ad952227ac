use std::fmt;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use model::secrecy::is_exposed;
use thiserror::Error;

/// Credentials; all of them are optional for a server that requires no login.
#[derive(Debug, Clone, Default)]
pub struct Login {
    /// Redis's default user if none is given; memcached has none.
    pub user: Option<String>,
    pub password: Option<Secret>,
    /// Redis's `SELECT`; memcached has only 0.
    pub database: u32,
}

/// A password. It is never shown and never taken from a command line, which other users can read.
#[derive(Clone)]
pub struct Secret(String);

/// Why a password cannot be read.
#[derive(Debug, Error)]
pub enum SecretError {
    #[error("the environment variable `{name}` is not set; set it to the password")]
    Unset { name: String },
    #[error("cannot read the password from `{}`: {source}", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error(
        "everyone can read the password file `{}`; run `chmod go= {}`",
        path.display(), path.display()
    )]
    Exposed { path: PathBuf },
    #[error("the password from {origin} {fault}; it is one line of text")]
    NoPassword { origin: String, fault: &'static str },
}

/// The longest password; a longer file is no password file.
const LONGEST: u64 = 4096;

impl Secret {
    /// The password in the environment variable `name`, without a newline at its end.
    ///
    /// # Errors
    /// The variable is not set, or contains no password.
    pub fn from_env(name: &str) -> Result<Secret, SecretError> {
        let value =
            std::env::var_os(name).ok_or_else(|| SecretError::Unset { name: name.into() })?;
        Secret::take(value.into_encoded_bytes(), || format!("the environment variable `{name}`"))
    }

    /// The password in a file, without a newline at its end.
    ///
    /// # Errors
    /// It cannot be read, everyone can read it, or it holds no password.
    pub fn from_file(path: &Path) -> Result<Secret, SecretError> {
        let unreadable = |source| SecretError::Unreadable { path: path.into(), source };
        let file = File::open(path).map_err(unreadable)?;
        let metadata = file.metadata().map_err(unreadable)?;
        if metadata.is_file() && is_exposed(metadata.mode()) {
            return Err(SecretError::Exposed { path: path.into() });
        }
        let mut bytes = Vec::new();
        file.take(LONGEST + 1).read_to_end(&mut bytes).map_err(unreadable)?;
        Secret::take(bytes, || format!("`{}`", path.display()))
    }

    fn take(mut bytes: Vec<u8>, origin: impl Fn() -> String) -> Result<Secret, SecretError> {
        let fault = |fault| SecretError::NoPassword { origin: origin(), fault };
        if bytes.last() == Some(&b'\n') {
            bytes.pop();
            if bytes.last() == Some(&b'\r') {
                bytes.pop();
            }
        }
        let text = String::from_utf8(bytes).map_err(|_| fault("is not UTF-8"))?;
        match text.as_str() {
            "" => Err(fault("is empty")),
            long if long.len() as u64 > LONGEST => Err(fault("is longer than 4096 bytes")),
            lines if lines.contains(|c: char| c.is_control()) => {
                Err(fault("contains line ends or other control characters"))
            }
            _ => Ok(Secret(text)),
        }
    }

    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(not shown)")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(not shown)")
    }
}
