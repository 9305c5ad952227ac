//! CPU lists as the kernel writes them: `0-3,8`.

/// The CPUs of a list, in order and once each; `None` if it is not one.
pub(super) fn parse(text: &str) -> Option<Vec<usize>> {
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        // A mistake such as `0-40000000` must not fill the memory.
        if first > last || last > 65_535 {
            return None;
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Some(cpus)
}

/// The list of CPUs in order, shortest form.
pub(super) fn show(cpus: &[usize]) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut rest = cpus;
    while let Some(first) = rest.first() {
        let run = rest.iter().zip(*first..).take_while(|(cpu, at)| *cpu == at).count();
        parts.push(match run {
            1 => first.to_string(),
            _ => format!("{first}-{}", first + run - 1),
        });
        rest = &rest[run..];
    }
    parts.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_read_back() {
        for (text, cpus, shown) in [
            ("0", vec![0], "0"),
            ("0-3", vec![0, 1, 2, 3], "0-3"),
            ("8,0-1, 1", vec![0, 1, 8], "0-1,8"),
        ] {
            assert_eq!(parse(text), Some(cpus.clone()), "{text}");
            assert_eq!(show(&cpus), shown);
        }
        for text in ["", "a", "3-1", "1-", "-1", "0-99999999", "0,,1"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
