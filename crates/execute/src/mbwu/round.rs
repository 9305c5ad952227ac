//! One round, and the data that it needs.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use model::Run;
use store::{Directory, Distribution, StoreUrl};
use study::{Segment, Step};
use workload::Workload;

use super::{MbwuEvaluation, check};
use crate::dataset_marker::{DatasetName, MarkerLocation};
use crate::directories::check_store_owner;
use crate::error::ExecuteError;
use crate::event::{Event, Listener};
use crate::load_step::LoadStep;
use crate::run_context::RunContext;
use crate::session::StepAgenda;

/// A single step.
struct SingleStep;

impl StepAgenda for SingleStep {
    fn next(&mut self, _: &Run) -> Option<Step> {
        None
    }

    fn preloads(&self) -> bool {
        false
    }
}

impl MbwuEvaluation {
    /// Loads the data of a round. All of `stores` that lack it are loaded at the same time, each write
    /// to each of them, at the rate of `[load]`.
    pub(super) fn load(
        &self,
        context: &mut RunContext<'_>,
        step: LoadStep<'_>,
        (stores, measured): (&[StoreUrl], &[StoreUrl]),
        fresh: &mut BTreeSet<PathBuf>,
        listener: &mut dyn Listener,
    ) -> Result<(), ExecuteError> {
        let mut urls = Vec::new();
        for url in stores {
            let stale = self.reload && measured.contains(url) && !fresh.contains(&url.path);
            if stale || !check::holds(url, step)? {
                urls.push(url.clone());
            }
        }
        if urls.is_empty() {
            return Ok(());
        }
        let mut directories = self.claim(&urls, step)?;
        directories.iter_mut().try_for_each(Directory::clear)?;
        listener
            .on_event(Event::Preparing { step: step.step, why: "the devices hold no fresh data" });
        let segment = self.segment(&urls[0]);
        let mut agenda = SingleStep;
        let mut keep = |_: &Run| Ok(());
        let mut session = context.session(&segment, &mut agenda, &mut keep, listener);
        session.marker = MarkerLocation::Directories(directories);
        let store = drive::open_group(&urls, Distribution::All)?;
        let workload = Arc::new(Workload::new(&step.load.workload)?);
        session.prepare(&store, &workload, step)?;
        let (marker, name) = (session.marker, session.name);
        drop(store);
        close(marker, name)?;
        fresh.extend(urls.into_iter().map(|url| url.path));
        Ok(())
    }

    /// Measures a round on these stores; none if it was stopped.
    pub(super) fn round(
        &self,
        context: &mut RunContext<'_>,
        step: LoadStep<'_>,
        urls: &[StoreUrl],
        keep: &mut dyn FnMut(Run) -> Result<Run, ExecuteError>,
        listener: &mut dyn Listener,
    ) -> Result<Option<Run>, ExecuteError> {
        let directories = self.claim(urls, step)?;
        directories.iter().try_for_each(Directory::drop_page_cache)?;
        let segment = self.segment(&urls[0]);
        let mut saved_run = None;
        let mut keep = |run: &Run| {
            saved_run = Some(keep(run.clone())?);
            Ok(())
        };
        let stop = Arc::clone(context.stop);
        let mut agenda = SingleStep;
        let mut session = context.session(&segment, &mut agenda, &mut keep, listener);
        session.marker = MarkerLocation::Directories(directories);
        session.other_stores = urls[1..].iter().map(|url| url.path.clone()).collect();
        session.find_data(step)?;
        if let Some(why) = session.load_first {
            return Err(ExecuteError::Failed(format!(
                "{}: {why}, though it was loaded",
                step.label
            )));
        }
        let store = drive::open_group(urls, Distribution::InTurn)?;
        let closed = session.run_on_store(store, step.step.clone())?;
        close(closed.marker, closed.name)?;
        Ok(saved_run.filter(|_| !stop.load(Ordering::Relaxed)))
    }

    fn claim(&self, urls: &[StoreUrl], step: LoadStep<'_>) -> Result<Vec<Directory>, ExecuteError> {
        let one = |url: &StoreUrl| {
            let directory = Directory::claim(url, check::needed(url, step))?;
            check_store_owner(&directory, url)?;
            Ok(directory)
        };
        urls.iter().map(one).collect()
    }

    fn segment(&self, store: &StoreUrl) -> Segment {
        let first = &self.plan.segments[0];
        Segment { store: store.clone(), steps: Vec::new(), ..first.clone() }
    }
}

/// Sets the marker: the stores are closed, so all writes are in their files.
fn close(mut marker: MarkerLocation, name: Option<DatasetName>) -> Result<(), ExecuteError> {
    match name {
        Some(name) => marker.set(&name),
        None => Ok(()),
    }
}
