//! Names of machines that a reader knows them by.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{Execution, Machine};

/// Letters of an id that tell machines of one name apart.
const ID_LETTERS: usize = 4;

/// The name of each machine of these executions, by its id: the platform that the study says it is,
/// else the model of its CPUs, else its id. Machines of one name have a part of the id behind it.
pub fn machine_names<'a>(
    executions: impl IntoIterator<Item = &'a Execution>,
) -> BTreeMap<String, Arc<str>> {
    let mut names: BTreeMap<&str, String> = BTreeMap::new();
    for execution in executions {
        let platform = execution.design.platform.as_deref().map(platform_name);
        let name = platform.or_else(|| cpu_model(&execution.machine));
        let id = execution.machine.id.as_str();
        names.entry(id).or_insert_with(|| name.unwrap_or_else(|| id.to_owned()));
    }
    let mut seen = BTreeSet::new();
    let twice: BTreeSet<String> =
        names.values().filter(|name| !seen.insert((*name).clone())).cloned().collect();
    let unique = |(id, name): (&str, String)| {
        let own: String = id.chars().take(ID_LETTERS).collect();
        let name = if twice.contains(&name) { format!("{name} ({own})") } else { name };
        (id.to_owned(), Arc::from(name))
    };
    names.into_iter().map(unique).collect()
}

/// The name of a platform, of a file without its folder and ending.
fn platform_name(name: &str) -> String {
    let file = name.strip_suffix(".toml").and_then(|path| path.rsplit('/').next());
    file.unwrap_or(name).to_owned()
}

/// `Intel Xeon E5-2660 v4` of `Intel(R) Xeon(R) CPU E5-2660 v4 @ 2.00GHz`.
fn cpu_model(machine: &Machine) -> Option<String> {
    let model = machine.fact("cpu.model")?;
    let model = model.split('@').next().unwrap_or(model);
    let model = model.replace("(R)", "").replace("(TM)", "").replace("(r)", "").replace("(tm)", "");
    let words = model.split_whitespace().filter(|word| !matches!(*word, "CPU" | "Processor"));
    Some(words.collect::<Vec<_>>().join(" ")).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_is_named_without_its_marks() {
        let named = |text: &str| {
            let value = Ok(text.to_owned());
            let fact = model::Fact { name: "cpu.model".to_owned(), value, source: String::new() };
            cpu_model(&Machine { id: "1".to_owned(), facts: vec![fact] })
        };
        assert_eq!(
            named("Intel(R) Xeon(R) CPU E5-2660 v4 @ 2.00GHz").as_deref(),
            Some("Intel Xeon E5-2660 v4")
        );
        assert_eq!(named("AMD EPYC 9B14").as_deref(), Some("AMD EPYC 9B14"));
        assert_eq!(named(" @ 2 GHz"), None);
    }

    #[test]
    fn a_platform_is_named_without_its_folder() {
        for (name, shown) in [("s4", "s4"), ("box.toml", "box"), ("../own/box.toml", "box")] {
            assert_eq!(platform_name(name), shown);
        }
    }
}
