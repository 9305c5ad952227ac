//! Tables that publications compute from these platforms, as they are printed.

use model::Rate;
use model::suggest::hint;
use serde::Deserialize;

use super::error::PlatformError;
use super::read::read;

const ARM_VS_X86: &str = "arm-vs-x86";
const MBWU: &str = "mbwu";
const NAMES: [&str; 2] = [ARM_VS_X86, MBWU];

/// The tables of one publication.
#[derive(Debug, Clone, PartialEq)]
pub enum Published {
    Clusters(Clusters),
    WorkUnits(WorkUnits),
}

/// Energy cost of clusters of different servers, each of which serves one target throughput.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Clusters {
    pub source: String,
    /// Names of platforms, in the order of every list below.
    pub platforms: Vec<String>,
    /// Of the whole cluster.
    pub target_ops_s: Rate,
    /// In the order of [`Cluster::usd_per_h`].
    pub electricity_usd_per_kwh: Vec<f64>,
    pub lifetime_years: Vec<f64>,
    /// The platform whose cost is 1 in [`Cluster::normalised`].
    pub reference: String,
    /// The workload that the publication argues from.
    pub headline: String,
    pub workloads: Vec<Cluster>,
}

/// One workload; a value for each platform.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cluster {
    pub name: String,
    /// Servers that the target needs.
    pub servers: Vec<u64>,
    /// Dollars an hour for energy, a list for each price of electricity.
    pub usd_per_h: Vec<Vec<f64>>,
    /// Cost over that of the reference.
    pub normalised: Vec<f64>,
}

/// MBWUs that platforms generate, and the current that they draw meanwhile.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkUnits {
    pub source: String,
    /// Two names of platforms: the first is what the second would replace.
    pub platforms: [String; 2],
    pub preconditioned: Vec<Preconditioned>,
}

/// One way of preconditioning; a value for each platform.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preconditioned {
    pub name: String,
    pub mbwus: [f64; 2],
    /// Amperes; at which voltage is not printed.
    pub current_a: [f64; 2],
    /// What the text says the second platform saves, where it says so.
    pub printed_saving: Option<PrintedSaving>,
    /// Platforms of the second kind that are as good as one of the first, where it is printed.
    pub printed_equivalent: Option<f64>,
}

/// Shares of what the first platform costs.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrintedSaving {
    pub price: f64,
    pub energy: f64,
}

impl Published {
    /// The tables of a publication by its name.
    ///
    /// Errors: no such name, with the nearest.
    pub fn named(name: &str) -> Result<Published, PlatformError> {
        match name {
            ARM_VS_X86 => {
                let text = include_str!("../../../../../platforms/published/arm-vs-x86.toml");
                Ok(Published::Clusters(read(name, text)?))
            }
            MBWU => {
                let text = include_str!("../../../../../platforms/published/mbwu.toml");
                Ok(Published::WorkUnits(read(name, text)?))
            }
            _ => Err(PlatformError::Unpublished { name: name.to_owned(), hint: hint(name, NAMES) }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_are_whole() {
        let Ok(Published::Clusters(table)) = Published::named(ARM_VS_X86) else {
            panic!("no table")
        };
        let platforms = table.platforms.len();
        assert_eq!((platforms, table.workloads.len()), (4, 5));
        assert_eq!(table.target_ops_s.0, 1e8);
        assert!(table.workloads.iter().any(|row| row.name == table.headline));
        assert!(table.platforms.contains(&table.reference));
        for row in &table.workloads {
            assert_eq!(row.servers.len(), platforms);
            assert_eq!(row.usd_per_h.len(), table.electricity_usd_per_kwh.len());
            assert!(row.usd_per_h.iter().all(|costs| costs.len() == platforms));
            assert_eq!(row.normalised.len(), platforms);
        }
        let Ok(Published::WorkUnits(table)) = Published::named(MBWU) else { panic!("no table") };
        assert_eq!(table.preconditioned.len(), 2);
        for name in table.platforms {
            super::super::Platform::built_in(&name).unwrap();
        }
    }

    #[test]
    fn an_unknown_name_is_told_the_nearest() {
        let error = Published::named("arm-vs-x68").unwrap_err().to_string();
        assert!(error.contains("did you mean `arm-vs-x86`?"), "{error}");
    }
}
