//! YCSB's property files: Cooper et al., "Benchmarking Cloud Serving Systems with YCSB", SoCC 2010,
//! and the properties of its core workload, as its sources document them.

mod core_workload;
mod fields;
mod properties;
mod property_map;
mod refused;

use std::fmt;

use crate::WorkloadSpec;

/// A property file as a workload.
#[derive(Debug, Clone, PartialEq)]
pub struct YcsbWorkload {
    pub workload: WorkloadSpec,
    /// What the file says about a run and not about its workload.
    pub run: Vec<RunProperty>,
}

/// A property of a run, as kvmeter has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunProperty {
    pub flag: &'static str,
    /// The key of a study's `[measure]`.
    pub key: &'static str,
    /// A number, or a time with its unit.
    pub value: String,
}

/// Why a property file is no workload that kvmeter has, with the line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct YcsbError {
    line: Option<usize>,
    problem: String,
}

impl YcsbError {
    fn at(line: usize, problem: impl Into<String>) -> YcsbError {
        YcsbError { line: Some(line), problem: problem.into() }
    }

    /// Of the file as a whole.
    fn whole(problem: impl Into<String>) -> YcsbError {
        YcsbError { line: None, problem: problem.into() }
    }
}

impl fmt::Display for YcsbError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        f.write_str(&self.problem)
    }
}

impl YcsbWorkload {
    /// Reads a property file of YCSB's core workload. What it leaves out has YCSB's defaults.
    ///
    /// # Errors
    /// A property that is unknown, that kvmeter does not have, or that is given twice; a value
    /// outside of its range. Each with its line.
    pub fn parse(bytes: &[u8]) -> Result<YcsbWorkload, YcsbError> {
        let properties = properties::parse(bytes)?;
        properties.iter().try_for_each(refused::check)?;
        core_workload::workload(&property_map::PropertyMap::new(&properties)?)
    }
}

#[cfg(test)]
mod tests;
