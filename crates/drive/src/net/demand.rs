//! When the next operation is to be asked.

use std::collections::VecDeque;
use std::time::Duration;

use crate::clock::Ticks;
use crate::frontier::PhaseGate;
use crate::pace::{OpenLoop, Pacing, still_due};
use crate::plan::{LoadPlan, PhaseKind};

/// What a thread is to ask now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NextAction {
    /// An operation that was due at this tick.
    Due(u64),
    /// Nothing before this tick, unless an answer comes.
    At(u64),
    /// Nothing until an answer comes.
    Answer,
    /// Nothing any more.
    Never,
}

pub(super) enum RequestSchedule {
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

impl RequestSchedule {
    /// `most`: operations that a closed loop keeps under way.
    pub(super) fn new(
        plan: &LoadPlan,
        thread: usize,
        clock: &Ticks,
        origin: u64,
        most: usize,
    ) -> Self {
        match plan.pacing {
            Pacing::Closed { think } => RequestSchedule::Closed {
                think: clock.ticks_of(think.min(Duration::from_secs(3600))),
                thinking: std::iter::repeat_n(origin, most).collect(),
            },
            _ if plan.trace.is_some() && plan.what == PhaseKind::Mix => {
                RequestSchedule::Scheduled { origin, next: None }
            }
            Pacing::Open { .. } | Pacing::Recorded { .. } => {
                RequestSchedule::Open(OpenLoop::of(plan, thread, clock, origin))
            }
        }
    }

    pub(super) fn next(&self, now: u64, gate: &PhaseGate) -> NextAction {
        match self {
            RequestSchedule::Closed { .. } if gate.closed() => NextAction::Never,
            RequestSchedule::Closed { thinking, .. } => match thinking.front() {
                Some(due) if *due <= now => NextAction::Due(*due),
                Some(due) => NextAction::At(*due),
                None => NextAction::Answer,
            },
            RequestSchedule::Open(open) => match open.next_due(gate) {
                Some(due) if due <= now => NextAction::Due(due),
                Some(due) => NextAction::At(due),
                None => NextAction::Never,
            },
            RequestSchedule::Scheduled { next, .. } => match *next {
                Some(due) if !still_due(due, gate) => NextAction::Never,
                Some(due) if due <= now => NextAction::Due(due),
                Some(due) => NextAction::At(due),
                None => NextAction::Answer,
            },
        }
    }

    /// Whether the source is to be asked when its next operation is due.
    pub(super) fn wants_schedule(&self) -> bool {
        matches!(self, RequestSchedule::Scheduled { next: None, .. })
    }

    /// The next operation is due so many ticks after the start of the threads; answers the tick.
    pub(super) fn schedule(&mut self, at: u64) -> u64 {
        match self {
            RequestSchedule::Scheduled { origin, next } => *next.insert(origin.saturating_add(at)),
            _ => 0,
        }
    }

    /// The operation that `next` named is taken.
    pub(super) fn take(&mut self) {
        match self {
            RequestSchedule::Closed { thinking, .. } => drop(thinking.pop_front()),
            RequestSchedule::Open(open) => open.take(),
            RequestSchedule::Scheduled { next, .. } => *next = None,
        }
    }

    /// An operation has ended.
    pub(super) fn answered(&mut self, now: u64) {
        if let RequestSchedule::Closed { think, thinking } = self {
            thinking.push_back(now + *think);
        }
    }

    /// The window opens. Answers whether the arrivals begin anew, at another rate than before.
    pub(super) fn enter_window(&mut self, opened_at: u64) -> bool {
        match self {
            // What a trace wrote before the window is read in it.
            RequestSchedule::Closed { .. } | RequestSchedule::Scheduled { .. } => false,
            RequestSchedule::Open(open) => open.enter_window(opened_at),
        }
    }

    /// Requests that are due before `end` and will not be sent.
    pub(super) fn skipped(&mut self, end: u64) -> u64 {
        match self {
            RequestSchedule::Closed { .. } => 0,
            RequestSchedule::Scheduled { next, .. } => u64::from(next.is_some_and(|due| due < end)),
            RequestSchedule::Open(open) => crate::pace::Pacer::skip_to(open, end),
        }
    }

    pub(super) fn is_open(&self) -> bool {
        !matches!(self, RequestSchedule::Closed { .. })
    }
}
