//! Checks described traffic against itself and the machine.

use std::ops::Range;

use super::{CoRunnerSpec, StoreSpec, Traffic};
use crate::cache::LINE;
use crate::describe::machine::SimulatedMachine;
use crate::describe::text::DescriptionText;
use crate::error::SimError;

/// The most memory that may be described.
const MAX_MEMORY: u64 = LINE << 32;

/// Checks every value; the error shows its place in the source.
pub(super) fn check(
    traffic: &Traffic,
    source: &DescriptionText,
    machine: &SimulatedMachine,
) -> Result<(), SimError> {
    let check = TrafficCheck { traffic, source };
    check.counts()?;
    check.port_and_pool()?;
    check.cores(machine)?;
    check.ways(machine)?;
    traffic.neighbours.iter().try_for_each(|neighbour| check.neighbour(neighbour))?;
    if let Some(read) = &traffic.workers.read {
        check.require(
            read.stride.get_ref().0 > 0,
            read.stride.span(),
            "`stride` must be above 0",
        )?;
    }
    if let Some(program) = &traffic.workers.program {
        let words = "`program.memory` must be at least 64 B";
        check.require(program.memory.get_ref().0 >= LINE, program.memory.span(), words)?;
    }
    if let Some(store) = &traffic.workers.store {
        check.store(store)?;
    }
    if traffic.memory() > MAX_MEMORY {
        return Err(SimError::Value(format!(
            "{}: the description has more than 256 GiB of memory",
            source.origin
        )));
    }
    Ok(())
}

struct TrafficCheck<'a> {
    traffic: &'a Traffic,
    source: &'a DescriptionText,
}

impl TrafficCheck<'_> {
    fn require(&self, holds: bool, span: Range<usize>, words: &str) -> Result<(), SimError> {
        if holds { Ok(()) } else { Err(self.source.at(span, words)) }
    }

    /// Numbers with a range of their own.
    fn counts(&self) -> Result<(), SimError> {
        let Traffic { queues, port, pool, .. } = self.traffic;
        let counts = [
            (&queues.receive, "queues.receive", 1, 65_536),
            (&queues.send, "queues.send", 1, 65_536),
            (&queues.software, "queues.software", 0, 1 << 20),
            (&queues.burst, "queues.burst", 1, 1024),
            (&port.train, "port.train", 1, 1 << 20),
            (&port.generators, "port.generators", 1, 1024),
            (&pool.buffers, "pool.buffers", 1, 1 << 22),
        ];
        for (count, key, least, most) in counts {
            let words = format!("`{key}` must be {least} to {most}");
            self.require((least..=most).contains(&count.get_ref().0), count.span(), &words)?;
        }
        Ok(())
    }

    fn port_and_pool(&self) -> Result<(), SimError> {
        let Traffic { port, pool, .. } = self.traffic;
        if let Some(rate) = &port.rate {
            let is_positive = rate.get_ref().0 > 0.0;
            self.require(is_positive, rate.span(), "`port.rate` must be above 0")?;
        }
        if let Some(burst) = &port.burst {
            let is_positive = burst.rate.get_ref().0 > 0.0;
            self.require(is_positive, burst.rate.span(), "`port.burst.rate` must be above 0")?;
            let lasts = burst.lasts.get_ref().0;
            let words = "`port.burst.lasts` must be above 0 and below `every`";
            let is_shorter = !lasts.is_zero() && lasts < burst.every.0;
            self.require(is_shorter, burst.lasts.span(), words)?;
        }
        let (stride, offset) = (pool.stride.get_ref().0, pool.offset.get_ref().0);
        let is_multiple = stride != 0 && stride % LINE == 0;
        let words = "`pool.stride` must be a multiple of 64 B";
        self.require(is_multiple, pool.stride.span(), words)?;
        let words = "`pool.offset` must be a multiple of 64 B";
        self.require(offset % LINE == 0, pool.offset.span(), words)?;
        let packet = port.packet.get_ref().0;
        let most = stride.saturating_sub(offset);
        let words = format!("`port.packet` must be 1 to {most} B: it has to fit a buffer");
        self.require(packet > 0 && packet + offset <= stride, port.packet.span(), &words)
    }

    /// The machine has the cores, and the pool the buffers for their rings.
    fn cores(&self, machine: &SimulatedMachine) -> Result<(), SimError> {
        let Traffic { workers, neighbours, queues, pool, .. } = self.traffic;
        let own = *workers.cores.get_ref();
        let others: u32 = neighbours.iter().map(|n| *n.cores.get_ref()).sum();
        let cores = *machine.cores.get_ref();
        let words = format!(
            "`workers.cores` and the cores of the neighbours must add up to 1 to {cores}, the \
             cores of {}",
            machine.name
        );
        self.require(own > 0 && own + others <= cores, workers.cores.span(), &words)?;
        let need = u64::from(own) * (queues.receive.get_ref().0 + queues.send.get_ref().0);
        let words = format!("`pool.buffers` must be at least {need}: the rings alone take so many");
        self.require(need <= pool.buffers.get_ref().0, pool.buffers.span(), &words)
    }

    fn ways(&self, machine: &SimulatedMachine) -> Result<(), SimError> {
        let masks = self.traffic.neighbours.iter().filter_map(|n| n.ways.as_ref());
        let every = machine.shared_geometry().every_way();
        let words = format!(
            "`ways` must be a mask of 0x1 to {every:#x}: the cache has {} ways",
            every.count_ones()
        );
        for mask in masks.chain(&self.traffic.workers.ways) {
            let holds = *mask.get_ref() != 0 && mask.get_ref() & !every == 0;
            self.require(holds, mask.span(), &words)?;
        }
        Ok(())
    }

    fn neighbour(&self, neighbour: &CoRunnerSpec) -> Result<(), SimError> {
        let CoRunnerSpec { working_set, writes, phase, .. } = neighbour;
        let words = "`working-set` must be at least 64 B";
        self.require(working_set.get_ref().0 >= LINE, working_set.span(), words)?;
        if let Some(share) = writes {
            let holds = (0.0..=1.0).contains(share.get_ref());
            self.require(holds, share.span(), "`writes` must be 0 to 1")?;
        }
        if let Some(phase) = phase {
            self.require(!phase.get_ref().0.is_zero(), phase.span(), "`phase` must be above 0")?;
        }
        Ok(())
    }

    fn store(&self, store: &StoreSpec) -> Result<(), SimError> {
        let (stride, offset) =
            (self.traffic.pool.stride.get_ref().0, self.traffic.pool.offset.get_ref().0);
        let StoreSpec { index, values, value, skew, .. } = store;
        self.require(index.get_ref().0 >= LINE, index.span(), "`index` must be at least 64 B")?;
        let size = value.get_ref().0;
        let words = "`value` must be above 0 and fit a buffer";
        self.require(size > 0 && size + offset <= stride, value.span(), words)?;
        let words = "`values` must hold at least one value";
        self.require(values.get_ref().0 >= size, values.span(), words)?;
        if let Some(skew) = skew {
            let holds = (0.0..1.0).contains(skew.get_ref());
            self.require(holds, skew.span(), "`skew` must be at least 0 and below 1")?;
        }
        Ok(())
    }
}
