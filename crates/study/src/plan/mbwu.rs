//! `[mbwu]` of a study: what it may ask for, and the settings of its rounds.

use analyse::mbwu::{RoundPurpose, keys};
use model::{Phase, RunSettings};
use toml::Spanned;

use super::segments::{Plan, Segment};
use super::step::{Activity, Step};
use crate::error::StudyError;
use crate::text::{MbwuTable, StudySpec, StudyText};

/// The `[mbwu]` of a study; none if it has none.
///
/// # Errors
/// The text is no study.
pub fn of_study(source: &StudyText) -> Result<Option<MbwuTable>, StudyError> {
    Ok(source.spec()?.mbwu.map(Spanned::into_inner))
}

/// Checks the table and the study around it.
///
/// # Errors
/// An invalid value, or a setting that the procedure decides itself, at its place.
pub fn check(source: &StudyText, table: &MbwuTable) -> Result<(), StudyError> {
    check_table(source, table)?;
    check_spec(source, &source.spec()?)
}

fn check_table(source: &StudyText, table: &MbwuTable) -> Result<(), StudyError> {
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
        return Err(StudyError::Request(format!(
            "{}: precondition.share of [mbwu] is {share}; it is more than 0 and at most 1",
            source.origin
        )));
    }
    Ok(())
}

/// Refuses settings that the procedure decides itself.
fn check_spec(source: &StudyText, spec: &StudySpec) -> Result<(), StudyError> {
    let decided = [
        ("threads", "the load is raised by mbwu.threads; leave this out"),
        ("rate", "the rates of an open loop are mbwu.rate; leave this out"),
        ("rate_profile", "a work unit is a rate that holds; leave this out"),
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
    if let Some(why) = &spec.why {
        let words = "the rounds of a work unit are not profiled; leave this to a study of one cell";
        return Err(source.at(why.span(), words));
    }
    if let Some(agents) = &spec.agents {
        return Err(source.at(agents.span(), "work units are of stores on this machine's devices"));
    }
    Ok(())
}

/// The one measured step of a plan with one embedded store.
pub fn single_step<'a>(
    source: &StudyText,
    plan: &'a Plan,
) -> Result<(&'a Segment, &'a Step), StudyError> {
    let no = |words: &str| Err(StudyError::Request(format!("{}: {words}", source.origin)));
    let measured: Vec<(&Segment, &Step)> =
        plan.steps().filter(|(_, step)| step.phase() == Phase::Measure).collect();
    let &[(segment, step)] = measured.as_slice() else {
        return no(
            "with [mbwu] a study has one store, one repeat and one workload in its sequence",
        );
    };
    if !segment.store.has_directory() {
        return no("with [mbwu] the store must be in a folder on the device");
    }
    if !segment.temporary {
        return no("with [mbwu] the store's `path` is on the devices (--device); leave it out");
    }
    let Activity::Measure(load) = &step.activity else {
        return no("with [mbwu] the workload cannot be a trace");
    };
    if load.changes_records() {
        return no(
            "with [mbwu] the workload only reads, updates, scans and modifies: inserts or deletes \
             would change the data from round to round",
        );
    }
    Ok((segment, step))
}

/// Adds the settings of the first round.
pub(super) fn first_round(table: &MbwuTable, settings: &mut RunSettings) {
    round_settings(RoundPurpose::Raise, 1, 1, settings);
    precondition_setting(table.precondition.map(|table| table.share), settings);
    if let Some(load) = table.loads().first() {
        load.settings(settings);
    }
}

/// Adds the share of the devices' addresses that was preconditioned.
pub fn precondition_setting(share: Option<f64>, settings: &mut RunSettings) {
    let words = share.map_or("none".to_owned(), |share| format!("{}%", 100.0 * share));
    settings.insert(keys::PRECONDITION.to_owned(), words);
}

/// Adds the settings of a round besides its load.
pub fn round_settings(stage: RoundPurpose, devices: u32, number: u32, settings: &mut RunSettings) {
    let mut put = |key: &str, value: String| settings.insert(key.to_owned(), value);
    put(keys::STAGE, stage.name().to_owned());
    put(keys::DEVICES, devices.to_string());
    put(keys::ROUND, number.to_string());
}
