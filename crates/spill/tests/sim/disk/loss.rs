//! What survives when everything ends at once.

use crate::random::Random;

/// Which unsynced data a power cut loses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    Everything,
    Nothing,
    /// Each piece survives independently, with this probability in eighths.
    Some(usize),
    /// Later changes survive and earlier ones do not.
    Earlier,
    /// Each file, and each change of names, entirely or not at all.
    Files,
    /// All changes of names, and no content.
    Names,
    /// All content, and no changes of names.
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

    /// The parts for names and for contents.
    pub(super) fn parts(self) -> (Loss, Loss) {
        match self {
            Loss::Names => (Loss::Everything, Loss::Nothing),
            Loss::Contents => (Loss::Nothing, Loss::Everything),
            other => (other, other),
        }
    }

    /// Indexes of the surviving pieces.
    pub(super) fn survivors(self, pieces: usize, random: &mut Random) -> Vec<usize> {
        match self {
            Loss::Everything => Vec::new(),
            Loss::Nothing => (0..pieces).collect(),
            Loss::Some(eighths) => (0..pieces).filter(|_| random.chance(eighths, 8)).collect(),
            Loss::Earlier => (random.below(pieces + 1)..pieces).collect(),
            Loss::Files if random.chance(1, 2) => (0..pieces).collect(),
            Loss::Files => Vec::new(),
            Loss::Names | Loss::Contents => unreachable!("{self:?} differs for each part"),
        }
    }
}

/// How everything ends at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The process dies: its stores and writes survive, synced or not.
    Kill,
    PowerCut(Loss),
}
