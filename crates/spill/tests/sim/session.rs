//! A store used while calls fail, and what it must contain.

use spill::{Durability, Error, Options, Result};

use crate::disk::{End, Fault, Kind, Loss, Sim};
use crate::history::{History, Model, Traffic, Write};
use crate::random::Random;
use crate::target::{Target, is_device_error};

pub struct Session {
    pub sim: Sim,
    options: Options,
    target: Option<Target>,
    /// Acknowledged writes, and their effect.
    pub model: Model,
    history: History,
    /// How many of these are certainly durable.
    durable: usize,
    /// The content if a write of unknown effect took effect.
    maybe: Option<Model>,
    /// It was seen to refuse all writes.
    halted: bool,
    /// Unsynced data may be gone: a failed sync dropped it.
    dropped_data: bool,
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
            dropped_data: false,
            story,
            errors: 0,
        }
    }

    fn fail(&self, what: impl std::fmt::Display) -> ! {
        let fired = self.sim.fired().map(|call| format!(" ({call} failed)")).unwrap_or_default();
        panic!("{}{fired}: {what}", self.story)
    }

    /// The fault that hit, if it concerns a sync.
    fn sync_failed(&self) -> bool {
        self.sim.fired().is_some_and(|call| matches!(call.kind, Kind::Sync | Kind::SyncDir))
    }

    /// The store, opened if needed; a fault may hit the opening once.
    fn target(&mut self) -> &mut Target {
        if self.target.is_none() {
            let before = self.sim.fired();
            let opened = match Target::open(&self.sim, &self.options) {
                Err(error) if is_device_error(&error) && self.sim.fired() != before => {
                    self.story.push_str(", which hit an opening");
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

    /// Does something that must succeed, if need be at the second try.
    fn retry_once<R>(&mut self, mut what: impl FnMut(&mut Target) -> Result<R>) -> Option<R> {
        let before = self.sim.fired();
        match what(self.target()) {
            Ok(done) => return Some(done),
            // Data dropped by a failed sync may be damaged until reopening.
            Err(Error::Damaged { .. }) if self.dropped_data => return None,
            Err(error) => {
                let hit = self.sim.fired() != before;
                if !is_device_error(&error) || !hit {
                    self.fail(error);
                }
                self.note(&error);
            }
        }
        match what(self.target()) {
            Ok(done) => Some(done),
            Err(Error::Damaged { .. }) if self.dropped_data => None,
            Err(error) => self.fail(format_args!("second attempt: {error}")),
        }
    }

    fn note(&mut self, error: &Error) {
        self.errors += 1;
        if !is_device_error(error) {
            self.fail(format_args!("not a device error: {error}"));
        }
    }

    /// A fault was set that makes a failed sync drop data.
    pub fn expect_dropped_data(&mut self, fault: Fault) {
        self.dropped_data = matches!(fault, Fault::LostSync { forget: true });
    }

    fn has_dropped_data(&self) -> bool {
        self.dropped_data && self.sync_failed()
    }

    pub fn write(&mut self, write: &Write) -> Result<()> {
        let result = self.target().write(write);
        match &result {
            Ok(()) => {
                // Later writes decide about a write of unknown effect.
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
                // Only a store that halts now may leave the effect of the write open.
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

    /// One of two states, each followed by `write`.
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
            self.fail(format_args!(
                "neither with nor without the write: {}",
                found.difference(&model)
            ));
        }
    }

    fn check_no_effect(&mut self, write: &Write) {
        for change in write.changes() {
            let expected = self.model.get(change.table, &change.key).cloned();
            if self.maybe.is_some() {
                continue;
            }
            let found = self.retry_once(|target| target.get(change.table, &change.key));
            if found.is_some_and(|found| found != expected) {
                self.fail("a failed write took effect");
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

    /// Whether writes are refused until reopening.
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
        self.retry_once(|target| Model::read(&target.store, false)).unwrap_or_default()
    }

    /// Checks the current content.
    pub fn check(&mut self) {
        let Some(found) = self.retry_once(|target| Model::read(&target.store, true)) else {
            return;
        };
        let right = [Some(&self.model), self.maybe.as_ref()];
        if !right.into_iter().flatten().any(|right| right.digest() == found.digest())
            && !self.has_dropped_data()
        {
            self.fail(format_args!("wrong content: {}", found.difference(&self.model)));
        }
    }

    pub fn check_some(&mut self, traffic: Traffic, random: &mut Random) {
        if self.maybe.is_some() || self.has_dropped_data() {
            return;
        }
        let model = self.model.clone();
        self.retry_once(|target| target.check_some(&model, traffic, random));
    }

    /// Closes, reopens, and checks the content.
    pub fn reopen(&mut self) {
        self.target = None;
        self.halted = false;
        let found = self.read();
        // The opening may have been what failed.
        let least = if self.has_dropped_data() { self.durable } else { self.history.len() };
        self.adopt(found, least);
    }

    fn adopt(&mut self, found: Model, least: usize) {
        let maybe = self.maybe.take().filter(|maybe| maybe.digest() == found.digest());
        if let Some(maybe) = maybe {
            self.model = maybe;
            self.history.push(&self.model);
        } else {
            let counts = least..=self.history.len();
            let Some(count) = self.history.find(&found, counts.clone()) else {
                self.fail(format_args!(
                    "the content is not of {counts:?} writes, but of {:?}: {}",
                    self.history.find(&found, 0..=self.history.len()),
                    found.difference(&self.model)
                ))
            };
            self.history.cut(count);
            self.durable = self.durable.min(count);
            self.model = found;
        }
        self.dropped_data &= !self.sync_failed();
    }

    /// Final checks: now, after each kind of end, and reopened. Returns the number of errors.
    pub fn check_ends(mut self) -> usize {
        self.check();
        self.check_each_end();
        self.reopen();
        self.check();
        self.scrub();
        self.errors
    }

    /// What the next process would find after each kind of end.
    pub fn check_each_end(&self) {
        let kept = if self.has_dropped_data() { self.durable } else { self.history.len() };
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
                dropped_data: false,
                story: format!("{} ({fired}), {end:?} after {}", self.story, self.sim.calls()),
                errors: 0,
            };
            let alone = other.read_in_read_only_mode();
            let found = other.read();
            if alone.digest() != found.digest() {
                let difference = alone.difference(&found);
                other.fail(format_args!("a read-only opening finds something else: {difference}"));
            }
            other.adopt(found, least);
            other.scrub();
        }
    }

    /// What a read-only opening finds; it changes nothing.
    pub fn read_in_read_only_mode(&self) -> Model {
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
            // The end came before there was a store.
            Err(Error::NoStore { .. }) => Ok(Model::default()),
            Err(error) => Err(error),
        };
        if self.sim.contents() != before {
            self.fail("a read-only opening changed something");
        }
        found.unwrap_or_else(|error| self.fail(format_args!("read-only opening: {error}")))
    }

    fn scrub(&mut self) {
        if self.has_dropped_data() {
            return;
        }
        self.retry_once(|target| target.store.scrub());
    }
}
