//! A linearizability checker for one register. Keys are checked one by one, since a history is
//! linearizable if that of each key is (Herlihy and Wing, TOPLAS 1990). The search follows the
//! history and keeps every possible state (Lowe, "Testing for linearizability", 2017).

use std::collections::HashSet;

/// The value of a key; `None`: absent.
pub type RegisterValue = Option<u64>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Wrote(RegisterValue),
    Saw(RegisterValue),
}

/// An operation on a key, with its start and end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    pub begin: u64,
    pub end: u64,
    pub did: Action,
}

/// The first event that no linearization explains, with its index; `None` if there is a
/// linearization.
pub fn contradiction(events: &[Event]) -> Option<(usize, Event)> {
    let mut marks: Vec<(u64, bool, usize)> = events
        .iter()
        .enumerate()
        .flat_map(|(number, event)| [(event.begin, false, number), (event.end, true, number)])
        .collect();
    // Starts sort before ends at the same time, so such events overlap.
    marks.sort_unstable();
    let mut pending: Vec<Option<usize>> = Vec::new();
    // The value of the key, and which pending events have taken effect.
    let mut states: HashSet<(RegisterValue, u64)> = HashSet::from([(None, 0)]);
    for (_, is_end, number) in marks {
        if !is_end {
            let free = pending.iter().position(Option::is_none).unwrap_or(pending.len());
            assert!(free < 64, "too many overlapping events");
            pending.resize(pending.len().max(free + 1), None);
            pending[free] = Some(number);
            continue;
        }
        let place = pending.iter().position(|pending| *pending == Some(number)).unwrap();
        states = take_effect(&states, &pending, events, place);
        pending[place] = None;
        if states.is_empty() {
            return Some((number, events[number]));
        }
    }
    None
}

/// The states in which the pending event at `place` has taken effect, without its bit.
fn take_effect(
    states: &HashSet<(RegisterValue, u64)>,
    pending: &[Option<usize>],
    events: &[Event],
    place: usize,
) -> HashSet<(RegisterValue, u64)> {
    let mut open: Vec<(RegisterValue, u64)> = states.iter().copied().collect();
    let mut known: HashSet<(RegisterValue, u64)> = states.clone();
    let mut left = HashSet::new();
    while let Some((held, done)) = open.pop() {
        if done & 1 << place != 0 {
            left.insert((held, done & !(1 << place)));
            continue;
        }
        for (other, number) in pending.iter().enumerate() {
            let Some(number) = number else { continue };
            if done & 1 << other != 0 {
                continue;
            }
            let held = match events[*number].did {
                Action::Wrote(value) => value,
                Action::Saw(value) if value == held => held,
                Action::Saw(_) => continue,
            };
            let state = (held, done | 1 << other);
            if known.insert(state) {
                open.push(state);
            }
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use super::Action::{Saw, Wrote};
    use super::*;

    fn is_linearizable(events: &[(u64, u64, Action)]) -> bool {
        let events: Vec<Event> =
            events.iter().map(|&(begin, end, did)| Event { begin, end, did }).collect();
        contradiction(&events).is_none()
    }

    #[test]
    fn checker_accepts_linearizable_and_rejects_other_histories() {
        assert!(is_linearizable(&[
            (0, 1, Saw(None)),
            (2, 3, Wrote(Some(1))),
            (4, 5, Saw(Some(1)))
        ]));
        // Read before it was written.
        assert!(!is_linearizable(&[(0, 1, Saw(Some(1))), (2, 3, Wrote(Some(1)))]));
        // An old value after a new one.
        let writes = [(0, 1, Wrote(Some(1))), (2, 9, Wrote(Some(2)))];
        let both = |one, other| [&writes[..], &[(3, 4, Saw(one)), (5, 6, Saw(other))]].concat();
        assert!(is_linearizable(&both(Some(1), Some(2))));
        assert!(is_linearizable(&both(Some(2), Some(2))));
        assert!(!is_linearizable(&both(Some(2), Some(1))));
        // A deleted value that returns.
        let deleted = [(0, 1, Wrote(Some(1))), (2, 3, Wrote(None))];
        assert!(!is_linearizable(&[&deleted[..], &[(4, 5, Saw(Some(1)))]].concat()));
        assert!(is_linearizable(&[&deleted[..], &[(4, 5, Saw(None))]].concat()));
        // Concurrent writes may take either order, but all readers must agree.
        let at_once = [(0, 9, Wrote(Some(1))), (0, 9, Wrote(Some(2)))];
        assert!(is_linearizable(&[&at_once[..], &[(10, 11, Saw(Some(1)))]].concat()));
        assert!(is_linearizable(&[&at_once[..], &[(10, 11, Saw(Some(2)))]].concat()));
        let two = [(10, 11, Saw(Some(1))), (12, 13, Saw(Some(2)))];
        assert!(!is_linearizable(&[&at_once[..], &two].concat()));
    }
}
