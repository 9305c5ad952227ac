//! What is left when everything ends at once.

use crate::random::Random;

/// Which part of what was not synced a power cut takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    Everything,
    Nothing,
    /// Each piece survives by itself so many times in eight.
    Some(usize),
    /// What came later has overtaken what came before.
    Earlier,
    /// Each file, and each change of names, as a whole or not at all.
    Files,
}

impl Loss {
    pub const ALL: [Loss; 7] = [
        Loss::Everything,
        Loss::Nothing,
        Loss::Some(4),
        Loss::Some(7),
        Loss::Some(1),
        Loss::Earlier,
        Loss::Files,
    ];

    /// The indexes, of so many pieces, that survive.
    pub(super) fn kept(self, pieces: usize, random: &mut Random) -> Vec<usize> {
        match self {
            Loss::Everything => Vec::new(),
            Loss::Nothing => (0..pieces).collect(),
            Loss::Some(eighths) => (0..pieces).filter(|_| random.chance(eighths, 8)).collect(),
            Loss::Earlier => (random.below(pieces + 1)..pieces).collect(),
            Loss::Files if random.chance(1, 2) => (0..pieces).collect(),
            Loss::Files => Vec::new(),
        }
    }
}

/// How everything ends at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The process dies: its stores and writes stay, synced or not.
    Kill,
    PowerCut(Loss),
}
