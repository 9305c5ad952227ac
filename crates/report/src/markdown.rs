//! The terminal's tables in Markdown, for a pull request.

use model::{Execution, Run};

use crate::curves;
use crate::study::{StudyReport, UnansweredQuestions, answered, beside, counted, unanswered};
use crate::table::{Align, Table, Tone};
use crate::tables::{self, CheckRow, DifferenceRow, PlanRow};

/// The tables of the runs, then invalidity and warnings.
pub fn runs(runs: &[(&Execution, &Run)]) -> String {
    if runs.is_empty() {
        return "No finished runs.\n".to_owned();
    }
    let runs = &curves::curves_together(runs);
    let mut out = tables::of_runs(runs).iter().map(table).collect::<Vec<_>>().join("\n");
    for (run, profile) in tables::profiled(runs) {
        let (paragraphs, reservations) = tables::where_time_goes(run, profile);
        out += &format!("\n**Where the time of {} goes**\n\n", escaped(&run.label));
        for paragraph in paragraphs.iter().chain(&reservations) {
            out += &format!("- {}\n", escaped(paragraph));
        }
    }
    let notes = tables::notes(runs);
    if !notes.is_empty() {
        out.push('\n');
    }
    for note in &notes {
        out += &format!(
            "- **{}** ({}): {}\n",
            note.word(),
            escaped(&note.subjects()),
            escaped(&note.text)
        );
    }
    out
}

/// A study with a design: question, answers, its figures' numbers, and the tables behind them.
/// `figures`: the folder that the drawings lie in, as a link sees it.
pub fn study(study: &StudyReport, figures: Option<&str>) -> String {
    let mut out = format!("## {}\n\n", escaped(study.question.unwrap_or(study.name)));
    if let Some(note) = study.scale_note() {
        out += &format!("> {}\n\n", escaped(&note));
    }
    if let Some(note) = study.unasked_note() {
        out += &format!("{}\n\n", escaped(&note));
    }
    for (answer, question) in answered(study) {
        out += &format!(
            "**{}** {} Confidence: **{}**{}.\n\n",
            escaped(&answer.ask),
            escaped(&answer.verdict),
            answer.confidence,
            escaped(&counted(answer))
        );
        for detail in &answer.details {
            out += &format!("- {}\n", escaped(detail));
        }
        if !answer.details.is_empty() {
            out.push('\n');
        }
        for sentence in beside(study, question) {
            out += &format!("> {}\n\n", escaped(&sentence));
        }
    }
    if let Some(note) = study.correction_note() {
        out += &format!("{}\n\n", escaped(&note));
    }
    for UnansweredQuestions { heading, why, asks } in unanswered(study) {
        out += &format!("**{heading}**: {}\n\n", escaped(why));
        asks.iter().for_each(|ask| out += &format!("- {}\n", escaped(ask)));
        out.push('\n');
    }
    for shown in study.figures() {
        out += &format!("### {}\n\n", escaped(&shown.title));
        if let Some(folder) = figures {
            out += &format!("![{}]({folder}/{}.svg)\n\n", escaped(&shown.alt), shown.id);
        }
        out += &table(&shown.data);
        out.push('\n');
        for caption in &shown.captions {
            out += &format!("- {}\n", escaped(caption));
        }
        out.push('\n');
    }
    let tables = study.tables();
    let all = tables.iter().chain(crate::study::cells(study));
    out += &all.map(table).collect::<Vec<_>>().join("\n");
    out
}

/// What can be measured on this machine.
pub fn doctor(rows: &[CheckRow]) -> String {
    tables::doctor(rows).iter().map(table).collect::<Vec<_>>().join("\n")
}

/// Every difference between A and B, named `a` and `b`.
pub fn comparison(a: &str, b: &str, rows: &[DifferenceRow]) -> String {
    table(&tables::comparison(a, b, rows))
}

/// The planned runs in their order.
pub fn plan(rows: &[PlanRow]) -> String {
    table(&tables::plan(rows))
}

/// Any table.
pub fn table(table: &Table) -> String {
    let mut out = String::new();
    if !table.title.is_empty() {
        out += &format!("### {}\n\n", escaped(&table.title));
    }
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    out += &line(table.columns.iter().map(|c| escaped(&c.head)).collect());
    let rules = table.columns.iter().map(|c| match c.align {
        Align::Left | Align::Wrap => ":--".to_owned(),
        Align::Right | Align::Decimal => "--:".to_owned(),
    });
    out += &line(rules.collect());
    for row in &table.rows {
        let cells = row.cells.iter().map(|cell| {
            let text = escaped(&cell.text);
            match cell.tone {
                Tone::Strong | Tone::Bad if !text.is_empty() => format!("**{text}**"),
                _ => text,
            }
        });
        out += &line(cells.collect());
    }
    if !table.notes.is_empty() {
        out.push('\n');
    }
    for note in &table.notes {
        out += &format!("- {}\n", escaped(note));
    }
    out
}

/// Text escaped for Markdown and for HTML in it.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in model::text::line(text.trim()).chars() {
        match c {
            '\\' | '|' | '*' | '[' | ']' | '~' => {
                out.push('\\');
                out.push(c);
            }
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::ALWAYS;

    #[test]
    fn text_means_itself() {
        let mut table = Table::new("").column("a|b", Align::Left, ALWAYS);
        table.row(vec!["<script>*x*\n".into()]);
        assert_eq!(super::table(&table), "| a\\|b |\n| :-- |\n| &lt;script&gt;\\*x\\* |\n");
    }
}
