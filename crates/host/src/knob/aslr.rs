//! Address space layout randomisation.

use std::process::Command;

use model::Unavailable;

use super::error::KnobRefusal;
use super::plan::KnobChange;
use super::proof::{ProofOutcome, Prove};
use super::target::KnobTarget;
use super::write::KnobWrite;
use super::{Knob, KnobInfo};
use crate::root::Root;

const FILE: &str = "/proc/sys/kernel/randomize_va_space";
/// Indexed by the kernel's number.
const LEVELS: &[&str] = &["off", "partial", "full"];

pub struct Aslr;

impl Knob for Aslr {
    fn info(&self) -> &'static KnobInfo {
        &KnobInfo {
            name: "aslr",
            what: "whether each process gets other addresses; partial leaves the heap in place",
            mechanism: "/proc/sys/kernel/randomize_va_space",
            scope: "the machine, for processes that are started from then on",
            proof: "the stacks of processes that are started one after the other",
        }
    }

    fn levels(&self, root: &Root) -> Result<Vec<String>, Unavailable> {
        root.number::<usize>(FILE)?;
        Ok(LEVELS.iter().map(|level| (*level).to_owned()).collect())
    }

    fn read(&self, root: &Root) -> Result<String, Unavailable> {
        let number: usize = root.number(FILE)?;
        Ok(LEVELS.get(number).map_or_else(|| number.to_string(), |level| (*level).to_owned()))
    }

    fn plan(&self, root: &Root, level: &str) -> Result<KnobChange, KnobRefusal> {
        let number = LEVELS.iter().position(|known| *known == level);
        let number =
            number.ok_or_else(|| KnobRefusal::Level("there is no such level here".to_owned()))?;
        let write = KnobWrite::turn(root, KnobTarget::file(FILE), number.to_string())?;
        Ok(KnobChange { writes: write.into_iter().collect(), prove: prove(number == 0) })
    }
}

fn prove(off: bool) -> Prove {
    Box::new(move |root| {
        if !root.is_live() {
            return ProofOutcome::Unverified("a recorded machine starts no processes".to_owned());
        }
        let stacks: Result<Vec<String>, String> = (0..3).map(|_| stack()).collect();
        let stacks = match stacks {
            Ok(stacks) => stacks,
            Err(why) => return ProofOutcome::Unverified(why),
        };
        let same = stacks.iter().all(|stack| *stack == stacks[0]);
        let observed = match same {
            true => "three processes have their stacks at the same addresses",
            false => "three processes have their stacks at different addresses",
        };
        if same == off {
            ProofOutcome::Proven(observed.to_owned())
        } else {
            ProofOutcome::Refuted(observed.to_owned())
        }
    })
}

/// The address range of a new process's stack.
fn stack() -> Result<String, String> {
    let output = Command::new("cat")
        .arg("/proc/self/maps")
        .output()
        .map_err(|error| format!("cat could not be run: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().find(|line| line.ends_with("[stack]"));
    let range = line.and_then(|line| line.split(' ').next());
    range.map(str::to_owned).ok_or_else(|| "a process shows no stack".to_owned())
}
