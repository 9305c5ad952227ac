//! The browser in which pages are tested.

use std::env;
use std::path::PathBuf;

/// `CHROMIUM`, or the first of its usual names that is on the path.
pub fn chromium() -> PathBuf {
    if let Some(path) = env::var_os("CHROMIUM") {
        return path.into();
    }
    let path = env::var_os("PATH").unwrap_or_default();
    ["chromium", "chromium-browser", "google-chrome"]
        .iter()
        .flat_map(|name| env::split_paths(&path).map(move |folder| folder.join(name)))
        .find(|file| file.is_file())
        .expect(
            "no Chromium here: `make test` installs it, or name one in the variable CHROMIUM \
             (looked for chromium, chromium-browser, google-chrome)",
        )
}
