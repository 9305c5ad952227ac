//! Whether what was seen of a key could have been: linearizability of one register. Keys are
//! checked one by one, for a history is linearizable if that of each key is (Herlihy and Wing,
//! TOPLAS 1990). The search goes along the history and keeps every state that is still possible
//! (Lowe, "Testing for linearizability", 2017).

use std::collections::HashSet;

/// What a key holds; None: it is not there.
pub type Held = Option<u64>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Did {
    Wrote(Held),
    Saw(Held),
}

/// Something that was done with a key, and when it began and ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    pub begin: u64,
    pub end: u64,
    pub did: Did,
}

/// None if there is an order of the events that explains what was seen, where events that do not
/// overlap stay in theirs; else the event that cannot be explained, and its place.
pub fn contradiction(events: &[Event]) -> Option<(usize, Event)> {
    let mut marks: Vec<(u64, bool, usize)> = events
        .iter()
        .enumerate()
        .flat_map(|(number, event)| [(event.begin, false, number), (event.end, true, number)])
        .collect();
    // Of those at the same time the begins come first: then they overlap.
    marks.sort_unstable();
    let mut pending: Vec<Option<usize>> = Vec::new();
    // What the key holds, and which of the pending events have had their effect.
    let mut states: HashSet<(Held, u64)> = HashSet::from([(None, 0)]);
    for (_, is_end, number) in marks {
        if !is_end {
            let free = pending.iter().position(Option::is_none).unwrap_or(pending.len());
            assert!(free < 64, "more events overlap than the search has room for");
            pending.resize(pending.len().max(free + 1), None);
            pending[free] = Some(number);
            continue;
        }
        let place = pending.iter().position(|pending| *pending == Some(number)).unwrap();
        states = ended(&states, &pending, events, place);
        pending[place] = None;
        if states.is_empty() {
            return Some((number, events[number]));
        }
    }
    None
}

/// The states in which the pending event at `place` has had its effect, without its mark.
fn ended(
    states: &HashSet<(Held, u64)>,
    pending: &[Option<usize>],
    events: &[Event],
    place: usize,
) -> HashSet<(Held, u64)> {
    let mut open: Vec<(Held, u64)> = states.iter().copied().collect();
    let mut known: HashSet<(Held, u64)> = states.clone();
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
                Did::Wrote(value) => value,
                Did::Saw(value) if value == held => held,
                Did::Saw(_) => continue,
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
    use super::Did::{Saw, Wrote};
    use super::*;

    fn is_fine(events: &[(u64, u64, Did)]) -> bool {
        let events: Vec<Event> =
            events.iter().map(|&(begin, end, did)| Event { begin, end, did }).collect();
        contradiction(&events).is_none()
    }

    #[test]
    fn checker_accepts_linearizable_and_rejects_other_histories() {
        assert!(is_fine(&[(0, 1, Saw(None)), (2, 3, Wrote(Some(1))), (4, 5, Saw(Some(1)))]));
        // Seen before it was written.
        assert!(!is_fine(&[(0, 1, Saw(Some(1))), (2, 3, Wrote(Some(1)))]));
        // Old after new.
        let writes = [(0, 1, Wrote(Some(1))), (2, 9, Wrote(Some(2)))];
        let both = |one, other| [&writes[..], &[(3, 4, Saw(one)), (5, 6, Saw(other))]].concat();
        assert!(is_fine(&both(Some(1), Some(2))));
        assert!(is_fine(&both(Some(2), Some(2))));
        assert!(!is_fine(&both(Some(2), Some(1))));
        // A delete that comes back.
        let deleted = [(0, 1, Wrote(Some(1))), (2, 3, Wrote(None))];
        assert!(!is_fine(&[&deleted[..], &[(4, 5, Saw(Some(1)))]].concat()));
        assert!(is_fine(&[&deleted[..], &[(4, 5, Saw(None))]].concat()));
        // Two writes at once may come in either order, but in the same for all.
        let at_once = [(0, 9, Wrote(Some(1))), (0, 9, Wrote(Some(2)))];
        assert!(is_fine(&[&at_once[..], &[(10, 11, Saw(Some(1)))]].concat()));
        assert!(is_fine(&[&at_once[..], &[(10, 11, Saw(Some(2)))]].concat()));
        let two = [(10, 11, Saw(Some(1))), (12, 13, Saw(Some(2)))];
        assert!(!is_fine(&[&at_once[..], &two].concat()));
    }
}
