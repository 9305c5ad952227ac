use model::{Unavailable, Unit};

/// One number about a server process.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// Dotted, such as `server.cpu.user`.
    pub name: &'static str,
    pub value: Result<f64, Unavailable>,
    pub unit: Unit,
    /// The file and field, or the call, with its resolution where that matters.
    pub source: String,
    /// Whether it covers the window, or is of the instant at its end.
    pub of_window: bool,
}
