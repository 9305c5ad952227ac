//! When the next operation is to be asked.

use std::collections::VecDeque;
use std::time::Duration;

use crate::clock::Ticks;
use crate::frontier::Gate;
use crate::pace::{OpenLoop, Pacing, still_due};
use crate::plan::{Plan, What};

/// What a thread is to ask now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// An operation that was due at this tick.
    Due(u64),
    /// Nothing before this tick, unless an answer comes.
    At(u64),
    /// Nothing until an answer comes.
    Answer,
    /// Nothing any more.
    Never,
}

pub(super) enum Demand {
    /// So many operations are under way at any time; each asks again when it is answered, after
    /// a pause.
    Closed {
        think: u64,
        /// When each operation that is not under way is to be asked; ascending.
        thinking: VecDeque<u64>,
    },
    Open(OpenLoop),
    /// The source says when an operation is due: that of the next one, where there is one.
    Scheduled {
        origin: u64,
        next: Option<u64>,
    },
}

impl Demand {
    /// `most`: operations that a closed loop keeps under way.
    pub(super) fn new(plan: &Plan, thread: usize, clock: &Ticks, origin: u64, most: usize) -> Self {
        match plan.pacing {
            Pacing::Closed { think } => Demand::Closed {
                think: clock.ticks_of(think.min(Duration::from_secs(3600))),
                thinking: std::iter::repeat_n(origin, most).collect(),
            },
            _ if plan.trace.is_some() && plan.what == What::Mix => {
                Demand::Scheduled { origin, next: None }
            }
            Pacing::Open { .. } | Pacing::Recorded { .. } => {
                Demand::Open(OpenLoop::of(plan, thread, clock, origin))
            }
        }
    }

    pub(super) fn next(&self, now: u64, gate: &Gate) -> Next {
        match self {
            Demand::Closed { .. } if gate.closed() => Next::Never,
            Demand::Closed { thinking, .. } => match thinking.front() {
                Some(due) if *due <= now => Next::Due(*due),
                Some(due) => Next::At(*due),
                None => Next::Answer,
            },
            Demand::Open(open) => match open.next_due(gate) {
                Some(due) if due <= now => Next::Due(due),
                Some(due) => Next::At(due),
                None => Next::Never,
            },
            Demand::Scheduled { next, .. } => match *next {
                Some(due) if !still_due(due, gate) => Next::Never,
                Some(due) if due <= now => Next::Due(due),
                Some(due) => Next::At(due),
                None => Next::Answer,
            },
        }
    }

    /// Whether the source is to be asked when its next operation is due.
    pub(super) fn wants_schedule(&self) -> bool {
        matches!(self, Demand::Scheduled { next: None, .. })
    }

    /// The next operation is due so many ticks after the start of the threads; answers the tick.
    pub(super) fn schedule(&mut self, at: u64) -> u64 {
        match self {
            Demand::Scheduled { origin, next } => *next.insert(origin.saturating_add(at)),
            _ => 0,
        }
    }

    /// The operation that `next` named is taken.
    pub(super) fn take(&mut self) {
        match self {
            Demand::Closed { thinking, .. } => drop(thinking.pop_front()),
            Demand::Open(open) => open.take(),
            Demand::Scheduled { next, .. } => *next = None,
        }
    }

    /// An operation has ended.
    pub(super) fn answered(&mut self, now: u64) {
        if let Demand::Closed { think, thinking } = self {
            thinking.push_back(now + *think);
        }
    }

    /// The window opens. Answers whether the arrivals begin anew, at another rate than before.
    pub(super) fn enter_window(&mut self, opened_at: u64) -> bool {
        match self {
            // What a trace wrote before the window is read in it.
            Demand::Closed { .. } | Demand::Scheduled { .. } => false,
            Demand::Open(open) => open.enter_window(opened_at),
        }
    }

    /// Requests that are due before `end` and will not be sent.
    pub(super) fn skipped(&mut self, end: u64) -> u64 {
        match self {
            Demand::Closed { .. } => 0,
            Demand::Scheduled { next, .. } => u64::from(next.is_some_and(|due| due < end)),
            Demand::Open(open) => crate::pace::Pacer::skip_to(open, end),
        }
    }

    pub(super) fn is_open(&self) -> bool {
        !matches!(self, Demand::Closed { .. })
    }
}
