//! Histograms that small programs fill inside the kernel while processes are profiled: how long
//! threads wait for a CPU, what block devices do, how long softirqs take.

mod block;
mod counts;
mod run_queue;
mod softirq;

use bpf::{Attached, BpfError, Btf, Program};
use model::{KernelCounts, KernelHistogram, MissingCounts, Unavailable};

use self::counts::{CountedSeries, Counts};
use crate::sampler::Target;

/// Why histograms of a kind are not made. As an [`Unavailable`] it has a remedy.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UncountedReason {
    #[error(transparent)]
    Bpf(#[from] BpfError),
    #[error("in this process namespace the kernel's numbers of threads are not known")]
    Namespace,
}

impl From<UncountedReason> for Unavailable {
    fn from(reason: UncountedReason) -> Unavailable {
        let remedy = match &reason {
            UncountedReason::Bpf(error) => error.remedy(),
            UncountedReason::Namespace => {
                "run on the host, or start the container with the host's process namespace"
                    .to_owned()
            }
        };
        Unavailable::new(reason.to_string(), remedy)
    }
}

/// Programs of one kind of histogram with their tables. They run until this is dropped.
struct Running {
    /// Detached first.
    attached: Vec<Attached>,
    programs: Vec<Program>,
    counts: Counts,
}

impl Running {
    /// Lets programs run, the first one first. They keep the tables that they use.
    fn attach(programs: Vec<Program>, counts: Counts) -> Result<Running, UncountedReason> {
        let attached = programs.iter().map(Program::attach).collect::<Result<_, _>>()?;
        Ok(Running { attached, programs, counts })
    }

    /// Detaches the programs; what they counted, and how many events they lost.
    fn end(mut self) -> Result<(Vec<CountedSeries>, u64), UncountedReason> {
        self.attached.clear();
        let left_out =
            self.programs.iter().filter_map(|program| Some(program.run_time().ok()?.left_out));
        let lost = self.counts.lost() + left_out.sum::<u64>();
        Ok((self.counts.read()?, lost))
    }
}

/// A kind of histogram with its programs.
struct Kind {
    what: &'static str,
    running: Result<Running, UncountedReason>,
    named: fn(&CountedSeries, &[Target]) -> Option<KernelHistogram>,
}

/// Counts inside the kernel until it is ended.
#[derive(Default)]
pub(crate) struct KernelPrograms {
    kinds: Vec<Kind>,
    targets: Vec<Target>,
}

impl KernelPrograms {
    /// Counts from now on. What cannot be counted is left out, with its reason. Threads `without`
    /// are of the profiler itself.
    pub fn start(targets: &[Target], without: &[u32]) -> KernelPrograms {
        let types = Btf::of_kernel();
        let with_types = |start: &dyn Fn(&Btf) -> Result<Running, UncountedReason>| match &types {
            Ok(types) => start(types),
            Err(error) => Err(error.clone().into()),
        };
        let kinds = vec![
            Kind {
                what: "run queues",
                running: with_types(&|types| run_queue::start(types, targets, without)),
                named: run_queue::named,
            },
            Kind { what: "block devices", running: with_types(&block::start), named: block::named },
            Kind { what: "softirqs", running: with_types(&softirq::start), named: softirq::named },
        ];
        KernelPrograms { kinds, targets: targets.to_vec() }
    }

    /// Detaches all programs; what they counted.
    pub fn end(self) -> KernelCounts {
        let mut counts = KernelCounts::default();
        for Kind { what, running, named } in self.kinds {
            match running.and_then(Running::end) {
                Ok((series, lost)) => {
                    counts.lost += lost;
                    let named = series.iter().filter_map(|series| named(series, &self.targets));
                    counts.histograms.extend(named);
                }
                Err(reason) => counts.missing.push(MissingCounts {
                    what: what.to_owned(),
                    reason: Unavailable::from(reason).to_string(),
                }),
            }
        }
        counts.histograms.sort_by(|a, b| {
            let key = |h: &KernelHistogram| (h.quantity, h.side, h.subject.clone(), h.operation);
            key(a).cmp(&key(b))
        });
        counts
    }
}
