//! `[load]` and `[measure]` of a study, checked; errors show the place in it.

use toml::Spanned;

use crate::error::StudyError;
use crate::knobs::KnobLevels;
use crate::load::{InvalidOption, LOAD_OPTIONS, LoadConfig, LoadOptions};
use crate::replay_speed::ReplaySpeed;
use crate::text::StudyText;

/// The configuration of a measured phase.
pub(super) fn measure_config(
    source: &StudyText,
    table: &LoadOptions,
    levels: &KnobLevels,
    cpus: u32,
) -> Result<LoadConfig, StudyError> {
    let refuse = |invalid| misplaced(source, table, invalid);
    let config = table.config(cpus).map_err(refuse)?;
    let allowed = host::cpus(source.root()).map(|order| order.cpus).unwrap_or_default();
    if let Some(cpu) = config.cpus.iter().find(|cpu| !allowed.contains(cpu)) {
        let why = format!("CPU {cpu} cannot be used; kvmeter may use {allowed:?}");
        return Err(refuse(InvalidOption { key: "cpus", why }));
    }
    // Pinning a thread overrides the knob.
    let left = levels.cpus_left(source.root());
    if let Some(cpu) = config.cpus.iter().find(|cpu| !left.contains(cpu)) {
        let knob = if levels.level("cpus").is_some() { "cpus" } else { "smt" };
        let why = format!("CPU {cpu} is not one of those that the knob `{knob}` leaves: {left:?}");
        return Err(refuse(InvalidOption { key: "cpus", why }));
    }
    Ok(config)
}

/// The configuration of a trace, whose speed is in another table.
pub(super) fn trace_config(
    source: &StudyText,
    table: &LoadOptions,
    speed: Option<&Spanned<ReplaySpeed>>,
    cpus: u32,
) -> Result<LoadConfig, StudyError> {
    table.replay_config(speed.map(|speed| *speed.get_ref()), cpus).map_err(|invalid| {
        match speed.filter(|_| invalid.key == "speed") {
            Some(speed) => source.at(speed.span(), &format!("speed: {}", invalid.why)),
            None => misplaced(source, table, invalid),
        }
    })
}

/// The configuration of a load phase, which inserts every record once.
pub(super) fn load_phase_config(
    source: &StudyText,
    table: &LoadOptions,
    levels: &KnobLevels,
    cpus: u32,
) -> Result<LoadConfig, StudyError> {
    let not_of_load = LOAD_OPTIONS.iter().filter(|option| option.measured_only);
    if let Some(option) = { not_of_load }.find(|option| (option.span)(table).is_some()) {
        let why = "a load begins without data and ends when all records are there".to_owned();
        return Err(misplaced(source, table, InvalidOption { key: option.key, why }));
    }
    let config = measure_config(source, table, levels, cpus)?;
    if config.of_maximum {
        let why = "of a load it is a number; no maximum is calibrated for it".to_owned();
        return Err(misplaced(source, table, InvalidOption { key: "rate", why }));
    }
    Ok(config)
}

/// An invalid option at its place in the study.
fn misplaced(source: &StudyText, table: &LoadOptions, invalid: InvalidOption) -> StudyError {
    let InvalidOption { key, why } = invalid;
    source.at(table.span_of(key).unwrap_or_default(), &format!("{key}: {why}"))
}
