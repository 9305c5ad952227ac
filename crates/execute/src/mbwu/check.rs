//! Checks before a device is written to.

use std::collections::BTreeMap;
use std::path::PathBuf;

use host::Root;
use model::{Op, Phase};
use store::{Directory, DirectoryState, StoreUrl};
use study::{MbwuTable, Plan, Segment, Step, StudySpec, StudyText};

use crate::error::ExecuteError;

pub(super) fn table(source: &StudyText, table: &MbwuTable) -> Result<(), ExecuteError> {
    for list in [&table.threads, &table.databases] {
        let counts = list.get_ref();
        let rising = counts.windows(2).all(|pair| pair[0] < pair[1]);
        if counts.first().is_none_or(|least| *least == 0) || !rising || counts.len() > 64 {
            let words = "is a list of rising numbers from 1 on, such as [1, 2, 4, 8]";
            return Err(source.at(list.span(), words));
        }
    }
    let rates = table.rate.get_ref();
    let rising = rates.windows(2).all(|pair| pair[0].0 < pair[1].0);
    if rates.first().is_some_and(|least| least.0 <= 0.0) || !rising || rates.len() > 64 {
        let words = "is a list of rising rates, such as [\"1k\", \"2k\"]";
        return Err(source.at(table.rate.span(), words));
    }
    let threads = table.threads.get_ref();
    if !rates.is_empty() && threads.len() != 1 {
        let words = "the load is raised by mbwu.rate: give one number of threads, as in [16]";
        return Err(source.at(table.threads.span(), words));
    }
    if table.databases.get_ref().last() > threads.last() {
        let words = "are more databases than threads; each needs one of its own";
        return Err(source.at(table.databases.span(), words));
    }
    let rounds = *table.rounds.get_ref();
    if (rounds as usize) < analyse::STEADY_ROUNDS || rounds > 1000 {
        let words = format!("a steady state takes {} to 1000 rounds", analyse::STEADY_ROUNDS);
        return Err(source.at(table.rounds.span(), &words));
    }
    if !(0.001..=0.5).contains(table.gain.get_ref()) {
        return Err(source.at(table.gain.span(), "is a share from 0.001 to 0.5"));
    }
    if let Some(unit) = table.unit.as_ref().filter(|unit| unit.get_ref().0 <= 0.0) {
        return Err(source.at(unit.span(), "must be more than zero"));
    }
    if let Some(most) = table.memory_bandwidth.as_ref().filter(|most| most.get_ref().0 == 0) {
        return Err(source.at(most.span(), "must be more than zero"));
    }
    if let Some(share) = table.precondition.map(|table| table.share)
        && !(share > 0.0 && share <= 1.0)
    {
        return Err(ExecuteError::Request(format!(
            "{}: precondition.share of [mbwu] is {share}; it is more than 0 and at most 1",
            source.origin
        )));
    }
    Ok(())
}

/// Refuses settings that the procedure decides itself.
pub(super) fn spec(source: &StudyText, spec: &StudySpec) -> Result<(), ExecuteError> {
    let decided = [
        ("threads", "the load is raised by mbwu.threads; leave this out"),
        ("rate", "the rates of an open loop are mbwu.rate; leave this out"),
        ("steady", "each round is a run, and mbwu.rounds says how many; leave this out"),
    ];
    if let Some(name) = spec.micro.keys().chain(spec.simulate.keys()).next() {
        let words = "work units are of a store alone; leave this table to another study";
        return Err(source.at(name.span(), words));
    }
    for (key, words) in decided {
        if let Some(span) = spec.measure.span_of(key) {
            return Err(source.at(span, words));
        }
    }
    if let Some(agents) = &spec.agents {
        return Err(source.at(agents.span(), "work units are of stores on this machine's devices"));
    }
    Ok(())
}

/// The one measured step of a plan with one embedded store.
pub(super) fn single_step<'a>(
    source: &StudyText,
    plan: &'a Plan,
) -> Result<(&'a Segment, &'a Step), ExecuteError> {
    let no = |words: &str| Err(ExecuteError::Request(format!("{}: {words}", source.origin)));
    let measured: Vec<(&Segment, &Step)> =
        plan.steps().filter(|(_, step)| step.phase == Phase::Measure).collect();
    let &[(segment, step)] = measured.as_slice() else {
        return no(
            "with [mbwu] a study has one store, one repeat and one workload in its sequence",
        );
    };
    if !segment.store.adapter()?.on_disk() {
        return no("with [mbwu] the store is one that lies in a folder on the device");
    }
    if !segment.temporary {
        return no("with [mbwu] the store's `path` is on the devices (--device); leave it out");
    }
    if step.trace.is_some() {
        return no("with [mbwu] the workload is no trace");
    }
    let mix = &step.workload.mix;
    if mix.contains(Op::Insert) || mix.contains(Op::Delete) {
        return no(
            "with [mbwu] the workload reads, updates, scans and modifies: with inserts or deletes \
             the data of one round would not be that of the next",
        );
    }
    Ok((segment, step))
}

/// Checks that the devices are different.
pub(super) fn devices(root: &Root, devices: &[PathBuf]) -> Result<(), ExecuteError> {
    if devices.is_empty() {
        return Err(ExecuteError::Request(
            "no device is named: --device PATH, a folder on the device's file system, once for \
             each device"
                .to_owned(),
        ));
    }
    let mut known: BTreeMap<String, &PathBuf> = BTreeMap::new();
    for device in devices {
        if !device.is_dir() {
            let words = "is no folder; name one on the device's file system";
            return Err(ExecuteError::Request(format!("--device {}: {words}", device.display())));
        }
        let volume = host::volume_of(root, device).map_err(|why| {
            ExecuteError::Request(format!(
                "--device {}: {why}; name a folder on a file system of a block device",
                device.display()
            ))
        })?;
        if let Some(other) = known.insert(volume.clone(), device) {
            return Err(ExecuteError::Request(format!(
                "--device {}: lies on {volume} as {} does; a unit is of one device",
                device.display(),
                other.display()
            )));
        }
    }
    Ok(())
}

/// Refuses a device without room for the data of its databases, or that cannot be written.
pub(super) fn room(databases: &[StoreUrl], step: &Step) -> Result<(), ExecuteError> {
    let needed: u64 = databases.iter().map(|url| needed(url, step)).sum();
    Ok(databases.iter().try_for_each(|url| Directory::check(url, needed))?)
}

/// Bytes that a load needs: none where the data exists.
pub(super) fn needed(url: &StoreUrl, step: &Step) -> u64 {
    match holds(url, step) {
        Ok(true) => 0,
        // Half as much again for compactions of a log-structured store.
        _ => step.workload.data_bytes().saturating_add(step.workload.data_bytes() / 2),
    }
}

/// Whether a folder has the complete data of a step.
pub(super) fn holds(url: &StoreUrl, step: &Step) -> Result<bool, ExecuteError> {
    let dataset = step.workload.dataset().to_string();
    Ok(match Directory::inspect(&url.path)? {
        DirectoryState::Ours(_) => {
            let directory = Directory::claim(url, 0)?;
            directory.holds(&dataset) && directory.marker().records == step.workload.records.0
        }
        _ => false,
    })
}
