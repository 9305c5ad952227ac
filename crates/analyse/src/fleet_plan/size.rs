//! How many machines a demand needs, and what for.

use super::demand::Demand;
use super::error::PurchaseError;
use super::machine::MachineChoice;
use crate::cost::{CostError, servers_for};

/// What a number of machines is needed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SizeLimit {
    /// The rate at which the objective holds.
    Throughput,
    Memory,
    Storage,
    Network,
    /// A machine of its own for each copy.
    Replicas,
}

impl SizeLimit {
    /// The name on the page and in `--json`.
    pub const fn name(self) -> &'static str {
        match self {
            SizeLimit::Throughput => "throughput",
            SizeLimit::Memory => "memory",
            SizeLimit::Storage => "storage",
            SizeLimit::Network => "network",
            SizeLimit::Replicas => "replicas",
        }
    }
}

/// Machines by what they are needed for. At least one.
#[derive(Debug, Clone, PartialEq)]
pub struct FleetSize {
    /// Without spares, throughput first.
    pub needed: Vec<(SizeLimit, u64)>,
    pub spares: u64,
}

impl FleetSize {
    /// Whole machines for each limit: `ceil(peak k / capacity)` with k operations of machines for one
    /// of the clients, `ceil(data R t / room)` with R replicas and t bytes taken for each byte,
    /// `ceil(peak k b / link)` with b bytes of an operation, and R.
    ///
    /// # Errors
    /// An impossible demand or capacity; the room for data is not known and there are data.
    pub fn of(choice: &MachineChoice, demand: &Demand) -> Result<FleetSize, PurchaseError> {
        demand.check()?;
        let cost = |error: CostError| PurchaseError::Cost { name: choice.name.clone(), error };
        let peak = demand.peak_ops_s() * demand.work_per_operation(choice.write_share);
        let mut needed =
            vec![(SizeLimit::Throughput, servers_for(peak, choice.capacity_ops_s).map_err(cost)?)];
        if let Some(data) = demand.data_bytes {
            let room = choice.data_room;
            let (limit, key, size) = match room.in_memory {
                true => (SizeLimit::Memory, "memory", "256GiB"),
                false => (SizeLimit::Storage, "storage", "4TiB"),
            };
            let bytes = room.bytes.ok_or_else(|| {
                let (name, what) = (choice.name.clone(), limit.name());
                PurchaseError::NoRoom { name, what, key, size }
            })?;
            let taken = data * demand.replicas as f64 * room.taken_per_byte;
            needed.push((limit, servers_for(taken, bytes).map_err(cost)?));
        }
        if let Some(network) = choice.network.filter(|network| network.bytes_per_op > 0.0) {
            let bytes = peak * network.bytes_per_op;
            needed
                .push((SizeLimit::Network, servers_for(bytes, network.bytes_per_s).map_err(cost)?));
        }
        if demand.replicas > 1 {
            needed.push((SizeLimit::Replicas, demand.replicas));
        }
        Ok(FleetSize { needed, spares: demand.spares })
    }

    /// What needs most machines; of two that need as many the first.
    pub fn binding(&self) -> SizeLimit {
        let most = self.working();
        let first = self.needed.iter().find(|(_, machines)| *machines == most);
        first.map_or(SizeLimit::Throughput, |(limit, _)| *limit)
    }

    /// Without spares.
    pub fn working(&self) -> u64 {
        self.needed.iter().map(|(_, machines)| *machines).max().unwrap_or(1)
    }

    /// With spares.
    pub fn machines(&self) -> u64 {
        self.working().saturating_add(self.spares)
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_machines::{GIB, demand, machine};
    use super::*;
    use crate::fleet_plan::NetworkRoom;

    fn needs(choice: &MachineChoice, demand: &Demand) -> (SizeLimit, u64, u64) {
        let size = FleetSize::of(choice, demand).unwrap();
        (size.binding(), size.working(), size.machines())
    }

    #[test]
    fn each_limit_binds_where_it_needs_most() {
        let choice = machine("a", 100e3);
        // 250k at a peak of three times, and one spare.
        assert_eq!(needs(&choice, &demand(250e3)), (SizeLimit::Throughput, 8, 9));
        let more = Demand { data_bytes: Some(1000.0 * GIB), ..demand(250e3) };
        // 64 GiB a machine, 1.25 bytes for each byte.
        assert_eq!(needs(&choice, &more), (SizeLimit::Memory, 20, 21));
        let both = Demand { replicas: 2, ..more };
        assert_eq!(needs(&choice, &both), (SizeLimit::Memory, 40, 41));
        // 750k operations of 2 kB are 1.5 GB/s.
        let network = Some(NetworkRoom { bytes_per_s: 125e6, bytes_per_op: 2_000.0 });
        let linked = MachineChoice { network, ..choice.clone() };
        assert_eq!(needs(&linked, &demand(250e3)), (SizeLimit::Network, 12, 13));
        let few = Demand { replicas: 3, spares: 0, peak_over_mean: 1.0, ..demand(1e3) };
        assert_eq!(needs(&choice, &few), (SizeLimit::Replicas, 3, 3));
    }

    #[test]
    fn replicas_do_every_write_and_share_the_reads() {
        let half = MachineChoice { write_share: 0.5, ..machine("a", 100e3) };
        let two = Demand { replicas: 2, spares: 0, peak_over_mean: 1.0, ..demand(1e6) };
        // 0.5M reads and twice 0.5M writes.
        assert_eq!(needs(&half, &two), (SizeLimit::Throughput, 15, 15));
        let reads = MachineChoice { write_share: 0.0, ..half };
        assert_eq!(needs(&reads, &two), (SizeLimit::Throughput, 10, 10));
    }

    #[test]
    fn refuses_what_cannot_be() {
        let choice = machine("a", 100e3);
        for wrong in [
            Demand { rate_ops_s: 0.0, ..demand(1.0) },
            Demand { peak_over_mean: 0.5, ..demand(1.0) },
            Demand { replicas: 0, ..demand(1.0) },
            Demand { data_bytes: Some(f64::NAN), ..demand(1.0) },
        ] {
            assert!(FleetSize::of(&choice, &wrong).is_err(), "{wrong:?}");
        }
        let mut unknown = choice;
        unknown.data_room.bytes = None;
        let error = FleetSize::of(&unknown, &Demand { data_bytes: Some(1.0), ..demand(1.0) });
        assert!(error.unwrap_err().to_string().contains("memory=256GiB"));
        assert!(FleetSize::of(&unknown, &demand(1.0)).is_ok());
    }
}
