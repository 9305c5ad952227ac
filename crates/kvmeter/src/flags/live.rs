//! Flags of the page that shows a measurement while it runs.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use live::{Feed, ListenAddress, LiveConfig, LiveServer, RunEvent, Title, ViewToken};

use crate::exit::{ExitOutcome, request};
use crate::output::write_stderr;

const WATCHING: &str = "Watching";
const TOKEN_FILE: &str = "--live-token-file";

#[derive(Debug, Args)]
pub struct LiveFlags {
    /// Show the measurement on a page while it runs, and as metrics for Prometheus: PORT or
    /// ADDRESS:PORT [default: a free port of 127.0.0.1]
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, require_equals = true,
        default_missing_value = "127.0.0.1:0", help_heading = WATCHING)]
    live: Option<ListenAddress>,
    /// File with the token that viewers present as a password; an address that other machines reach
    /// needs one
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "live",
        help_heading = WATCHING)]
    live_token_file: Option<PathBuf>,
}

/// How the address is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UrlFormat {
    Text,
    /// A line of JSON, among those of runs.
    Json,
}

/// The page of a command, if it has one.
pub struct LivePage(Option<LiveServer>);

impl LiveFlags {
    /// Begins to serve, if that is requested, and shows where.
    ///
    /// # Errors
    /// The address is taken or open to others without a token, or the token's file is no good.
    pub fn start(&self, command: &str, name: &str, format: UrlFormat) -> anyhow::Result<LivePage> {
        let Some(listen) = self.live else { return Ok(LivePage(None)) };
        let token = self.live_token_file.as_deref().map(ViewToken::from_file).transpose();
        let token = token.map_err(|error| request(format!("{TOKEN_FILE} {error}")))?;
        if !listen.is_loopback() && token.is_none() {
            return Err(request(format!(
                "--live={}: other machines can reach this address; name a file with a token \
                 ({TOKEN_FILE}), or take an address of loopback such as 127.0.0.1",
                listen.0
            )));
        }
        let title = Title {
            command: command.to_owned(),
            name: name.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        let config = LiveConfig { listen, token, title, style: report::html::STYLE };
        let server =
            LiveServer::start(config).map_err(|error| request(format!("--live: {error}")))?;
        let url = server.url();
        match (format, serde_json::to_string(&RunEvent::Live { url: url.clone() })) {
            (UrlFormat::Json, Ok(line)) => write_stderr(&line),
            _ => write_stderr(&format!("live     {url}")),
        }
        Ok(LivePage(Some(server)))
    }
}

impl LivePage {
    pub const fn none() -> LivePage {
        LivePage(None)
    }

    /// What feeds it.
    pub fn feed(&self) -> Option<Feed> {
        self.0.as_ref().map(LiveServer::feed)
    }

    /// Shows viewers how the command ended, and stops serving.
    pub fn end(self, ended: &anyhow::Result<ExitOutcome>) {
        let how = match ended {
            Ok(ExitOutcome::Done) => "done",
            Ok(_) => "ended: it was stopped, or a result is invalid",
            Err(_) => "failed: the terminal says why",
        };
        if let Some(server) = self.0 {
            server.end(how);
        }
    }
}
