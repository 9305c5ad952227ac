//! Data that lies in servers.

use model::Address;

use crate::StoreError;

/// What lies in servers: other programs see it, and later runs can use it again.
pub trait ServedData: Send + Sync {
    /// Where the servers listen.
    fn addresses(&self) -> &[Address];

    /// The note about the dataset, if every server has the same.
    fn marker(&self) -> Result<Option<String>, StoreError>;

    fn mark(&self, marker: &str) -> Result<(), StoreError>;

    fn unmark(&self) -> Result<(), StoreError>;

    /// Whether a key of a record is there.
    fn contains(&self, key: &[u8]) -> Result<bool, StoreError>;

    /// Deletes the data as far as the URL allows it, and in any case the note.
    fn clear(&self) -> Result<(), StoreError>;

    /// What happened to the servers since the last call that a reader of the results must know.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }
}
