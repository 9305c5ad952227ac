//! What `kvmeter plan` shows: the sentence and tables, JSON, and a page.

use report::fleet_plan::{PlanView, object, page, sentences, tables};

use super::PlanArgs;
use crate::exit::ExitOutcome;
use crate::output::Output;
use crate::output_files;

pub fn show(view: &PlanView<'_>, args: &PlanArgs, show: &Output) -> anyhow::Result<ExitOutcome> {
    if args.json {
        show.json(&object(view))?;
    } else {
        show.print(&format!("{}\n", sentences(view).join("\n")))?;
        let tables = tables(view);
        let written = tables.iter().map(|table| match args.markdown {
            true => report::markdown::table(table),
            false => report::terminal::table(table, show.style()),
        });
        let written: Vec<String> = written.collect();
        show.print_styled(&written.join("\n"))?;
    }
    if let Some(html) = &args.html {
        output_files::write(html, page(view).as_bytes())?;
        show.note(&format!("page     {}", html.display()));
    }
    Ok(ExitOutcome::Done)
}
