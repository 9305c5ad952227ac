//! A kernel that counts what a test tells it to.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use host::perf::{Errno, PerfCount, PerfEvent, PerfHandle, PerfKernel, PerfTarget};
use model::Unavailable;

/// What a test says and later looks at.
#[derive(Default)]
pub struct World {
    /// What each event gains in a window, by a part of its text.
    pub gains: Vec<(&'static str, u64)>,
    /// The share of the time for which counters are there; 1 if not said.
    pub running: Option<f64>,
    /// The error number of events, by a part of their text.
    pub refused: Vec<(&'static str, i32)>,
    /// Events that cannot be read after the window, or then show 1.
    pub gone: Vec<&'static str>,
    pub backwards: Vec<&'static str>,
    /// Threads that have ended.
    pub ended: Vec<u32>,
    /// How many events can be open; any number if not said.
    pub descriptors: Option<usize>,
    pub opened: Vec<(PerfEvent, PerfTarget, Option<PerfHandle>)>,
    pub counts: HashMap<usize, PerfCount>,
}

impl World {
    /// The texts of the events that were opened together on a target, leader first.
    pub fn groups(&self, target: PerfTarget) -> Vec<Vec<String>> {
        let mut groups: Vec<(usize, Vec<String>)> = Vec::new();
        for (at, (event, of, leader)) in self.opened.iter().enumerate() {
            if *of != target {
                continue;
            }
            let text = event.encoded.text.clone();
            match leader {
                None => groups.push((at, vec![text])),
                Some(leader) => {
                    groups.iter_mut().find(|(head, _)| *head == leader.0).unwrap().1.push(text);
                }
            }
        }
        groups.into_iter().map(|(_, texts)| texts).collect()
    }

    pub fn config(&self, text: &str) -> [u64; 3] {
        let (event, ..) = self.opened.iter().find(|(e, ..)| e.encoded.text == text).unwrap();
        event.encoded.config
    }
}

#[derive(Clone, Default)]
pub struct Fake(pub Arc<Mutex<World>>);

impl Fake {
    pub fn new(world: World) -> Fake {
        Fake(Arc::new(Mutex::new(world)))
    }

    pub fn boxed(&self) -> Result<Box<dyn PerfKernel>, Unavailable> {
        Ok(Box::new(self.clone()))
    }
}

fn of<T: Copy>(list: &[(&'static str, T)], text: &str) -> Option<T> {
    list.iter().find(|(part, _)| text.contains(part)).map(|(_, value)| *value)
}

impl PerfKernel for Fake {
    fn open(
        &mut self,
        event: &PerfEvent,
        target: PerfTarget,
        leader: Option<PerfHandle>,
    ) -> Result<PerfHandle, Errno> {
        let mut world = self.0.lock().unwrap();
        if matches!(target, PerfTarget::Thread(tid) if world.ended.contains(&tid)) {
            return Err(Errno(3));
        }
        if let Some(errno) = of(&world.refused, &event.encoded.text) {
            return Err(Errno(errno));
        }
        if world.descriptors.is_some_and(|most| world.opened.len() >= most) {
            return Err(Errno(24));
        }
        world.opened.push((event.clone(), target, leader));
        Ok(PerfHandle(world.opened.len() - 1))
    }

    fn switch(&mut self, leader: PerfHandle, on: bool) -> Result<(), Errno> {
        let mut world = self.0.lock().unwrap();
        if on {
            return Ok(());
        }
        let share = world.running.unwrap_or(1.0);
        for at in 0..world.opened.len() {
            let (event, _, of_group) = &world.opened[at];
            if at != leader.0 && *of_group != Some(leader) {
                continue;
            }
            let gain = of(&world.gains, &event.encoded.text).unwrap_or(0) as f64 * share;
            let count = world.counts.entry(at).or_default();
            count.value += gain as u64;
            count.enabled_ns += 1_000_000_000;
            count.running_ns += (1e9 * share) as u64;
        }
        Ok(())
    }

    fn read(&mut self, handle: PerfHandle) -> Result<PerfCount, Errno> {
        let world = self.0.lock().unwrap();
        let text = &world.opened[handle.0].0.encoded.text;
        let mut count = world.counts.get(&handle.0).copied().unwrap_or_default();
        let closed = count.enabled_ns > 0;
        if closed && world.gone.iter().any(|part| text.contains(part)) {
            return Err(Errno(19));
        }
        if world.backwards.iter().any(|part| text.contains(part)) {
            count.value = if closed { 1 } else { 1000 };
        }
        Ok(count)
    }
}
