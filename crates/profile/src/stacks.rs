//! The stacks of one process, from addresses to names.

use std::collections::HashMap;

use model::{ProfiledSide, Stack, ThreadState};

use crate::off_cpu::{OffCpu, Spent};
use crate::record::Sample;
use crate::symbols::KernelSymbols;
use crate::unwind::{Files, ProcessUnwinder};

/// Addresses of a stack, the innermost first: in the kernel, and in the program.
pub(crate) type Addresses = (Vec<u64>, Vec<u64>);

/// A process that is sampled.
pub(crate) struct SampledProcess {
    side: ProfiledSide,
    name: String,
    unwinder: ProcessUnwinder,
    on_cpu: HashMap<Addresses, u64>,
}

impl SampledProcess {
    pub fn new(pid: u32, side: ProfiledSide, name: String, files: &mut Files) -> SampledProcess {
        let mut unwinder = ProcessUnwinder::new(pid);
        unwinder.prepare(files);
        SampledProcess { side, name, unwinder, on_cpu: HashMap::new() }
    }

    /// The stack of a sample.
    pub fn stack(&mut self, sample: Sample<'_>, files: &mut Files) -> Addresses {
        let program = match sample.registers {
            Some(registers) => self.unwinder.stack(registers, sample.stack, files),
            None => Vec::new(),
        };
        (sample.kernel, program)
    }

    pub fn add(&mut self, stack: Addresses) {
        *self.on_cpu.entry(stack).or_insert(0) += 1;
    }

    /// Its stacks by the names of their functions; a sample of CPU time stands for `sample_s`.
    pub fn named(
        &self,
        pid: u32,
        sample_s: f64,
        off_cpu: &OffCpu,
        kernel: &KernelSymbols,
    ) -> Vec<Stack> {
        let on_cpu = self.on_cpu.iter().map(|(stack, samples)| {
            (ThreadState::OnCpu, stack, (*samples, *samples as f64 * sample_s * 1e9))
        });
        let mut names = HashMap::new();
        let mut stacks: HashMap<(ThreadState, Vec<String>), Spent> = HashMap::new();
        for (state, stack, (samples, nanoseconds)) in on_cpu.chain(off_cpu.of(pid)) {
            let key = (state, self.frames(stack, &mut names, kernel));
            let spent = stacks.entry(key).or_insert((0, 0.0));
            spent.0 += samples;
            spent.1 += nanoseconds;
        }
        let stack = |((state, frames), (samples, nanoseconds))| Stack {
            side: self.side,
            process: self.name.clone(),
            state,
            frames,
            samples,
            seconds: nanoseconds / 1e9,
        };
        stacks.into_iter().map(stack).collect()
    }

    fn frames(
        &self,
        (in_kernel, in_program): &Addresses,
        names: &mut HashMap<u64, String>,
        kernel: &KernelSymbols,
    ) -> Vec<String> {
        let mut frames = Vec::with_capacity(in_kernel.len() + in_program.len());
        for address in in_program.iter().rev() {
            let name = names.entry(*address).or_insert_with(|| self.unwinder.name(*address));
            frames.push(name.clone());
        }
        let of_kernel = in_kernel.iter().rev();
        frames.extend(of_kernel.map(|address| format!("{}_[k]", kernel.name(*address))));
        frames
    }
}
