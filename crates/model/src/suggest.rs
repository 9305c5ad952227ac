//! "Did you mean": the nearest known name to one that is not known.

/// The nearest of `known` to `wrong`, if any is near enough to be meant.
pub fn nearest<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (wrong.chars().count() / 3).max(2);
    let distance = |name: &str| match begins(name, wrong) {
        // A prefix counts as near as one edit.
        true => 2,
        false => strsim::osa_distance(wrong, name),
    };
    known
        .into_iter()
        .map(|name| (distance(name), name))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// serde's message about an unknown name, with the nearest expected name; other messages unchanged.
pub fn with_suggestion(message: &str) -> String {
    let mut quoted = message.split('`').skip(1).step_by(2);
    let unknown = message.starts_with("unknown ");
    let meant = match (unknown, quoted.next()) {
        (true, Some(wrong)) => nearest(wrong, quoted),
        _ => None,
    };
    match meant {
        Some(name) => format!("{message}; did you mean `{name}`?"),
        None => message.to_owned(),
    }
}

/// Whether the text is a long enough prefix of the name.
fn begins(name: &str, wrong: &str) -> bool {
    wrong.len() >= 3 && name.starts_with(wrong)
}

/// A sentence to end an error message with: the nearest name, or all of them.
pub fn hint<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> String {
    match nearest(wrong, known.clone()) {
        Some(name) => format!("did you mean `{name}`?"),
        None => {
            let all: Vec<&str> = known.into_iter().collect();
            format!("known: {}", all.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggests_the_nearest_name() {
        let known = ["threads", "records", "rate", "value_size"];
        assert_eq!(nearest("thread", known), Some("threads"));
        assert_eq!(nearest("recrods", known), Some("records"));
        assert_eq!(nearest("value-size", known), Some("value_size"));
        assert_eq!(nearest("compression", known), None);
        assert_eq!(nearest("zipf", ["uniform", "zipfian"]), Some("zipfian"));
        assert_eq!(hint("xyzzy", ["a", "bc"]), "known: a, bc");
    }

    #[test]
    fn names_what_serde_expected() {
        let unknown = "unknown field `thread`, expected `threads` or `rate`";
        assert_eq!(with_suggestion(unknown), format!("{unknown}; did you mean `threads`?"));
        let far = "unknown variant `xyzzy`, expected `threads` or `rate`";
        assert_eq!(with_suggestion(far), far);
        let other = "missing field `threads`";
        assert_eq!(with_suggestion(other), other);
    }
}
