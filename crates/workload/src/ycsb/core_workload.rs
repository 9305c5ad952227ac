//! From the properties of YCSB's core workload to a workload.

use model::{Bytes, Count, Op};

use super::fields::{value, zipfian};
use super::given::Given;
use super::{RunProperty, YcsbError, YcsbWorkload};
use crate::popularity::THETA;
use crate::{InsertOrder, KeySpec, LengthSpec, Mix, Popularity, SpecError, WorkloadSpec};

/// The class of the core workload, under its name of today and of before 2019.
const CLASSES: [(&str, ()); 2] =
    [("site.ycsb.workloads.CoreWorkload", ()), ("com.yahoo.ycsb.workloads.CoreWorkload", ())];
/// The most digits of a hash.
const HASH_DIGITS: u64 = 20;

/// # Errors
/// A value that kvmeter does not have, or outside of its range.
pub(super) fn workload(given: &Given) -> Result<YcsbWorkload, YcsbError> {
    if given.choice("workload", &CLASSES).is_err() {
        let class = given.text("workload").unwrap_or_default();
        let problem = format!(
            "`workload` is `{class}`, and kvmeter has YCSB's core workload, `{}`; `kvmeter \
             workload describe` makes a workload of a trace of another one",
            CLASSES[0].0
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
    let usual = WorkloadSpec::default();
    let workload = WorkloadSpec {
        records: Count(records),
        key: key(given, order)?,
        value: value(given)?,
        order,
        popularity: popularity(given, &mix)?,
        scan: if mix.contains(Op::Scan) { scan(given)? } else { usual.scan },
        mix,
        ..WorkloadSpec::default()
    };
    workload.check().map_err(|error| out_of_range(given, &error))?;
    Ok(YcsbWorkload { workload, run: run(given)? })
}

/// Names that a store of kvmeter does not have; YCSB's defaults are no request for another one.
fn check_names(given: &Given) -> Result<(), YcsbError> {
    for (name, usual, why) in [
        ("table", "usertable", "kvmeter's stores have one table"),
        ("fieldnameprefix", "field", "kvmeter's records have no fields with names"),
        ("keyprefix", "user", "keys of YCSB's form begin with `user`"),
    ] {
        if given.text(name).is_some_and(|text| text != usual) {
            let text = given.text(name).unwrap_or_default();
            let problem = format!("`{name}` is `{text}`, and {why}; remove the line");
            return Err(given.at(name, problem));
        }
    }
    Ok(())
}

/// kvmeter counts a failed insert as an error, at once.
fn check_retries(given: &Given) -> Result<(), YcsbError> {
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

fn records(given: &Given) -> Result<u64, YcsbError> {
    let records: u64 = given.number("recordcount", 0)?;
    if records == 0 {
        let problem = "`recordcount` is not given, and YCSB's default of 2147483647 records is no \
                       data that you mean; set it, e.g. `recordcount=1000000`";
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
fn mix(given: &Given) -> Result<Mix, YcsbError> {
    let mut mix = Mix::default();
    for (name, op, usual) in [
        ("readproportion", Op::Read, 0.95),
        ("updateproportion", Op::Update, 0.05),
        ("insertproportion", Op::Insert, 0.0),
        ("scanproportion", Op::Scan, 0.0),
        ("readmodifywriteproportion", Op::ReadModifyWrite, 0.0),
    ] {
        mix = mix.with(op, given.share(name, usual)?);
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

fn popularity(given: &Given, mix: &Mix) -> Result<Popularity, YcsbError> {
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

fn scan(given: &Given) -> Result<LengthSpec, YcsbError> {
    let shortest: u64 = given.number("minscanlength", 1)?;
    let longest: u64 = given.number("maxscanlength", 1000)?;
    match given.choice("scanlengthdistribution", &[("uniform", false), ("zipfian", true)])? {
        true => zipfian(given, ("minscanlength", shortest), ("maxscanlength", longest)),
        false => Ok(LengthSpec::Uniform { min: Bytes(shortest), max: Bytes(longest) }),
    }
}

/// `user` and the number, padded with zeros.
fn key(given: &Given, order: InsertOrder) -> Result<KeySpec, YcsbError> {
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

/// What belongs to a run, as flags.
fn run(given: &Given) -> Result<Vec<RunProperty>, YcsbError> {
    let mut run = Vec::new();
    for (name, flag, unit, key) in [
        ("operationcount", "--ops", "", "operations"),
        ("threadcount", "--threads", "", "threads"),
        ("target", "--rate", "", "rate"),
        ("maxexecutiontime", "--time", "s", "time"),
    ] {
        // 0 is YCSB's word for no limit.
        let number: u64 = given.number(name, 0)?;
        if number > 0 {
            run.push(RunProperty { flag, key, value: format!("{number}{unit}") });
        }
    }
    Ok(run)
}

/// An error of the workload as one of the property that it follows from.
fn out_of_range(given: &Given, error: &SpecError) -> YcsbError {
    let name = match error.key() {
        Some("records") => "recordcount",
        Some("key.size") => "zeropadding",
        Some("value.size") => "fieldlength",
        Some("scan") => "maxscanlength",
        Some("popularity") => "requestdistribution",
        _ => return YcsbError::whole(error.to_string()),
    };
    given.at(name, format!("{error}; it follows from `{name}` and its like"))
}
