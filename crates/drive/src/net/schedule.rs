//! When the next operation is to be issued.

use std::collections::VecDeque;
use std::time::Duration;

use model::Pacing;

use crate::clock::Ticks;
use crate::frontier::PhaseGate;
use crate::pace::{OpenLoop, still_due};
use crate::plan::{LoadPlan, PhaseKind};

/// What a thread does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NextAction {
    /// Issue an operation that was due at this tick.
    Issue(u64),
    /// Wait until this tick, unless an answer comes.
    WaitUntil(u64),
    /// Wait for an answer.
    WaitForAnswer,
    /// No operation is left.
    Done,
}

pub(super) enum RequestSchedule {
    /// A fixed number of operations in flight; each is followed by another when it is answered,
    /// after a think time.
    Closed {
        think: u64,
        /// When each operation that is not in flight is to be issued; ascending.
        thinking: VecDeque<u64>,
    },
    Open(OpenLoop),
    /// The source has the due instants; that of the next operation, where one is drawn.
    Scheduled {
        origin: u64,
        next: Option<u64>,
    },
}

impl RequestSchedule {
    /// `most`: operations that a closed loop keeps in flight.
    pub(super) fn new(
        plan: &LoadPlan,
        thread: usize,
        clock: &Ticks,
        origin: u64,
        most: usize,
    ) -> Self {
        match plan.shape.pacing {
            Pacing::Closed { think } => RequestSchedule::Closed {
                think: clock.ticks_of(think.min(Duration::from_secs(3600))),
                thinking: std::iter::repeat_n(origin, most).collect(),
            },
            _ if plan.trace.is_some() && plan.phase == PhaseKind::Mix => {
                RequestSchedule::Scheduled { origin, next: None }
            }
            Pacing::Open { .. } | Pacing::Recorded { .. } => {
                RequestSchedule::Open(OpenLoop::of(plan, thread, clock, origin))
            }
        }
    }

    pub(super) fn next(&self, now: u64, gate: &PhaseGate) -> NextAction {
        match self {
            RequestSchedule::Closed { .. } if gate.closed() => NextAction::Done,
            RequestSchedule::Closed { thinking, .. } => match thinking.front() {
                Some(due) if *due <= now => NextAction::Issue(*due),
                Some(due) => NextAction::WaitUntil(*due),
                None => NextAction::WaitForAnswer,
            },
            RequestSchedule::Open(open) => match open.next_due(gate) {
                Some(due) if due <= now => NextAction::Issue(due),
                Some(due) => NextAction::WaitUntil(due),
                None => NextAction::Done,
            },
            RequestSchedule::Scheduled { next, .. } => match *next {
                Some(due) if !still_due(due, gate) => NextAction::Done,
                Some(due) if due <= now => NextAction::Issue(due),
                Some(due) => NextAction::WaitUntil(due),
                None => NextAction::WaitForAnswer,
            },
        }
    }

    /// Whether the due instant of the next operation must be taken from the source.
    pub(super) fn needs_next(&self) -> bool {
        matches!(self, RequestSchedule::Scheduled { next: None, .. })
    }

    /// Sets when the next operation is due, in ticks after the start of the threads; returns the tick.
    pub(super) fn set_next(&mut self, at: u64) -> u64 {
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

    /// The window opens. Returns whether arrivals restart at another rate.
    pub(super) fn enter_window(&mut self, opened_at: u64) -> bool {
        match self {
            // What a trace wrote before the window is read in it.
            RequestSchedule::Closed { .. } | RequestSchedule::Scheduled { .. } => false,
            RequestSchedule::Open(open) => open.enter_window(opened_at),
        }
    }

    /// Counts the requests that are due before `end` and will not be sent.
    pub(super) fn skipped(&mut self, end: u64) -> u64 {
        match self {
            RequestSchedule::Closed { .. } => 0,
            RequestSchedule::Scheduled { next, .. } => u64::from(next.is_some_and(|due| due < end)),
            RequestSchedule::Open(open) => crate::pace::Pacer::count_skipped(open, end),
        }
    }

    pub(super) fn is_open(&self) -> bool {
        !matches!(self, RequestSchedule::Closed { .. })
    }
}
