//! Passwords and communities: from a file that others cannot read, or an environment variable.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use model::Unavailable;
use model::secrecy::is_exposed;

/// Longest file.
const MAX_BYTES: u64 = 4096;

/// Where a secret of a probe comes from: its settings `NAME_file` and `NAME_env`.
pub(super) struct Secret<'a> {
    pub probe: &'static str,
    /// What it is, as in `password_file`.
    pub name: &'static str,
    pub file: Option<&'a Path>,
    pub env: Option<&'a str>,
}

impl Secret<'_> {
    /// The secret without the line end behind it; none where no source was named.
    pub(super) fn read(&self) -> Result<Option<String>, Unavailable> {
        let Secret { probe, name, .. } = self;
        match (self.file, self.env) {
            (Some(path), _) => self.read_file(path).map(Some),
            (None, Some(variable)) => std::env::var(variable).map(Some).map_err(|_| {
                Unavailable::new(
                    format!("the environment variable {variable} holds no {name}"),
                    format!("set {variable}, or name a file in `{name}_file` of the probe {probe}"),
                )
            }),
            (None, None) => Ok(None),
        }
    }

    fn read_file(&self, path: &Path) -> Result<String, Unavailable> {
        let Secret { probe, name, .. } = self;
        let shown = path.display();
        let unreadable = |error: io::Error| {
            Unavailable::new(
                format!("the {name} file {shown} could not be read: {error}"),
                format!(
                    "name a file that this user can read in `{name}_file` of the probe {probe}"
                ),
            )
        };
        let file = File::open(path).map_err(unreadable)?;
        if is_exposed(file.metadata().map_err(unreadable)?.mode()) {
            return Err(Unavailable::new(
                format!("everyone can read the {name} file {shown}"),
                format!("run `chmod go= {shown}`"),
            ));
        }
        let mut text = String::new();
        file.take(MAX_BYTES).read_to_string(&mut text).map_err(unreadable)?;
        Ok(text.trim_end_matches(['\r', '\n']).to_owned())
    }
}
