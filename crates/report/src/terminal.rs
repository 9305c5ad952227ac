//! Tables as text of a given width. Nothing is wrapped by the terminal: columns that do not
//! fit are left out, and the text says which.

use std::borrow::Cow;

use model::{Execution, Run};
use unicode_width::UnicodeWidthStr;

use crate::curves;
use crate::study::{StudyReport, UnansweredQuestions, answered, beside, counted, unanswered};
use crate::table::{ALWAYS, Align, Table, Tone};
use crate::tables::{self, CheckRow, DifferenceRow, Note, NoteWeight, PlanRow};

/// How to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// ANSI colours.
    pub color: bool,
    /// Columns of the terminal.
    pub width: usize,
    /// Whether anything but ASCII may be written.
    pub unicode: bool,
}

impl Default for Style {
    fn default() -> Self {
        Style { color: false, width: 80, unicode: true }
    }
}

const GAP: usize = 2;
/// The least width to which a column is cut.
const MIN_COLUMN: usize = 12;

/// Throughput of each run, latency against rate where runs make a curve and of each run where not,
/// both sides of a request where the server was watched; then invalidity and warnings.
pub fn runs(runs: &[(&Execution, &Run)], style: &Style) -> String {
    if runs.is_empty() {
        return "no finished runs\n".to_owned();
    }
    let runs = &curves::curves_together(runs);
    let shown = tables::of_runs(runs);
    let mut out = shown.iter().map(|t| table(t, style)).collect::<Vec<_>>().join("\n");
    out += &profiles(runs, style);
    let notes = notes_text(&tables::notes(runs), style);
    if !notes.is_empty() {
        out.push('\n');
    }
    out + &notes
}

/// Where the time of profiled runs goes.
fn profiles(runs: &[(&Execution, &Run)], style: &Style) -> String {
    let mut out = String::new();
    let mut say = |text: &str, tone| out += &wrap(&style.text(text), "", "", style, tone);
    for (run, profile) in tables::profiled(runs) {
        let (paragraphs, reservations) = tables::where_time_goes(run, profile);
        say("", Tone::Plain);
        say(&format!("Where the time of {} goes", run.label), Tone::Strong);
        paragraphs.iter().for_each(|paragraph| say(paragraph, Tone::Plain));
        reservations.iter().for_each(|reservation| say(reservation, Tone::Muted));
    }
    out
}

/// Why runs are invalid or contradict themselves, and how many warnings there are besides.
pub fn problems(runs: &[(&Execution, &Run)], style: &Style) -> String {
    let (warnings, problems): (Vec<Note>, Vec<Note>) =
        tables::notes(runs).into_iter().partition(|note| note.weight == NoteWeight::Warning);
    let mut out = notes_text(&problems, style);
    if !warnings.is_empty() {
        let count = match warnings.len() {
            1 => "1 warning".to_owned(),
            more => format!("{more} warnings"),
        };
        let text = format!("{count} on valid runs: see the tables");
        out += &wrap(&text, "", "  ", style, Tone::Warning);
    }
    out
}

fn notes_text(notes: &[Note], style: &Style) -> String {
    notes.iter().map(|note| note_text(note, style)).collect()
}

/// A study with a design: its answers, then the tables behind them.
pub fn study(study: &StudyReport, style: &Style) -> String {
    let mut out = answers(study, style);
    for own in study.tables() {
        out.push('\n');
        out += &table(&own, style);
    }
    out
}

/// The answers of a study with a design, and the checks that are broken.
pub fn answers(study: &StudyReport, style: &Style) -> String {
    let mut out = String::new();
    let mut say = |text: &str, tone| out += &wrap(&style.text(text), "", "", style, tone);
    say(study.question.unwrap_or(study.name), Tone::Strong);
    if let Some(note) = study.scale_note() {
        say(&note, Tone::Warning);
    }
    if let Some(note) = study.unasked_note() {
        say(&note, Tone::Muted);
    }
    for (answer, question) in answered(study) {
        say("", Tone::Plain);
        say(&answer.ask, Tone::Strong);
        say(&answer.verdict, Tone::Plain);
        for detail in &answer.details {
            say(&format!("- {detail}"), Tone::Plain);
        }
        for sentence in beside(study, question) {
            say(&sentence, Tone::Plain);
        }
        let confidence = format!("Confidence: {}{}", answer.confidence, counted(answer));
        say(&confidence, Tone::Muted);
    }
    if let Some(note) = study.correction_note() {
        say("", Tone::Plain);
        say(&note, Tone::Muted);
    }
    for UnansweredQuestions { heading, why, asks } in unanswered(study) {
        say("", Tone::Plain);
        say(&format!("{heading}: {why}"), Tone::Warning);
        asks.iter().for_each(|ask| say(&format!("- {ask}"), Tone::Plain));
    }
    let broken = study.broken_checks();
    if !broken.is_empty() {
        say("", Tone::Plain);
        say("Checks", Tone::Strong);
    }
    for sentence in &broken {
        say(&format!("- {sentence}"), Tone::Bad);
    }
    out
}

/// What can be measured here and what not: one table a group, remedies below it.
pub fn doctor(rows: &[CheckRow], style: &Style) -> String {
    let parts: Vec<String> = tables::doctor(rows).iter().map(|t| table(t, style)).collect();
    parts.join("\n")
}

/// Every difference between A and B; `a` and `b` name the two.
pub fn comparison(a: &str, b: &str, rows: &[DifferenceRow], style: &Style) -> String {
    table(&tables::comparison(a, b, rows), style)
}

/// What would be run, in its order.
pub fn plan(rows: &[PlanRow], style: &Style) -> String {
    table(&tables::plan(rows), style)
}

/// Any table.
pub fn table(table: &Table, style: &Style) -> String {
    let columns = FittedColumns::new(table, style);
    let mut out = String::new();
    let title = style.text(&table.title);
    if !title.is_empty() {
        out += &style.paint(&title, Tone::Strong);
        out.push('\n');
    }
    let heads: Vec<(String, Tone)> = columns
        .shown
        .iter()
        .map(|c| (style.text(&table.columns[c.at].head).into_owned(), Tone::Muted))
        .collect();
    if heads.iter().any(|(head, _)| !head.is_empty()) {
        out += &columns.line(&heads, None, table, style);
        let rule = if style.unicode { "─" } else { "-" };
        let wide = columns.width().min(style.width.max(1));
        out += &style.paint(&rule.repeat(wide), Tone::Muted);
        out.push('\n');
    }
    for (i, row) in table.rows.iter().enumerate() {
        let cells: Vec<(String, Tone)> = columns
            .shown
            .iter()
            .map(|c| {
                let cell = &row.cells[c.at];
                let tone =
                    if row.invalid && cell.tone == Tone::Plain { Tone::Muted } else { cell.tone };
                (style.text(&cell.text).into_owned(), tone)
            })
            .collect();
        out += &columns.line(&cells, Some(i), table, style);
    }
    for note in &table.notes {
        out += &wrap(&style.text(note), "  ", "  ", style, Tone::Muted);
    }
    if !columns.left_out.is_empty() {
        let text = format!("not shown at this width: {}", columns.left_out.join(", "));
        out += &wrap(&style.text(&text), "  ", "  ", style, Tone::Muted);
    }
    out
}

fn note_text(note: &Note, style: &Style) -> String {
    let text = format!("{}: {}: {}", note.word(), note.subjects(), note.text);
    wrap(&style.text(&text), "", "  ", style, note.tone())
}

struct ShownTable {
    at: usize,
    width: usize,
    /// The least width before other columns are left out for it.
    min_width: usize,
    /// Places after the point in each row, and the most of them; decimal columns only.
    decimals: (Vec<usize>, usize),
}

/// The columns that are written, with their widths.
struct FittedColumns {
    shown: Vec<ShownTable>,
    left_out: Vec<String>,
}

impl FittedColumns {
    fn new(table: &Table, style: &Style) -> Self {
        let mut shown: Vec<ShownTable> = (0..table.columns.len())
            .map(|at| {
                let column = &table.columns[at];
                let decimals = match column.align {
                    Align::Decimal => table.decimals(at),
                    _ => (vec![0; table.rows.len()], 0),
                };
                let cells = table.rows.iter().zip(&decimals.0).map(|(row, places)| {
                    style.text(&row.cells[at].text).width() + decimals.1 - places
                });
                let head = style.text(&column.head).width();
                let width = cells.max().unwrap_or(0).max(head);
                let least = match column.align {
                    Align::Wrap => {
                        let texts = table.rows.iter().map(|row| style.text(&row.cells[at].text));
                        let longest = texts.map(|text| longest_word(&text)).max().unwrap_or(0);
                        longest.max(head).max(MIN_COLUMN).min(width)
                    }
                    _ => width,
                };
                ShownTable { at, width, min_width: least, decimals }
            })
            .collect();
        let mut left_out = Vec::new();
        let total = |shown: &[ShownTable], width: fn(&ShownTable) -> usize| {
            shown.iter().map(width).sum::<usize>() + GAP * shown.len().saturating_sub(1)
        };
        let mut removed = Vec::new();
        while total(&shown, |c| c.min_width) > style.width {
            let least = shown.iter().enumerate().min_by_key(|(_, c)| table.columns[c.at].priority);
            match least {
                Some((i, c)) if table.columns[c.at].priority < ALWAYS => {
                    removed.push(shown.remove(i))
                }
                _ => break,
            }
        }
        // Columns that fit after a wide one was removed come back, the highest priority first.
        for column in removed.into_iter().rev() {
            if total(&shown, |c| c.min_width) + GAP + column.min_width <= style.width {
                let place = shown.iter().position(|c| c.at > column.at).unwrap_or(shown.len());
                shown.insert(place, column);
            } else {
                left_out.insert(0, table.columns[column.at].head.clone());
            }
        }
        // Shrinks the widest columns: first wrapping ones, down to their longest word.
        while total(&shown, |c| c.width) > style.width {
            let widest = shown.iter_mut().filter(|c| c.width > c.min_width).max_by_key(|c| c.width);
            let Some(column) = widest else { break };
            column.width -= 1;
        }
        while total(&shown, |c| c.width) > style.width {
            let widest = shown
                .iter_mut()
                .filter(|c| matches!(table.columns[c.at].align, Align::Left | Align::Wrap))
                .filter(|c| c.width > MIN_COLUMN)
                // Prefers wrapping columns, which are not cut.
                .max_by_key(|c| (table.columns[c.at].align == Align::Wrap, c.width));
            let Some(column) = widest else { break };
            column.width -= 1;
        }
        FittedColumns { shown, left_out }
    }

    fn width(&self) -> usize {
        self.shown.iter().map(|c| c.width).sum::<usize>() + GAP * self.shown.len().saturating_sub(1)
    }

    /// A row in as many lines as its longest text needs; `row` is None for the heads.
    fn line(
        &self,
        cells: &[(String, Tone)],
        row: Option<usize>,
        table: &Table,
        style: &Style,
    ) -> String {
        let texts: Vec<Vec<Cow<'_, str>>> = self
            .shown
            .iter()
            .zip(cells)
            .map(|(column, (text, _))| match table.columns[column.at].align {
                Align::Wrap => break_text(text, column.width).into_iter().map(Cow::Owned).collect(),
                _ => vec![truncate(text, column.width, style)],
            })
            .collect();
        let height = texts.iter().map(Vec::len).max().unwrap_or(1);
        let mut lines = String::new();
        for nth in 0..height {
            // Blanks are written only before text, so that no line ends in blanks.
            let mut blanks = 0;
            for ((column, texts), (_, tone)) in self.shown.iter().zip(&texts).zip(cells) {
                let text = texts.get(nth).map_or("", |text| text.as_ref());
                let spare = column.width - text.width().min(column.width);
                let after = match (table.columns[column.at].align, row) {
                    (Align::Left | Align::Wrap, _) => spare,
                    (Align::Decimal, Some(row)) => {
                        (column.decimals.1 - column.decimals.0[row]).min(spare)
                    }
                    _ => 0,
                };
                blanks += spare - after;
                if !text.is_empty() {
                    lines += &" ".repeat(blanks);
                    lines += &style.paint(text, *tone);
                    blanks = 0;
                }
                blanks += after + GAP;
            }
            lines.push('\n');
        }
        lines
    }
}

fn longest_word(text: &str) -> usize {
    text.split(' ').map(UnicodeWidthStr::width).max().unwrap_or(0)
}

/// The text in lines of at most `width` columns, broken between words where possible.
fn break_text(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split(' ') {
        if used > 0 && used + 1 + word.width() <= width {
            used += 1;
            lines.last_mut().into_iter().for_each(|line| line.push(' '));
        } else if used > 0 {
            used = 0;
            lines.push(String::new());
        }
        for c in word.chars() {
            let wide = c.to_string().width();
            if used > 0 && used + wide > width {
                used = 0;
                lines.push(String::new());
            }
            used += wide;
            lines.last_mut().into_iter().for_each(|line| line.push(c));
        }
    }
    lines
}

/// At most `width` columns, with a mark if the text is cut.
fn truncate<'t>(text: &'t str, width: usize, style: &Style) -> Cow<'t, str> {
    if text.width() <= width {
        return Cow::Borrowed(text);
    }
    let mark = if style.unicode { "…" } else { "..." };
    let mut out = String::new();
    for c in text.chars() {
        if out.width() + c.to_string().width() + mark.width() > width {
            break;
        }
        out.push(c);
    }
    Cow::Owned(out + mark)
}

/// Text broken between words so that no line is wider than the terminal.
fn wrap(text: &str, first: &str, next: &str, style: &Style, tone: Tone) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut line = first.to_owned();
    let mut empty = true;
    for word in text.split_whitespace() {
        if !empty && line.width() + 1 + word.width() > style.width {
            lines.push(std::mem::replace(&mut line, next.to_owned()));
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line += word;
        empty = false;
    }
    lines.push(line);
    lines.iter().map(|line| style.paint(line, tone) + "\n").collect()
}

impl Style {
    fn paint(&self, text: &str, tone: Tone) -> String {
        let code = match tone {
            Tone::Plain => return text.to_owned(),
            _ if !self.color || text.is_empty() => return text.to_owned(),
            Tone::Strong => "1",
            Tone::Muted => "2",
            Tone::Good => "32",
            Tone::Warning => "33",
            Tone::Bad => "31",
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }

    /// Text for this terminal: without control characters, and in ASCII if needed.
    fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let text = model::text::line(text);
        if self.unicode || text.is_ascii() {
            return text;
        }
        let mut out = String::with_capacity(text.len());
        for c in text.chars() {
            match c {
                c if c.is_ascii() => out.push(c),
                'µ' => out.push('u'),
                '–' | '—' | '−' => out.push('-'),
                '…' => out.push_str(".."),
                '→' => out.push_str("->"),
                '≤' => out.push_str("<="),
                '×' | '✗' => out.push('x'),
                '✓' => out.push('+'),
                '°' => out.push_str("deg "),
                _ => out.push('?'),
            }
        }
        Cow::Owned(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Table {
        let mut table = Table::new("T µ")
            .column("name", Align::Left, ALWAYS)
            .column("x", Align::Decimal, ALWAYS)
            .column("remark", Align::Left, 10);
        table.row(vec!["a".into(), "1.25".into(), "first".into()]);
        table.row(vec!["bb".into(), "12.5".into(), "second".into()]);
        table
    }

    #[test]
    fn decimal_points_are_aligned() {
        let text = table(&sample(), &Style { color: false, width: 40, unicode: false });
        assert_eq!(
            text,
            "T u\nname      x  remark\n-------------------\na      1.25  first\nbb    12.5   second\n"
        );
    }

    #[test]
    fn columns_that_do_not_fit_are_named() {
        let text = table(&sample(), &Style { color: false, width: 13, unicode: true });
        assert!(!text.contains("second"), "{text}");
        assert!(text.contains("remark"), "{text}");
    }

    #[test]
    fn columns_wrap_before_others_are_left_out() {
        let mut table = Table::new("")
            .column("what", Align::Wrap, ALWAYS)
            .column("x", Align::Right, 10)
            .column("y", Align::Left, ALWAYS);
        table.row(vec!["workload-a, threads=2 latency".into(), "12345".into(), "1…2".into()]);
        let at = |width| super::table(&table, &Style { color: false, width, unicode: true });
        assert!(at(41).contains("\nworkload-a, threads=2 latency  12345  1…2\n"), "{}", at(41));
        assert!(at(25).contains("\nworkload-a,    12345  1…2\nthreads=2\nlatency\n"), "{}", at(25));
        let narrow = at(17);
        assert!(narrow.contains("\nworkload-a,   1…2\n") && !narrow.contains("12345"), "{narrow}");
        assert!(narrow.contains("not shown at"), "{narrow}");
        assert_eq!(break_text("abcdefgh ij", 5), ["abcde", "fgh", "ij"]);
        assert_eq!(break_text("", 5), [""]);
    }

    #[test]
    fn long_names_are_cut_and_control_characters_removed() {
        let mut table = Table::new("").column("name", Align::Left, ALWAYS);
        table.row(vec!["a very long label \u{1b}[31m that goes on".into()]);
        let text = super::table(&table, &Style { color: false, width: 20, unicode: true });
        assert!(text.lines().all(|line| line.width() <= 20), "{text}");
        assert!(text.contains('…') && !text.contains('\u{1b}'), "{text}");
    }
}
