//! What `kvmeter cost` shows: tables, JSON and a page.

use analyse::cost::{CostTerms, SourcedCandidate, answer};
use report::cost::{CostView, PrintedCost};
use report::table::Table;

use super::CostArgs;
use crate::exit::{ExitOutcome, request};
use crate::output::Output;
use crate::output_files;

/// The output of `kvmeter cost`.
pub struct CostOutput<'a> {
    pub title: &'a str,
    pub candidates: &'a [SourcedCandidate],
    pub terms: &'a CostTerms,
    pub printed: &'a [PrintedCost],
    pub headline: Option<&'a str>,
    pub notes: Vec<String>,
}

impl CostOutput<'_> {
    pub fn show(&self, args: &CostArgs, show: &Output) -> anyhow::Result<ExitOutcome> {
        let candidates: Vec<_> = self.candidates.iter().map(|one| one.candidate.clone()).collect();
        let answer = answer(&candidates, self.terms).map_err(|error| request(error.to_string()))?;
        let view = CostView {
            title: self.title,
            answer: &answer,
            terms: self.terms,
            printed: self.printed,
            headline: self.headline,
            notes: &self.notes,
        };
        if args.json {
            let object = report::cost::object(&view, self.candidates);
            show.json(&object)?;
        } else {
            show.print_styled(&text(&report::cost::tables(&view), args, show))?;
        }
        if let Some(html) = &args.html {
            let page = report::cost::page(&view);
            output_files::write(html, page.as_bytes())?;
            show.note(&format!("page     {}", html.display()));
        }
        Ok(ExitOutcome::Done)
    }
}

/// Tables in the chosen format.
pub fn text(tables: &[Table], args: &CostArgs, show: &Output) -> String {
    let written = tables.iter().map(|table| match args.markdown {
        true => report::markdown::table(table),
        false => report::terminal::table(table, show.style()),
    });
    written.collect::<Vec<_>>().join("\n")
}
