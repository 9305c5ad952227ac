//! Prices as CSV.

use super::InstancePrice;
use super::row::{lacking, row};

/// The rows below the head line; the error names the line.
pub(super) fn rows(text: &str) -> Result<Vec<InstancePrice>, String> {
    let mut reader = ::csv::ReaderBuilder::new().from_reader(text.as_bytes());
    let line_of = |error: &::csv::Error| error.position().map_or(1, ::csv::Position::line);
    let broken = |error: ::csv::Error| match error.kind() {
        ::csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            format!("line {}: {len} columns, and the head has {expected_len}", line_of(&error))
        }
        _ => format!("line {}: it is not CSV", line_of(&error)),
    };
    let head = reader.headers().map_err(broken)?.clone();
    if let Some(column) = lacking(head.iter()) {
        return Err(format!(
            "line 1: there is no column `{column}`; the head must name `instance` and `usd_per_h`, and \
             may name `term`, `region`, `vcpus` and `memory_gib`"
        ));
    }
    let mut all = Vec::new();
    for record in reader.records() {
        let record = record.map_err(broken)?;
        let line = record.position().map_or(0, ::csv::Position::line);
        all.push(row(format!("line {line}"), head.iter().zip(record.iter()))?);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use analyse::cost::RentalTerm;

    #[test]
    fn columns_are_found_by_name_in_any_order() {
        let text = "Price per hour,Instance Type,vCPU,Memory,Term,Remark\n\
                    $0.504,\"m7.large, new\",2,8 GiB,On Demand,x\n0.2,b,,,SPOT,\n";
        let rows = rows(text).unwrap();
        let first = InstancePrice {
            place: "line 2".to_owned(),
            instance: "m7.large, new".to_owned(),
            usd_per_h: 0.504,
            term: RentalTerm::OnDemand,
            region: None,
            vcpus: Some(2.0),
            memory_gib: Some(8.0),
        };
        assert_eq!(rows[0], first);
        assert_eq!(
            (rows[1].place.as_str(), rows[1].term, rows[1].memory_gib),
            ("line 3", RentalTerm::Spot, None)
        );
    }

    #[test]
    fn refuses_hostile_tables_with_their_line() {
        for (text, words) in [
            ("", "line 1: there is no column `instance`"),
            ("a,b\n1,2\n", "line 1: there is no column `instance`"),
            ("instance,vcpus\nx,2\n", "no column `usd_per_h`"),
            ("instance,usd_per_h\nx,much\n", "line 2: `usd_per_h` is `much`"),
            ("instance,usd_per_h\nx,1\ny,0\n", "line 3: `usd_per_h` is `0`"),
            ("instance,usd_per_h\nx,nan\n", "line 2: `usd_per_h` is `nan`"),
            ("instance,usd_per_h\nx,1e999\n", "line 2: `usd_per_h` is `1e999`"),
            ("instance,usd_per_h\n,1\n", "line 2: `instance` is missing"),
            ("instance,usd_per_h\nx,1,2\n", "line 2: 3 columns, and the head has 2"),
            ("instance,usd_per_h,term\nx,1,monthly\n", "line 2: `term` is `monthly`"),
            ("instance,usd_per_h,memory\nx,1,-8 GiB\n", "line 2: `memory_gib` is `-8 GiB`"),
        ] {
            let why = rows(text).unwrap_err();
            assert!(why.contains(words), "{text:?}: {why}");
        }
    }
}
