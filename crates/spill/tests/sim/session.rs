//! A store that is used while calls fail, and what must be in it all the same.

use spill::{Durability, Error, Options, Result};

use crate::disk::{End, Fault, Kind, Loss, Sim};
use crate::history::{History, Model, Traffic, Write};
use crate::random::Random;
use crate::target::{Target, is_of_the_device};

pub struct Session {
    pub sim: Sim,
    options: Options,
    target: Option<Target>,
    /// What was acknowledged and what it comes to.
    pub model: Model,
    history: History,
    /// How many of these writes are on the device for certain.
    durable: usize,
    /// What it is if a write of unknown effect has come to pass.
    maybe: Option<Model>,
    /// It has been seen to refuse all writes.
    halted: bool,
    /// What was not synced may be gone: a failed sync forgot it.
    forgot: bool,
    /// Named in each failure.
    story: String,
    pub errors: usize,
}

impl Session {
    pub fn new(sim: Sim, options: Options, story: String) -> Session {
        Session {
            sim,
            options,
            target: None,
            model: Model::default(),
            history: History::from(&Model::default()),
            durable: 0,
            maybe: None,
            halted: false,
            forgot: false,
            story,
            errors: 0,
        }
    }

    fn fail(&self, what: impl std::fmt::Display) -> ! {
        let fired = self.sim.fired().map(|call| format!(" ({call} failed)")).unwrap_or_default();
        panic!("{}{fired}: {what}", self.story)
    }

    /// The fault that has been, if it concerns a sync.
    fn sync_failed(&self) -> bool {
        self.sim.fired().is_some_and(|call| matches!(call.kind, Kind::Sync | Kind::SyncDir))
    }

    /// The store, opened if it is not; a fault may hit the opening once.
    fn target(&mut self) -> &mut Target {
        if self.target.is_none() {
            let before = self.sim.fired();
            let opened = match Target::open(&self.sim, &self.options) {
                Err(error) if is_of_the_device(&error) && self.sim.fired() != before => {
                    self.story.push_str(", which was amid an opening");
                    self.note(&error);
                    Target::open(&self.sim, &self.options)
                }
                other => other,
            };
            match opened {
                Ok(target) => self.target = Some(target),
                Err(error) => self.fail(format_args!("opening: {error}")),
            }
        }
        self.target.as_mut().expect("just opened")
    }

    pub fn try_to_open(&mut self) -> Result<()> {
        self.target = Some(Target::open(&self.sim, &self.options)?);
        Ok(())
    }

    /// Does something that has to succeed, after a second try if the fault hit the first.
    fn try_twice<R>(&mut self, mut what: impl FnMut(&mut Target) -> Result<R>) -> Option<R> {
        let before = self.sim.fired();
        match what(self.target()) {
            Ok(done) => return Some(done),
            // What a failed sync forgot may be damaged until it is opened again.
            Err(Error::Damaged { .. }) if self.forgot => return None,
            Err(error) => {
                let hit = self.sim.fired() != before;
                if !is_of_the_device(&error) || !hit {
                    self.fail(error);
                }
                self.note(&error);
            }
        }
        match what(self.target()) {
            Ok(done) => Some(done),
            Err(Error::Damaged { .. }) if self.forgot => None,
            Err(error) => self.fail(format_args!("the second time: {error}")),
        }
    }

    fn note(&mut self, error: &Error) {
        self.errors += 1;
        if !is_of_the_device(error) {
            self.fail(format_args!("not an error of the device: {error}"));
        }
    }

    /// A fault was set that makes a failed sync forget.
    pub fn expect_forgetting(&mut self, fault: Fault) {
        self.forgot = matches!(fault, Fault::LostSync { forget: true });
    }

    fn has_forgotten(&self) -> bool {
        self.forgot && self.sync_failed()
    }

    pub fn write(&mut self, write: &Write) -> Result<()> {
        let result = self.target().write(write);
        match &result {
            Ok(()) => {
                // What follows a write of unknown effect in the store has decided about it.
                if let Some(maybe) = self.maybe.take() {
                    self.decide(maybe, write);
                } else {
                    self.model.apply(write);
                }
                self.history.push(&self.model);
                if self.options.durability == Durability::Sync {
                    self.durable = self.history.len();
                }
            }
            Err(error) => {
                self.note(error);
                // Only a store that halts now may leave it open what the write has done.
                if !self.halted && self.is_halted() {
                    let mut after = self.model.clone();
                    after.apply(write);
                    self.maybe = Some(after);
                } else {
                    self.check_no_effect(write);
                }
            }
        }
        result
    }

    /// The state is one of two, each with `write` after it.
    fn decide(&mut self, mut maybe: Model, write: &Write) {
        let mut model = self.model.clone();
        let before = maybe.clone();
        model.apply(write);
        maybe.apply(write);
        let found = self.read();
        if found.digest() == maybe.digest() {
            self.history.push(&before);
            self.model = maybe;
        } else if found.digest() == model.digest() {
            self.model = model;
        } else {
            self.fail(format_args!("neither with nor without: {}", found.difference(&model)));
        }
    }

    fn check_no_effect(&mut self, write: &Write) {
        for change in write.changes() {
            let expected = self.model.get(change.table, &change.key).cloned();
            if self.maybe.is_some() {
                continue;
            }
            let found = self.try_twice(|target| target.get(change.table, &change.key));
            if found.is_some_and(|found| found != expected) {
                self.fail("a write that answered an error has an effect");
            }
        }
    }

    pub fn sync(&mut self) -> Result<()> {
        let done = self.target().store.sync();
        self.synced(done)
    }

    pub fn flush(&mut self) -> Result<()> {
        let done = self.target().store.flush();
        self.synced(done)
    }

    pub fn settle(&mut self) -> Result<()> {
        let done = self.target().settle().map(drop);
        self.synced(done)
    }

    fn synced(&mut self, done: Result<()>) -> Result<()> {
        match &done {
            Ok(()) => {
                if let Some(maybe) = self.maybe.take() {
                    let found = self.read();
                    if found.digest() == maybe.digest() {
                        self.model = maybe;
                        self.history.push(&self.model);
                    }
                }
                self.durable = self.history.len();
            }
            Err(error) => {
                self.note(error);
                self.is_halted();
            }
        }
        done
    }

    /// Whether nothing more is written until it is opened again.
    fn is_halted(&mut self) -> bool {
        match self.target().store.sync() {
            Ok(()) => self.durable = self.history.len(),
            Err(error) => {
                self.halted |= matches!(error, Error::Halted { .. });
                self.note(&error);
            }
        }
        self.halted
    }

    pub fn read(&mut self) -> Model {
        self.try_twice(|target| Model::read(&target.store, false)).unwrap_or_default()
    }

    /// What is read now is right.
    pub fn check(&mut self) {
        let Some(found) = self.try_twice(|target| Model::read(&target.store, true)) else { return };
        let right = [Some(&self.model), self.maybe.as_ref()];
        if !right.into_iter().flatten().any(|right| right.digest() == found.digest())
            && !self.has_forgotten()
        {
            self.fail(format_args!("what is read is wrong: {}", found.difference(&self.model)));
        }
    }

    pub fn check_some(&mut self, traffic: Traffic, random: &mut Random) {
        if self.maybe.is_some() || self.has_forgotten() {
            return;
        }
        let model = self.model.clone();
        self.try_twice(|target| target.check_some(&model, traffic, random));
    }

    /// Closes, and finds what must be there.
    pub fn reopen(&mut self) {
        self.target = None;
        self.halted = false;
        let found = self.read();
        // The opening may have been what failed.
        let least = if self.has_forgotten() { self.durable } else { self.history.len() };
        self.settle_on(found, least);
    }

    fn settle_on(&mut self, found: Model, least: usize) {
        let maybe = self.maybe.take().filter(|maybe| maybe.digest() == found.digest());
        if let Some(maybe) = maybe {
            self.model = maybe;
            self.history.push(&self.model);
        } else {
            let counts = least..=self.history.len();
            let Some(count) = self.history.find(&found, counts.clone()) else {
                self.fail(format_args!(
                    "what is found is not of {counts:?} writes, but of {:?}: {}",
                    self.history.find(&found, 0..=self.history.len()),
                    found.difference(&self.model)
                ))
            };
            self.history.cut(count);
            self.durable = self.durable.min(count);
            self.model = found;
        }
        self.forgot &= !self.sync_failed();
    }

    /// The last look: now, after each kind of end, and opened again. How many errors there were.
    pub fn check_ends(mut self) -> usize {
        self.check();
        self.check_each_end();
        self.reopen();
        self.check();
        self.scrub();
        self.errors
    }

    /// What the next process would find if everything ended now, each way.
    pub fn check_each_end(&self) {
        let kept = if self.has_forgotten() { self.durable } else { self.history.len() };
        let fired = self.sim.fired().map(|call| call.to_string()).unwrap_or_default();
        let cuts = [Loss::Everything, Loss::Some(4), Loss::Some(7), Loss::Earlier];
        let cuts = cuts.map(|loss| (End::PowerCut(loss), self.durable));
        for (end, least) in std::iter::once((End::Kill, kept)).chain(cuts) {
            let sim = self.sim.image(end, self.sim.calls());
            sim.set_capacity(None);
            let mut other = Session {
                sim,
                options: self.options.clone(),
                target: None,
                model: self.model.clone(),
                history: self.history.clone(),
                durable: self.durable,
                maybe: self.maybe.clone(),
                halted: false,
                forgot: false,
                story: format!("{} ({fired}), {end:?} after {}", self.story, self.sim.calls()),
                errors: 0,
            };
            let alone = other.read_alone();
            let found = other.read();
            if alone.digest() != found.digest() {
                let difference = alone.difference(&found);
                other.fail(format_args!("reading alone finds something else: {difference}"));
            }
            other.settle_on(found, least);
            other.scrub();
        }
    }

    /// What whoever opens it for reading alone finds, and leaves as it is.
    pub fn read_alone(&self) -> Model {
        let before = self.sim.contents();
        let options = Options { read_only: true, ..self.options.clone() };
        let found = match Target::open(&self.sim, &options) {
            Ok(target) => {
                let table = target.store.tables().first().map(|name| target.store.table(name));
                if let Some(table) = table {
                    let refused = table.and_then(|table| table.put(b"k", b"v"));
                    assert!(matches!(refused, Err(Error::ReadOnly)), "{refused:?}");
                }
                Model::read(&target.store, false)
            }
            // The end came before there was one.
            Err(Error::NoStore { .. }) => Ok(Model::default()),
            Err(error) => Err(error),
        };
        if self.sim.contents() != before {
            self.fail("reading alone changed something");
        }
        found.unwrap_or_else(|error| self.fail(format_args!("reading alone: {error}")))
    }

    fn scrub(&mut self) {
        if self.has_forgotten() {
            return;
        }
        self.try_twice(|target| target.store.scrub());
    }
}
