//! The page: one self-contained document. It loads nothing but its own events.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::Serialize;

const DOCUMENT: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");
const FORMAT: &str = include_str!("page/format.js");
const CHART: &str = include_str!("page/chart.js");
const SCRIPT: &str = include_str!("page/page.js");

/// What is measured, in words.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Title {
    /// `bench`, `run`, `search`.
    pub command: String,
    /// The study's name, or store and workload.
    pub name: String,
    pub version: String,
}

pub(crate) struct Page {
    pub(crate) style: &'static str,
}

impl Page {
    /// The document with the state of this moment in it.
    pub(crate) fn html(&self, nonce: &str, state: &str) -> String {
        // The state comes last: nothing is replaced in what others can choose.
        DOCUMENT
            .replace("{{nonce}}", nonce)
            .replace("{{style}}", &format!("{}\n{STYLE}", self.style))
            .replace("{{script}}", &format!("{FORMAT}\n{CHART}\n{SCRIPT}"))
            .replace("{{state}}", state)
    }
}

/// A number that is used once; none where the kernel has no random numbers.
pub(crate) fn nonce() -> Option<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).ok()?;
    Some(BASE64_STANDARD.encode(bytes))
}

/// Only the page's own script and style, and events of its own origin.
pub(crate) fn policy(nonce: &str) -> String {
    format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; \
         connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'"
    )
}
