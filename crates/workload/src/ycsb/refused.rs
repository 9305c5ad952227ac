//! Properties that kvmeter does not have, each with what to do instead.

use model::suggest;

use super::YcsbError;
use super::properties::Property;

/// The properties of the core workload and of the client that are mapped, or refused by value.
const KNOWN: [&str; 38] = [
    "workload",
    "recordcount",
    "operationcount",
    "insertstart",
    "insertcount",
    "fieldcount",
    "fieldlength",
    "minfieldlength",
    "fieldlengthdistribution",
    "fieldlengthhistogram",
    "fieldnameprefix",
    "readallfields",
    "readallfieldsbyname",
    "writeallfields",
    "readproportion",
    "updateproportion",
    "insertproportion",
    "scanproportion",
    "readmodifywriteproportion",
    "requestdistribution",
    "hotspotdatafraction",
    "hotspotopnfraction",
    "exponential.percentile",
    "exponential.frac",
    "minscanlength",
    "maxscanlength",
    "scanlengthdistribution",
    "insertorder",
    "zeropadding",
    "keyprefix",
    "dataintegrity",
    "table",
    "threadcount",
    "target",
    "maxexecutiontime",
    "dotransactions",
    "core_workload_insertion_retry_limit",
    "core_workload_insertion_retry_interval",
];

/// Properties of YCSB's output.
const OUTPUT: [&str; 8] = [
    "exporter",
    "exportfile",
    "measurementtype",
    "status",
    "label",
    "reportlatencyforeacherror",
    "latencytrackederrors",
    "timeseries.granularity",
];
const OUTPUT_PREFIXES: [&str; 6] =
    ["measurement.", "histogram.", "hdrhistogram.", "status.", "timeseries.", "htrace."];

/// # Errors
/// A property that is not mapped.
pub(super) fn check(property: &Property) -> Result<(), YcsbError> {
    let name = property.name.as_str();
    if KNOWN.contains(&name) {
        return Ok(());
    }
    let output =
        OUTPUT.contains(&name) || OUTPUT_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    let problem = match name {
        "db" => "`db` names YCSB's binding, and kvmeter names the store on its command line; \
                 remove the line"
            .to_owned(),
        _ if output => format!(
            "`{name}` says what YCSB prints; remove the line: kvmeter keeps every latency, and \
             `kvmeter report` shows them"
        ),
        _ => match suggest::nearest(name, KNOWN) {
            Some(near) => format!(
                "`{name}` is not a property of YCSB's core workload; did you mean `{near}`?"
            ),
            None => format!(
                "`{name}` is not a property of YCSB's core workload; remove the line: of a binding, \
                 the URL of kvmeter's store has address and options"
            ),
        },
    };
    Err(YcsbError::at(property.line, problem))
}
