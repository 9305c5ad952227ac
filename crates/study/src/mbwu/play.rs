//! One round, and the data that it needs.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use record::Run;
use store::{Directory, Sharing, Store, StoreUrl, Visit, open_together};
use workload::Workload;

use super::{Mbwu, check};
use crate::engine::{Event, Listener, Scene, not_anothers};
use crate::error::StudyError;
use crate::keeper::Keeper;
use crate::plan::{Segment, Step};
use crate::session::{Agenda, Closed, Embedded, Session};

/// A single step.
struct Once;

impl Agenda for Once {
    fn next(&mut self, _: &Run) -> Option<Step> {
        None
    }

    fn preloads(&self) -> bool {
        false
    }
}

/// Loads what a step needs and asks nothing.
struct Filling<'a>(Session<'a>, Step);

impl Visit for Filling<'_> {
    type Output = Result<Closed, StudyError>;

    fn visit<S: Store>(self, store: S) -> Self::Output {
        let Filling(mut session, step) = self;
        let workload = Arc::new(Workload::new(&step.workload)?);
        session.prepare(&Arc::new(store), &workload, &step)?;
        Ok(Closed { keeper: session.keeper, name: session.name, next: None, copy: false })
    }
}

impl Mbwu {
    /// Sees to it that the first `count` devices hold the data. All that lack it get it at the
    /// same time, each write to each of them, at the rate of `[load]`. Devices that come
    /// later are loaded with the first of them.
    pub(super) fn load(
        &self,
        scene: &mut Scene<'_>,
        step: &Step,
        count: usize,
        fresh: &mut [bool],
        listener: &mut dyn Listener,
    ) -> Result<(), StudyError> {
        let until = if count == 1 { 1 } else { self.folders.len() };
        let mut lacking = Vec::new();
        for (at, folder) in self.folders[..until].iter().enumerate() {
            let url = self.store.at(folder);
            let holds = check::holds(&url, step)?;
            if !holds || self.reload && !fresh[at] && at < count {
                lacking.push((at, url));
            }
        }
        if lacking.is_empty() {
            return Ok(());
        }
        let urls: Vec<StoreUrl> = lacking.iter().map(|(_, url)| url.clone()).collect();
        let mut directories = self.claim(&urls, step)?;
        directories.iter_mut().try_for_each(Directory::clear)?;
        listener.hear(Event::Preparing { step, why: "the devices hold no fresh data" });
        let segment = self.segment(&urls[0]);
        let mut once = Once;
        let mut keep = |_: &Run| Ok(());
        let mut session = scene.session(&segment, &mut once, &mut keep, listener);
        session.keeper = Keeper::Directories(directories);
        let closed = open_together(&urls, Sharing::All, Filling(session, step.clone()))???;
        close(closed)?;
        for (at, _) in lacking {
            fresh[at] = true;
        }
        Ok(())
    }

    /// Measures a round on the first `count` devices; none if it was stopped.
    pub(super) fn round(
        &self,
        scene: &mut Scene<'_>,
        step: &Step,
        count: usize,
        keep: &mut dyn FnMut(&Run) -> Result<(), StudyError>,
        listener: &mut dyn Listener,
    ) -> Result<Option<Run>, StudyError> {
        let urls: Vec<StoreUrl> = self.folders[..count].iter().map(|f| self.store.at(f)).collect();
        let directories = self.claim(&urls, step)?;
        directories.iter().try_for_each(Directory::leave_page_cache)?;
        let segment = self.segment(&urls[0]);
        let mut kept = None;
        let mut keep = |run: &Run| {
            keep(run)?;
            kept = Some(run.clone());
            Ok(())
        };
        let stop = Arc::clone(scene.stop);
        let mut once = Once;
        let mut session = scene.session(&segment, &mut once, &mut keep, listener);
        session.keeper = Keeper::Directories(directories);
        session.beside = self.folders[1..count].to_vec();
        session.find_data(step)?;
        if let Some(why) = session.load_first {
            return Err(StudyError::Failed(format!("{}: {why}, though it was loaded", step.label)));
        }
        let closed = open_together(&urls, Sharing::InTurn, Embedded(session, step.clone()))???;
        close(closed)?;
        Ok(kept.filter(|_| !stop.load(Ordering::Relaxed)))
    }

    fn claim(&self, urls: &[StoreUrl], step: &Step) -> Result<Vec<Directory>, StudyError> {
        let one = |url: &StoreUrl| {
            let directory = Directory::claim(url, check::needed(url, step))?;
            not_anothers(&directory, url)?;
            Ok(directory)
        };
        urls.iter().map(one).collect()
    }

    fn segment(&self, store: &StoreUrl) -> Segment {
        let first = &self.plan.segments[0];
        Segment { store: store.clone(), steps: Vec::new(), ..first.clone() }
    }
}

/// The stores are closed, so all that they were given is in their files.
fn close(closed: Closed) -> Result<(), StudyError> {
    let Closed { mut keeper, name, .. } = closed;
    match name {
        Some(name) => keeper.set(&name),
        None => Ok(()),
    }
}
