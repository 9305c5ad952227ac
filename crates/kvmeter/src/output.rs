//! Terminal output: results on standard output, notes on standard error.

use std::io::{BufWriter, IsTerminal, Stdout, Write};

use clap::{Args, ValueEnum};
use model::text::{json, lines};
use report::Style;
use report::table::Table;
use serde::Serialize;

/// The width without a terminal.
const PLAIN_WIDTH: usize = 100;

#[derive(Debug, Args)]
pub struct Common {
    /// No progress and no notes; errors still show
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// When to colour; `NO_COLOR` is honoured
    #[arg(long, global = true, value_enum, default_value = "auto", value_name = "WHEN")]
    pub color: When,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum When {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Clone, Copy)]
pub struct Output {
    quiet: bool,
    style: Style,
}

impl Output {
    pub fn new(common: &Common) -> Self {
        let terminal = std::io::stdout().is_terminal();
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let color = match common.color {
            When::Always => true,
            When::Never => false,
            When::Auto => terminal && !refused && !is_dumb(),
        };
        let width = match console_width() {
            Some(width) if terminal => width,
            _ => PLAIN_WIDTH,
        };
        Output { quiet: common.quiet, style: Style { color, width, unicode: true } }
    }

    pub fn style(&self) -> &Style {
        &self.style
    }

    /// Whether notes are suppressed.
    pub fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// Prints text without control characters and secrets.
    pub fn print(&self, text: &str) -> anyhow::Result<()> {
        self.print_styled(&lines(text))
    }

    /// Prints tables, with an empty line between two.
    pub fn tables(&self, tables: &[Table]) -> anyhow::Result<()> {
        let written = tables.iter().map(|table| report::terminal::table(table, &self.style));
        self.print_styled(&written.collect::<Vec<_>>().join("\n"))
    }

    /// Prints a value as indented JSON.
    pub fn json(&self, value: &(impl Serialize + ?Sized)) -> anyhow::Result<()> {
        self.print_styled(&json(&serde_json::to_string_pretty(value)?))
    }

    /// Values as one array in the format of [`Output::json`], written one by one.
    pub fn json_array(&self) -> JsonArray {
        JsonArray { out: BufWriter::new(std::io::stdout()), begun: false }
    }

    /// Prints a value as JSON in one line.
    pub fn json_line(&self, value: &impl Serialize) -> anyhow::Result<()> {
        self.print_styled(&json(&serde_json::to_string(value)?))
    }

    /// Prints the output of `report::terminal`, which has colours and is free of control characters
    /// otherwise.
    pub fn print_styled(&self, text: &str) -> anyhow::Result<()> {
        let mut out = std::io::stdout().lock();
        out.write_all(text.as_bytes())?;
        if !text.ends_with('\n') {
            out.write_all(b"\n")?;
        }
        Ok(out.flush()?)
    }

    /// Prints a note to standard error.
    pub fn note(&self, text: &str) {
        if !self.quiet {
            write_stderr(text);
        }
    }

    /// Prints a warning, even if notes are suppressed.
    pub fn warn(&self, text: &str) {
        write_stderr(&format!("warning: {text}"));
    }
}

/// An array on standard output, with one element in memory at a time.
pub struct JsonArray {
    out: BufWriter<Stdout>,
    begun: bool,
}

impl JsonArray {
    pub fn push(&mut self, value: &impl Serialize) -> anyhow::Result<()> {
        // Strings in JSON have no line ends, so all of them are of the layout.
        let element = serde_json::to_string_pretty(value)?.replace('\n', "\n  ");
        self.out.write_all(if self.begun { b",\n  " } else { b"[\n  " })?;
        self.begun = true;
        Ok(self.out.write_all(json(&element).as_bytes())?)
    }

    pub fn end(mut self) -> anyhow::Result<()> {
        self.out.write_all(if self.begun { b"\n]\n" } else { b"[]\n" })?;
        Ok(self.out.flush()?)
    }
}

/// Writes a line to standard error; failures are ignored.
pub fn write_stderr(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{}", lines(text));
}

/// Whether the terminal supports neither colours nor cursor movement.
pub fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

fn console_width() -> Option<usize> {
    let (_, width) = console::Term::stdout().size_checked()?;
    Some(usize::from(width))
}
