//! Prices as JSON.

use serde_json::{Map, Value};

use super::InstancePrice;
use super::row::row;

/// The objects of an array; an error names the line, or the number of the object.
pub(super) fn rows(text: &str) -> Result<Vec<InstancePrice>, String> {
    let value: Value = serde_json::from_str(text)
        .map_err(|error| format!("line {}: it is not JSON", error.line().max(1)))?;
    let Value::Array(all) = value else {
        return Err("line 1: prices are an array of objects".to_owned());
    };
    let mut found = Vec::with_capacity(all.len());
    for (at, one) in all.iter().enumerate() {
        let place = format!("object {}", at + 1);
        let Value::Object(object) = one else {
            return Err(format!("{place}: it is not an object"));
        };
        let texts = texts(object);
        let columns = texts.iter().map(|(name, text)| (name.as_str(), text.as_str()));
        found.push(row(place, columns)?);
    }
    Ok(found)
}

/// Texts and numbers; what is nested does not matter.
fn texts(object: &Map<String, Value>) -> Vec<(String, String)> {
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    object.iter().filter_map(|(name, value)| Some((name.clone(), text(value)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_have_the_columns_of_csv() {
        let text = r#"[{"instance": "x", "usd_per_h": 0.25, "memory": "16 GiB", "tags": ["a"]},
            {"instanceType": "y", "pricePerHour": "0.5", "termType": "Reserved", "region": "eu"}]"#;
        let rows = rows(text).unwrap();
        assert_eq!((rows[0].usd_per_h, rows[0].memory_gib), (0.25, Some(16.0)));
        assert_eq!((rows[1].term.name(), rows[1].region.as_deref()), ("reserved", Some("eu")));
    }

    #[test]
    fn refuses_hostile_json_with_its_line() {
        let deep = "[".repeat(100_000);
        for (text, words) in [
            ("[{\n\"instance\": ]", "line 2: it is not JSON"),
            ("{\"instance\": \"x\"}", "an array of objects"),
            ("[5]", "object 1: it is not an object"),
            ("[{\"instance\": \"x\", \"usd_per_h\": -1}]", "object 1: `usd_per_h` is `-1`"),
            ("[{\"instance\": \"x\", \"usd_per_h\": null}]", "object 1: `usd_per_h` is missing"),
            (deep.as_str(), "it is not JSON"),
        ] {
            let why = rows(text).unwrap_err();
            assert!(why.contains(words), "{}: {why}", &text[..text.len().min(40)]);
        }
    }
}
