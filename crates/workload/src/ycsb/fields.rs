//! Fields of a record as one value, and the lengths that YCSB draws by Zipf's law.

use model::Bytes;

use super::YcsbError;
use super::property_map::PropertyMap;
use crate::popularity::THETA;
use crate::{LengthSpec, ValueSpec};

/// The most rows of a table of lengths.
const MOST_LENGTHS: u64 = 1000;

#[derive(Debug, Clone, Copy, PartialEq)]
enum FieldLength {
    Constant,
    Uniform,
    Zipfian,
    Histogram,
}

/// The whole record as one value.
pub(super) fn value(given: &PropertyMap) -> Result<ValueSpec, YcsbError> {
    let fields: u64 = given.number("fieldcount", 10)?;
    let length: u64 = given.number("fieldlength", 100)?;
    let shortest: u64 = given.number("minfieldlength", 1)?;
    if fields == 0 {
        return Err(given.at("fieldcount", "`fieldcount` is 0; a record has at least one field"));
    }
    check_fields(given, fields)?;
    let by = [
        ("constant", FieldLength::Constant),
        ("uniform", FieldLength::Uniform),
        ("zipfian", FieldLength::Zipfian),
        ("histogram", FieldLength::Histogram),
    ];
    let name = "fieldlengthdistribution";
    let law = given.choice(name, &by)?;
    if law != FieldLength::Constant && fields > 1 {
        let problem = format!(
            "`{name}` draws each of the {fields} fields, and kvmeter has no law for their sum; set \
             `fieldcount` to 1, or `{name}` to `constant` and give `--value-size`, or `size` in \
             [data.value]"
        );
        return Err(given.at(name, problem));
    }
    let size = match law {
        FieldLength::Constant => match fields.checked_mul(length) {
            Some(whole) => LengthSpec::fixed(whole),
            None => {
                let problem = format!("{fields} fields of {length} B are too long for a value");
                return Err(given.at("fieldlength", problem));
            }
        },
        FieldLength::Uniform => LengthSpec::Uniform { min: Bytes(shortest), max: Bytes(length) },
        FieldLength::Zipfian => {
            zipfian(given, ("minfieldlength", shortest), ("fieldlength", length))?
        }
        FieldLength::Histogram => {
            let problem = format!(
                "`{name}` is `histogram`, and kvmeter does not read YCSB's histograms; remove the \
                 line, and give `--value-size discrete:100=0.5,1000=0.5`, or the same as `size` in \
                 [data.value]"
            );
            return Err(given.at(name, problem));
        }
    };
    Ok(ValueSpec { size, ..ValueSpec::default() })
}

/// Refuses requests for a part of a record. That YCSB updates one field is its default, and
/// kvmeter's presets write the whole record as well.
fn check_fields(given: &PropertyMap, fields: u64) -> Result<(), YcsbError> {
    given.flag("writeallfields", false)?;
    given.flag("dataintegrity", false)?;
    if fields > 1 && !given.flag("readallfields", true)? {
        let problem = format!(
            "`readallfields` is false, and kvmeter has no reads of one of {fields} fields; set it \
             to true, or `fieldcount` to 1"
        );
        return Err(given.at("readallfields", problem));
    }
    if given.flag("readallfieldsbyname", false)? {
        let problem = "`readallfieldsbyname` is true, and kvmeter's records have no fields with \
                       names; remove the line";
        return Err(given.at("readallfieldsbyname", problem));
    }
    Ok(())
}

/// YCSB's Zipfian lengths: `shortest` is the most frequent. By the exact law.
pub(super) fn zipfian(
    given: &PropertyMap,
    (shortest_name, shortest): (&str, u64),
    (longest_name, longest): (&str, u64),
) -> Result<LengthSpec, YcsbError> {
    if longest < shortest {
        let problem = format!("`{longest_name}` is {longest}, below `{shortest_name}`, {shortest}");
        return Err(given.at(longest_name, problem));
    }
    if longest - shortest >= MOST_LENGTHS {
        let problem = format!(
            "{shortest} to {longest} are more than {MOST_LENGTHS} lengths, the most that kvmeter \
             draws by Zipf's law; lower `{longest_name}`, or draw uniformly"
        );
        return Err(given.at(longest_name, problem));
    }
    let weight = |rank: u64| (rank as f64).powf(-THETA);
    let count = longest - shortest + 1;
    let sum: f64 = (1..=count).map(weight).sum();
    let values = (1..=count).map(|rank| (Bytes(shortest + rank - 1), weight(rank) / sum)).collect();
    Ok(LengthSpec::Discrete { values, tail: None })
}
