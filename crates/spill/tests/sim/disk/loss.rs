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
    /// All changes of names, and nothing of what was written.
    Names,
    /// The other way round.
    Contents,
}

impl Loss {
    pub const ALL: [Loss; 9] = [
        Loss::Everything,
        Loss::Nothing,
        Loss::Some(4),
        Loss::Some(7),
        Loss::Some(1),
        Loss::Earlier,
        Loss::Files,
        Loss::Names,
        Loss::Contents,
    ];

    /// What it is for the changes of names, and for what is in files.
    pub(super) fn parts(self) -> (Loss, Loss) {
        match self {
            Loss::Names => (Loss::Everything, Loss::Nothing),
            Loss::Contents => (Loss::Nothing, Loss::Everything),
            other => (other, other),
        }
    }

    /// The indexes, of so many pieces, that survive.
    pub(super) fn kept(self, pieces: usize, random: &mut Random) -> Vec<usize> {
        match self {
            Loss::Everything => Vec::new(),
            Loss::Nothing => (0..pieces).collect(),
            Loss::Some(eighths) => (0..pieces).filter(|_| random.chance(eighths, 8)).collect(),
            Loss::Earlier => (random.below(pieces + 1)..pieces).collect(),
            Loss::Files if random.chance(1, 2) => (0..pieces).collect(),
            Loss::Files => Vec::new(),
            Loss::Names | Loss::Contents => unreachable!("{self:?} is another one for each"),
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
