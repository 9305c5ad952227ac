//! What a microbenchmark ends with: tables, JSON, or an outcome for the study that started it.

use micro::job::{MicroOutcome, MicroResults};
use model::Reading;
use report::table::Table;
use serde_json::{Map, Value};

use super::MicroRun;
use crate::exit::ExitOutcome;

impl MicroRun<'_> {
    /// Whether a study waits for a typed outcome.
    pub fn answers(&self) -> bool {
        self.answers
    }

    /// Prints the outcome for the study that started this.
    pub fn answer(
        self,
        results: MicroResults,
        mut warnings: Vec<String>,
    ) -> anyhow::Result<ExitOutcome> {
        let quiet = self.quiet.end();
        warnings.extend(quiet.doubts);
        let steal = share(&quiet.readings, "machine.steal");
        self.show.json_line(&MicroOutcome { results, steal, warnings })?;
        Ok(ExitOutcome::Done)
    }

    /// Shows the results: tables, or one JSON object with `results` in it.
    pub fn end(
        self,
        results: Map<String, Value>,
        tables: &[Table],
        mut warnings: Vec<String>,
    ) -> anyhow::Result<ExitOutcome> {
        let stopped = self.stopped();
        let quiet = self.quiet.end();
        warnings.extend(quiet.doubts);
        if stopped {
            warnings.push("stopped early; these are the results so far".to_owned());
        }
        if self.json {
            let mut object = Map::new();
            let mut put = |key: &str, value: Value| object.insert(key.to_owned(), value);
            put("micro", self.name.into());
            put("kvmeter", env!("CARGO_PKG_VERSION").into());
            put("started_at", self.started_at.into());
            for (key, value) in results {
                put(&key, value);
            }
            put("steal", share(&quiet.readings, "machine.steal").into());
            put("neighbours", share(&quiet.readings, "machine.neighbours").into());
            put("warnings", warnings.into());
            put("machine", serde_json::to_value(host::facts(&self.root))?);
            self.show.json(&object)?;
        } else {
            self.show.tables(tables)?;
            for warning in warnings {
                self.show.warn(&warning);
            }
        }
        Ok(if stopped { ExitOutcome::Invalid } else { ExitOutcome::Done })
    }
}

/// A reading of the quiet check.
fn share(readings: &[Reading], signal: &str) -> Option<f64> {
    readings.iter().find(|reading| reading.signal == signal)?.value()
}
