//! What can be measured on this machine, with remedies for the rest.

use model::Fact;

use crate::table::{ALWAYS, Align, Cell, Table, Tone};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckState {
    Ok,
    /// It works with a remark.
    Note,
    Unavailable,
}

/// One signal, store, fact or setting of the machine.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckRow {
    pub name: String,
    /// Rows of one group stand together, in the order in which groups first appear.
    pub group: String,
    pub state: CheckState,
    /// The value or version; empty if there is none.
    pub found: String,
    /// Why it is a note or unavailable.
    pub why: Option<String>,
    /// What to do about it.
    pub remedy: Option<String>,
}

impl CheckRow {
    /// A fact about the machine.
    pub fn of_fact(fact: &Fact) -> CheckRow {
        let (state, found, why) = match &fact.value {
            Ok(value) => (CheckState::Ok, value.clone(), None),
            Err(reason) => (CheckState::Unavailable, String::new(), Some(reason.clone())),
        };
        let (name, group) = (fact.name.clone(), "machine".to_owned());
        CheckRow { name, group, state, found, why, remedy: None }
    }
}

/// One table a group, titled by its name.
pub fn doctor(rows: &[CheckRow]) -> Vec<Table> {
    let mut tables: Vec<Table> = Vec::new();
    for row in rows {
        let at = tables.iter().position(|table| table.title == row.group).unwrap_or_else(|| {
            tables.push(
                Table::new(&row.group)
                    .column("", Align::Left, ALWAYS)
                    .column("what", Align::Left, ALWAYS)
                    .column("found", Align::Left, ALWAYS),
            );
            tables.len() - 1
        });
        let (mark, tone) = match row.state {
            CheckState::Ok => ("✓", Tone::Good),
            CheckState::Note => ("!", Tone::Warning),
            CheckState::Unavailable => ("✗", Tone::Bad),
        };
        let found = match (&row.state, row.found.is_empty()) {
            (CheckState::Unavailable, true) => Cell::new("unavailable", Tone::Bad),
            _ => Cell::from(row.found.clone()),
        };
        tables[at].row(vec![Cell::new(mark, tone), Cell::from(row.name.clone()), found]);
        let reason = row.why.iter().map(|why| format!("{}: {why}", row.name));
        let remedy = row.remedy.iter().map(|remedy| format!("to do: {remedy}"));
        let parts: Vec<String> = reason.chain(remedy).collect();
        if !parts.is_empty() {
            tables[at].note(parts.join("; "));
        }
    }
    tables
}
