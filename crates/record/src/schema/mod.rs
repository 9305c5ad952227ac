//! The versions of the schema, and the migrations between them.

use rusqlite::{Connection, Transaction};

/// "kvmt": marks a database as a results file.
pub(crate) const APPLICATION_ID: i64 = 0x6b76_6d74;

/// What takes a file from version `i` to `i + 1`. Published steps are never edited.
const STEPS: &[&str] = &[
    include_str!("v1.sql"),
    include_str!("v2.sql"),
    include_str!("v3.sql"),
    include_str!("v4.sql"),
    include_str!("v5.sql"),
    include_str!("v6.sql"),
    include_str!("v7.sql"),
    include_str!("v8.sql"),
    include_str!("v9.sql"),
    include_str!("v10.sql"),
];

/// The version that this kvmeter writes: SQLite's `user_version`.
pub(crate) const VERSION: i64 = STEPS.len() as i64;

/// Brings a database to [`VERSION`] in the caller's transaction. `from` is 0 for a new file.
pub(crate) fn migrate(transaction: &Transaction<'_>, from: i64) -> rusqlite::Result<()> {
    apply(transaction, from, STEPS)
}

/// A new file of the first version: what a test reads that older programs have written.
#[cfg(test)]
pub(crate) fn first_version(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    apply(transaction, 0, &STEPS[..1])
}

fn apply(transaction: &Transaction<'_>, from: i64, steps: &[&str]) -> rusqlite::Result<()> {
    for step in steps.iter().skip(usize::try_from(from).unwrap_or(0)) {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", steps.len() as i64)
}

/// Whether a file of this version has other tables than one of [`VERSION`]: some steps only add
/// names that a column may hold.
pub(crate) fn changes_tables_since(version: i64) -> bool {
    let is_statement = |line: &str| !line.trim().is_empty() && !line.starts_with("--");
    let later = STEPS.iter().skip(usize::try_from(version).unwrap_or(0));
    later.into_iter().any(|step| step.lines().any(is_statement))
}

/// A copy in memory at [`VERSION`]: how an older file is read without being changed.
pub(crate) fn migrated_copy(old: &Connection, from: i64) -> rusqlite::Result<Connection> {
    let mut copy = Connection::open_in_memory()?;
    rusqlite::backup::Backup::new(old, &mut copy)?.run_to_completion(
        PAGES_A_STEP,
        std::time::Duration::ZERO,
        None,
    )?;
    let transaction = copy.transaction()?;
    migrate(&transaction, from)?;
    transaction.commit()?;
    Ok(copy)
}

const PAGES_A_STEP: i32 = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_of_names_alone_changes_no_table() {
        assert!(changes_tables_since(5) && changes_tables_since(1));
        assert!(changes_tables_since(7) && !changes_tables_since(VERSION));
    }

    fn version(connection: &Connection) -> i64 {
        connection.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
    }

    #[test]
    fn only_the_missing_steps_are_applied() {
        let steps = ["CREATE TABLE a (x)", "ALTER TABLE a ADD COLUMN y DEFAULT 7"];
        let mut connection = Connection::open_in_memory().unwrap();
        let transaction = connection.transaction().unwrap();
        apply(&transaction, 0, &steps[..1]).unwrap();
        transaction.execute("INSERT INTO a VALUES (1)", []).unwrap();
        transaction.commit().unwrap();
        assert_eq!(version(&connection), 1);

        let transaction = connection.transaction().unwrap();
        apply(&transaction, 1, &steps).unwrap();
        transaction.commit().unwrap();
        assert_eq!(version(&connection), 2);
        let row: (i64, i64) = connection
            .query_row("SELECT x, y FROM a", [], |row| Ok((row.get(0)?, row.get(1)?)))
            .unwrap();
        assert_eq!(row, (1, 7));
    }

    #[test]
    fn histograms_of_the_ninth_version_stay_where_quantities_are_added() {
        let mut connection = Connection::open_in_memory().unwrap();
        let transaction = connection.transaction().unwrap();
        apply(&transaction, 0, &STEPS[..9]).unwrap();
        // Of a run that is not there.
        transaction.pragma_update(None, "defer_foreign_keys", true).unwrap();
        let insert = |position: i64, quantity: &str| {
            let row = "INSERT INTO kernel_histogram VALUES (1, ?1, ?2, 'nanoseconds', 'vda', NULL, 'read')";
            transaction.execute(row, (position, quantity))
        };
        insert(0, "block_latency").unwrap();
        insert(1, "block_wait").unwrap_err();
        migrate(&transaction, 9).unwrap();
        insert(1, "block_wait").unwrap();
        insert(2, "unknown").unwrap_err();
        let query = "SELECT group_concat(quantity || subject || operation) FROM kernel_histogram";
        let rows: String = transaction.query_row(query, [], |row| row.get(0)).unwrap();
        assert_eq!(rows, "block_latencyvdaread,block_waitvdaread");
    }

    #[test]
    fn an_older_file_is_copied_and_left_alone() {
        let old = Connection::open_in_memory().unwrap();
        old.pragma_update(None, "user_version", 0).unwrap();
        let copy = migrated_copy(&old, 0).unwrap();
        assert_eq!((version(&old), version(&copy)), (0, VERSION));
        copy.execute("INSERT INTO setting VALUES (1, 'a', 'b')", []).unwrap_err();
        let tables: i64 =
            old.query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get(0)).unwrap();
        assert_eq!(tables, 0);
    }
}
