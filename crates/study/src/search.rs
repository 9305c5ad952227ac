//! The highest rate that holds an objective, found by runs on one open store: which rate is
//! next is for [`analyse::search`] to say, what came of it is measured and kept like any run.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use analyse::search::{
    Client, Conclusion, Cut, Request, Search as Procedure, SearchError, Step as Decision, Trial,
};
use analyse::slo::Objective;
use drive::{Pacing, Ticks, Until};
use record::{Execution, Phase, Run};
use store::StoreUrl;
use workload::Spec;

use crate::asking::{MOST_RATE, Manner};
use crate::engine::{Listener, Scene};
use crate::error::StudyError;
use crate::fleet::{Agents, Crew};
use crate::knobs::{Levels, Seen};
use crate::plan::{Plan, Segment, Step, check_store, step};
use crate::probes::{Probes, measure_idle};
use crate::session::Agenda;
use crate::started::ServerOrder;

/// The closed loop that says about where to begin is this long at most.
const CALIBRATION: Duration = Duration::from_secs(2);
/// The setting that tells what a run was for, and that of the objective.
const ROLE_KEY: &str = "search";
const OBJECTIVE_KEY: &str = "slo";

/// What is searched for, and how each rate is tried.
#[derive(Debug, Clone)]
pub struct Search {
    pub store: StoreUrl,
    /// Started for it, and ended.
    pub server: Option<ServerOrder>,
    /// The workload's name and what it asks.
    pub name: String,
    pub workload: Spec,
    /// An open loop; its rate and length do not matter.
    pub manner: Manner,
    pub objective: Objective,
    /// Its hint is measured here.
    pub request: Request,
    /// Of a trial that need not be longer.
    pub time: Duration,
    /// The machines that ask instead of this one.
    pub agents: Option<Agents>,
    pub probes: Probes,
    pub knobs: Levels,
    /// No trial begins that would not end within this time; loading does not count.
    pub most_time: Option<Duration>,
}

/// A trial and the run that it was.
#[derive(Debug, Clone)]
pub struct Tried {
    pub trial: Trial,
    pub run: Run,
}

/// What was found.
#[derive(Debug)]
pub struct Found {
    pub conclusion: Conclusion,
    /// In their order.
    pub tried: Vec<Tried>,
    /// What the closed loop reached at the beginning, in operations per second.
    pub calibration: Option<f64>,
    /// What ended the search before it had an answer.
    pub fault: Option<StudyError>,
}

impl Search {
    /// The plan of what is certain to run, to begin a results file with.
    pub fn plan(&self) -> Result<Plan, StudyError> {
        self.procedure(None).map_err(|error| StudyError::Request(error.to_string()))?;
        self.store.check()?;
        check_store(&self.store, &self.workload)?;
        let segments = vec![Segment {
            store: self.store.clone(),
            server: self.server.clone(),
            temporary: false,
            steps: vec![self.calibration()?],
            preparing: self.manner.preparing(),
            knobs: Levels::default(),
            copies: false,
        }];
        let plan = Plan {
            seed: self.workload.seed,
            probes: self.probes.clone(),
            ..Plan::new("search", segments)
        };
        let plan = plan.with_knobs(self.knobs.clone());
        match self.agents.clone() {
            Some(agents) => plan.with_agents(agents).map_err(|(key, why)| {
                StudyError::Request(format!("--{} {why}", key.replace('_', "-")))
            }),
            None => Ok(plan),
        }
    }

    /// What a run says of its rate; none of a closed loop.
    pub fn trial(&self, run: &Run) -> Option<Trial> {
        Trial::of(run, &self.objective, Client::of(run))
    }

    /// Searches. Each trial is kept as it ends. When `stop` is raised,
    /// or the store fails, what was found so far is the answer, with the reason.
    pub fn run(
        &self,
        execution: &Execution,
        keep: &mut dyn FnMut(&Run) -> Result<(), StudyError>,
        listener: &mut dyn Listener,
        stop: &Arc<AtomicBool>,
        seen: &Seen,
    ) -> Result<Found, StudyError> {
        let plan = self.plan()?;
        let clock = Ticks::new();
        let mut crew = self.agents.clone().map(Crew::new);
        self.probes.check_required()?;
        let idle = measure_idle(&self.probes, listener, stop);
        let mut scene = Scene {
            clock: &clock,
            execution,
            stop,
            crew: crew.as_mut(),
            probes: &self.probes,
            idle: &idle,
            seen,
        };
        let mut trials = Trials::new(self)?;
        let ended = scene.play(&plan.segments[0], self.calibration()?, &mut trials, keep, listener);
        let cut = match &ended {
            Ok(true) => trials.cut.unwrap_or(Cut::Stopped),
            _ => Cut::Stopped,
        };
        let judged: Vec<Trial> = trials.tried.iter().map(|tried| tried.trial.clone()).collect();
        let conclusion =
            trials.conclusion.unwrap_or_else(|| trials.procedure.cut_short(&judged, cut));
        let fault = ended.err().or(trials.fault);
        Ok(Found { conclusion, tried: trials.tried, calibration: trials.calibration, fault })
    }

    fn procedure(&self, hint: Option<f64>) -> Result<Procedure, SearchError> {
        let highest = Some(self.request.highest.unwrap_or(MOST_RATE));
        Procedure::new(Request { hint, highest, ..self.request })
    }

    /// A closed loop of the same connections: about where to begin.
    fn calibration(&self) -> Result<Step, StudyError> {
        let closed = Manner {
            pacing: Pacing::Closed { think: Duration::ZERO },
            warm_up_rate: None,
            until: Until { operations: None, time: Some(self.time.min(CALIBRATION)) },
            ..self.manner.clone()
        };
        self.step(&closed, 1, "calibration")
    }

    fn step(&self, manner: &Manner, ordinal: u32, role: &str) -> Result<Step, StudyError> {
        let (whom, at) = ((&self.store, self.server.as_ref()), (ordinal, 0, 1));
        let mut step = step(whom, &self.name, &self.workload, Phase::Measure, manner, at)?;
        step.settings.insert(ROLE_KEY.to_owned(), role.to_owned());
        step.settings.insert(OBJECTIVE_KEY.to_owned(), self.objective.to_string());
        self.knobs.settings(&mut step.settings);
        if let Some(agents) = &self.agents {
            agents.settings(&mut step.settings);
        }
        Ok(step)
    }
}

/// Decides after each run which is the next.
struct Trials<'a> {
    search: &'a Search,
    procedure: Procedure,
    /// When the first run began.
    began: Option<Instant>,
    calibration: Option<f64>,
    tried: Vec<Tried>,
    conclusion: Option<Conclusion>,
    cut: Option<Cut>,
    fault: Option<StudyError>,
}

impl<'a> Trials<'a> {
    fn new(search: &'a Search) -> Result<Self, StudyError> {
        let procedure =
            search.procedure(None).map_err(|error| StudyError::Request(error.to_string()))?;
        Ok(Trials {
            search,
            procedure,
            began: None,
            calibration: None,
            tried: Vec::new(),
            conclusion: None,
            cut: None,
            fault: None,
        })
    }

    /// What a run says: the rate at which to begin, or of the rate that was asked.
    fn take(&mut self, run: &Run) -> Result<(), SearchError> {
        match self.search.trial(run) {
            Some(trial) => self.tried.push(Tried { trial, run: run.clone() }),
            None => {
                self.calibration = Some(run.throughput()).filter(|rate| *rate > 0.0);
                self.procedure = self.search.procedure(self.calibration)?;
            }
        }
        Ok(())
    }

    fn decide(&mut self, run: &Run) -> Result<Option<Step>, StudyError> {
        let this = Duration::from_secs_f64(run.seconds);
        let began = *self
            .began
            .get_or_insert_with(|| Instant::now().checked_sub(this).unwrap_or_else(Instant::now));
        self.take(run).map_err(|error| StudyError::Request(error.to_string()))?;
        let judged: Vec<Trial> = self.tried.iter().map(|tried| tried.trial.clone()).collect();
        let (rate, longer) = match self.procedure.next(&judged) {
            Decision::Try { rate_ops_s, longer, .. } => (rate_ops_s, longer),
            Decision::Done(conclusion) => {
                self.conclusion = Some(conclusion);
                return Ok(None);
            }
        };
        let time = self.search.time.mul_f64(longer);
        let whole = time + self.search.manner.warm_up.unwrap_or_default();
        if self.search.most_time.is_some_and(|most| began.elapsed() + whole > most) {
            self.cut = Some(Cut::Time);
            return Ok(None);
        }
        let ordinal = self.tried.len() as u32 + 2;
        self.search.step(&self.search.manner.at(rate, time), ordinal, "trial").map(Some)
    }
}

impl Agenda for Trials<'_> {
    fn next(&mut self, run: &Run) -> Option<Step> {
        self.decide(run).unwrap_or_else(|fault| {
            self.fault = Some(fault);
            None
        })
    }

    fn preloads(&self) -> bool {
        self.search.manner.insight.preloads(true)
    }
}
