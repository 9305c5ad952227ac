//! From the properties of YCSB's core workload to a workload.

use model::{Bytes, Count, Op};

use super::fields::{value, zipfian};
use super::property_map::PropertyMap;
use super::{RunProperty, YcsbError, YcsbWorkload};
use crate::popularity::THETA;
use crate::{InsertOrder, KeySpec, LengthSpec, Mix, Popularity, SpecError, WorkloadSpec};

/// The core workload's class, in YCSB's current package and in its former one.
const CLASSES: [&str; 2] =
    ["site.ycsb.workloads.CoreWorkload", "com.yahoo.ycsb.workloads.CoreWorkload"];
/// Maximum number of decimal digits of a 64-bit hash.
const HASH_DIGITS: u64 = 20;

/// # Errors
/// A value that kvmeter does not have, or outside of its range.
pub(super) fn workload(given: &PropertyMap) -> Result<YcsbWorkload, YcsbError> {
    if let Some(class) = given.text("workload").filter(|class| !CLASSES.contains(class)) {
        let problem = format!(
            "`workload` is `{class}`, and kvmeter has YCSB's core workload, `{}`; `kvmeter \
             workload describe` makes a workload of a trace of another one",
            CLASSES[0]
        );
        return Err(given.at("workload", problem));
    }
    check_names(given)?;
    check_retries(given)?;
    let records = records(given)?;
    let mix = mix(given)?;
    let order = given.choice(
        "insertorder",
        &[("hashed", InsertOrder::Hashed), ("ordered", InsertOrder::Ordered)],
    )?;
    let default = WorkloadSpec::default();
    let workload = WorkloadSpec {
        records: Count(records),
        key: key(given, order)?,
        value: value(given)?,
        order,
        popularity: popularity(given, &mix)?,
        scan: if mix.contains(Op::Scan) { scan(given)? } else { default.scan },
        mix,
        ..WorkloadSpec::default()
    };
    workload.check().map_err(|error| out_of_range(given, &error))?;
    Ok(YcsbWorkload { workload, run: run(given)? })
}

/// Refuses names of tables, fields and keys, which kvmeter does not have, unless they are YCSB's
/// defaults.
fn check_names(given: &PropertyMap) -> Result<(), YcsbError> {
    for (name, default, why) in [
        ("table", "usertable", "kvmeter's stores have one table"),
        ("fieldnameprefix", "field", "kvmeter's records have no fields with names"),
        ("keyprefix", "user", "keys of YCSB's form begin with `user`"),
    ] {
        if given.text(name).is_some_and(|text| text != default) {
            let text = given.text(name).unwrap_or_default();
            let problem = format!("`{name}` is `{text}`, and {why}; remove the line");
            return Err(given.at(name, problem));
        }
    }
    Ok(())
}

/// kvmeter counts a failed insert as an error, at once.
fn check_retries(given: &PropertyMap) -> Result<(), YcsbError> {
    let name = "core_workload_insertion_retry_limit";
    given.share("core_workload_insertion_retry_interval", 3.0)?;
    match given.number(name, 0u64)? {
        0 => Ok(()),
        _ => Err(given.at(
            name,
            format!("`{name}` repeats failed inserts, and kvmeter counts them as errors; set 0"),
        )),
    }
}

fn records(given: &PropertyMap) -> Result<u64, YcsbError> {
    let records: u64 = given.number("recordcount", 0)?;
    if records == 0 {
        let problem = "`recordcount` is not given, and YCSB's default is 2147483647 records; \
                       set it, e.g. `recordcount=1000000`";
        return Err(given.at("recordcount", problem));
    }
    if given.number("insertstart", 0u64)? != 0 {
        let problem = "`insertstart` is for one of several clients that share the records; set 0: \
                       kvmeter's agents share a load by themselves";
        return Err(given.at("insertstart", problem));
    }
    let inserted = given.number("insertcount", records)?;
    if inserted != records {
        let problem = format!(
            "`insertcount` is {inserted} of {records} records, and kvmeter loads all of them; \
             remove the line, or lower `recordcount`"
        );
        return Err(given.at("insertcount", problem));
    }
    Ok(records)
}

/// The proportions; all inserts in YCSB's load phase.
fn mix(given: &PropertyMap) -> Result<Mix, YcsbError> {
    let mut mix = Mix::default();
    for (name, op, default) in [
        ("readproportion", Op::Read, 0.95),
        ("updateproportion", Op::Update, 0.05),
        ("insertproportion", Op::Insert, 0.0),
        ("scanproportion", Op::Scan, 0.0),
        ("readmodifywriteproportion", Op::ReadModifyWrite, 0.0),
    ] {
        mix = mix.with(op, given.share(name, default)?);
    }
    if !given.flag("dotransactions", true)? {
        return Ok(Mix::only(Op::Insert));
    }
    if mix == Mix::default() {
        let problem = "every proportion is 0; set at least one, e.g. `readproportion=1`";
        return Err(given.at("readproportion", problem));
    }
    Ok(mix)
}

fn popularity(given: &PropertyMap, mix: &Mix) -> Result<Popularity, YcsbError> {
    let keys = given.share("hotspotdatafraction", 0.2)?;
    let operations = given.share("hotspotopnfraction", 0.8)?;
    let percentile = given.share("exponential.percentile", 95.0)?;
    let fraction = given.share("exponential.frac", 0.857_142_857_1)?;
    let name = "requestdistribution";
    let exponential = "exponential";
    let all = [
        ("uniform", &Popularity::Uniform),
        ("zipfian", &Popularity::ScrambledZipfian { theta: THETA }),
        ("latest", &Popularity::Latest { theta: THETA }),
        ("hotspot", &Popularity::Hotspot { keys, operations }),
        ("sequential", &Popularity::Sequential),
        (exponential, &Popularity::Exponential { percentile, fraction }),
    ];
    if given.text(name) == Some(exponential) && mix.contains(Op::Insert) {
        let problem = format!(
            "`{name}` is `{exponential}` with inserts, which counts back from the newest record, \
             and kvmeter's counts from the first; use `latest`, or set `insertproportion` to 0"
        );
        return Err(given.at(name, problem));
    }
    given.choice(name, &all).cloned()
}

fn scan(given: &PropertyMap) -> Result<LengthSpec, YcsbError> {
    let shortest: u64 = given.number("minscanlength", 1)?;
    let longest: u64 = given.number("maxscanlength", 1000)?;
    match given.choice("scanlengthdistribution", &[("uniform", false), ("zipfian", true)])? {
        true => zipfian(given, ("minscanlength", shortest), ("maxscanlength", longest)),
        false => Ok(LengthSpec::Uniform { min: Bytes(shortest), max: Bytes(longest) }),
    }
}

/// `user` and the number, padded with zeros.
fn key(given: &PropertyMap, order: InsertOrder) -> Result<KeySpec, YcsbError> {
    let digits: u64 = given.number("zeropadding", 1)?;
    if digits <= 1 {
        return Ok(KeySpec::default());
    }
    if order == InsertOrder::Hashed && digits < HASH_DIGITS {
        let problem = format!(
            "`zeropadding` is {digits}, and the hashes in keys have up to {HASH_DIGITS} digits; \
             remove the line, or set at least {HASH_DIGITS}"
        );
        return Err(given.at("zeropadding", problem));
    }
    let size = LengthSpec::fixed("user".len() as u64 + digits.min(u64::from(u32::MAX)));
    Ok(KeySpec { size: Some(size), ..KeySpec::default() })
}

/// Properties of the run, not of the workload.
fn run(given: &PropertyMap) -> Result<Vec<RunProperty>, YcsbError> {
    let mut run = Vec::new();
    for (name, flag, unit, key) in [
        ("operationcount", "--ops", "", "operations"),
        ("threadcount", "--threads", "", "threads"),
        ("target", "--rate", "", "rate"),
        ("maxexecutiontime", "--time", "s", "time"),
    ] {
        // In YCSB, 0 means no limit.
        let number: u64 = given.number(name, 0)?;
        if number > 0 {
            run.push(RunProperty { flag, key, value: format!("{number}{unit}") });
        }
    }
    Ok(run)
}

/// An error of the workload, at the property that causes it.
fn out_of_range(given: &PropertyMap, error: &SpecError) -> YcsbError {
    let name = match error.key() {
        Some("records") => "recordcount",
        Some("key.size") => "zeropadding",
        Some("value.size") => "fieldlength",
        Some("scan") => "maxscanlength",
        Some("popularity") => "requestdistribution",
        _ => return YcsbError::whole(error.to_string()),
    };
    given.at(name, format!("{error}; change `{name}`"))
}
