//! Who may fill which ways: fixed settings and controllers that change them while it runs.

/// Ways of the last-level cache, one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting {
    /// Ways in which the card may allocate; 0 turns direct cache access off.
    pub card: u32,
    /// Ways that the workers may fill.
    pub workers: u32,
    /// Ways that the neighbours may fill.
    pub neighbours: u32,
}

impl Setting {
    /// The card's ways, if it may allocate at all.
    #[inline]
    pub fn device(self) -> Option<u32> {
        (self.card != 0).then_some(self.card)
    }
}
