//! A table, independent of its output format.

use unicode_width::UnicodeWidthStr;

/// The alignment of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    Left,
    /// Left; wrapped to further lines instead of being cut.
    Wrap,
    Right,
    /// Right, with the decimal points under each other.
    Decimal,
}

/// The meaning of a text; the writer chooses its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    Plain,
    Strong,
    Muted,
    Good,
    Warning,
    Bad,
}

impl Tone {
    /// The name as a CSS class.
    pub const fn name(self) -> &'static str {
        match self {
            Tone::Plain => "plain",
            Tone::Strong => "strong",
            Tone::Muted => "muted",
            Tone::Good => "good",
            Tone::Warning => "warn",
            Tone::Bad => "bad",
        }
    }
}

/// The priority of a column when the page is narrow: the lowest is left out first.
pub type ColumnPriority = u8;
/// Never left out.
pub const ALWAYS: ColumnPriority = ColumnPriority::MAX;

#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    pub head: String,
    pub align: Align,
    pub priority: ColumnPriority,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    pub text: String,
    pub tone: Tone,
}

impl Cell {
    pub fn new(text: impl Into<String>, tone: Tone) -> Self {
        Cell { text: text.into(), tone }
    }

    /// Empty where there is no text.
    pub fn optional(text: Option<String>) -> Self {
        Cell::new(text.unwrap_or_default(), Tone::Plain)
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Cell::new(text, Tone::Plain)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    pub cells: Vec<Cell>,
    /// The run of this row is invalid.
    pub invalid: bool,
}

/// Rows are as long as `columns`; shorter ones are filled with empty cells.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Table {
    pub title: String,
    pub columns: Vec<Column>,
    pub rows: Vec<Row>,
    /// Sentences under the table.
    pub notes: Vec<String>,
}

impl Table {
    pub fn new(title: impl Into<String>) -> Self {
        Table { title: title.into(), ..Table::default() }
    }

    pub fn column(
        mut self,
        head: impl Into<String>,
        align: Align,
        priority: ColumnPriority,
    ) -> Self {
        self.columns.push(Column { head: head.into(), align, priority });
        self
    }

    pub fn row(&mut self, cells: Vec<Cell>) {
        self.row_of(cells, true);
    }

    /// A row of a run that may be invalid.
    pub fn row_of(&mut self, mut cells: Vec<Cell>, valid: bool) {
        debug_assert!(cells.len() <= self.columns.len());
        cells.resize_with(self.columns.len(), || Cell::from(""));
        self.rows.push(Row { cells, invalid: !valid });
    }

    pub fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    /// Empties a column, so that [`Table::without_empty_columns`] leaves it out.
    pub fn clear_column(&mut self, head: &str) {
        let Some(at) = self.columns.iter().position(|column| column.head == head) else { return };
        for row in &mut self.rows {
            row.cells[at].text.clear();
        }
    }

    /// Leaves out the columns that are empty in all rows.
    pub fn without_empty_columns(mut self) -> Self {
        let full: Vec<bool> = (0..self.columns.len())
            .map(|i| self.rows.iter().any(|row| !row.cells[i].text.is_empty()))
            .collect();
        retain(&mut self.columns, &full);
        for row in &mut self.rows {
            retain(&mut row.cells, &full);
        }
        self
    }

    /// For each row of column `at`: how wide the text after its whole number is, and the most of
    /// them in the column. Padding by the difference puts the points under each other.
    pub fn decimals(&self, at: usize) -> (Vec<usize>, usize) {
        let widths = self.rows.iter().map(|row| number_parts(&row.cells[at].text).1.width());
        let widths: Vec<usize> = widths.collect();
        let most = widths.iter().copied().max().unwrap_or(0);
        (widths, most)
    }
}

/// Retains the items whose flag is set.
fn retain<T>(items: &mut Vec<T>, keep: &[bool]) {
    let mut flags = keep.iter();
    items.retain(|_| flags.next().copied().unwrap_or(true));
}

/// What may stand before the digits of a number: signs, and marks such as `~` and `< `.
const BEFORE_DIGITS: &[char] = &['+', '-', '−', '±', '~', '<', '>', '≤', '≥', '$', ' '];

/// A number up to its last whole digit, and what follows: the point, decimals, a unit. Nothing
/// follows words.
pub(crate) fn number_parts(text: &str) -> (&str, &str) {
    let digits = text.trim_start_matches(BEFORE_DIGITS);
    if !digits.starts_with(|c: char| c.is_ascii_digit()) {
        return (text, "");
    }
    let is_whole = |(at, c): (usize, char)| {
        let separates = c == ',' && digits[at + 1..].starts_with(|c: char| c.is_ascii_digit());
        c.is_ascii_digit() || separates
    };
    let end = digits.char_indices().find(|one| !is_whole(*one)).map_or(digits.len(), |one| one.0);
    text.split_at(text.len() - digits.len() + end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_line_up() {
        let mut table = Table::new("t").column("x", Align::Decimal, ALWAYS);
        for text in ["1.25", "+12.5", "1,234", "–", "~1,234.5×", "30×", "< 0.001"] {
            table.row(vec![text.into()]);
        }
        assert_eq!(table.decimals(0), (vec![3, 2, 0, 0, 3, 1, 4], 4));
    }

    #[test]
    fn a_number_ends_before_its_point_or_its_unit() {
        for (text, parts) in [
            ("1,234.5", ("1,234", ".5")),
            ("-1,234", ("-1,234", "")),
            ("+0.25 %", ("+0", ".25 %")),
            ("< 0.001", ("< 0", ".001")),
            ("12 µs", ("12", " µs")),
            ("1, 2", ("1", ", 2")),
            ("none of 2.5", ("none of 2.5", "")),
            ("-", ("-", "")),
            ("", ("", "")),
        ] {
            assert_eq!(number_parts(text), parts, "{text}");
        }
    }

    #[test]
    fn empty_columns_are_left_out() {
        let mut table = Table::new("t")
            .column("a", Align::Left, ALWAYS)
            .column("b", Align::Left, ALWAYS)
            .column("c", Align::Left, ALWAYS);
        table.row(vec!["1".into(), "".into(), "3".into()]);
        table.row(vec!["2".into()]);
        let table = table.without_empty_columns();
        assert_eq!(table.columns.iter().map(|c| c.head.as_str()).collect::<Vec<_>>(), ["a", "c"]);
        assert!(table.rows.iter().all(|row| row.cells.len() == 2));
    }
}
