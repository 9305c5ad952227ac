use std::collections::BTreeSet;

use model::RunSettings;

use super::{InvalidOption, LOAD_OPTIONS, LoadOptions};

fn settings(options: &LoadOptions) -> Result<RunSettings, InvalidOption> {
    let mut settings = RunSettings::new();
    options.config(2)?.with_default_length().settings(true, &mut settings);
    Ok(settings)
}

#[test]
fn help_names_the_recorded_defaults() {
    let defaults = settings(&LoadOptions::default()).unwrap();
    let mut named = 0;
    for option in LOAD_OPTIONS.iter().filter(|option| option.for_servers) {
        let Some((_, text)) = option.help().split_once("[default: ") else { continue };
        let default = text.split([';', ']']).next().unwrap();
        assert_eq!(defaults[option.key], default, "{}", option.key);
        named += 1;
    }
    assert!(named >= 4, "{named}");
}

#[test]
fn a_flag_and_a_key_give_the_same_option() {
    let values = ["3", "3s", "0.5", "poisson", "epoll", "tap", "true", "false"];
    for option in LOAD_OPTIONS {
        let sets = |text: &&str| {
            let value =
                if text.parse::<bool>().is_ok() { (*text).into() } else { format!("\"{text}\"") };
            let value = if text.parse::<u32>().is_ok() { (*text).into() } else { value };
            let table = toml::from_str::<LoadOptions>(&format!("{} = {value}", option.key));
            match ((option.parse)(text), table) {
                (Ok(flag), Ok(table)) => {
                    assert!((option.span)(&table).is_some_and(|span| !span.is_empty()));
                    assert_eq!(settings(&flag), settings(&table), "{} = {text}", option.key);
                    true
                }
                _ => false,
            }
        };
        assert!(option.key == "steady" || values.iter().any(sets), "{}", option.key);
    }
}

#[test]
fn an_invalid_value_is_refused_under_its_key() {
    let mut refused = BTreeSet::new();
    for option in LOAD_OPTIONS {
        for text in ["", "0", "0s", "x", "-1", "1000000000000"] {
            let Ok(options) = (option.parse)(text) else { continue };
            if let Err(invalid) = options.config(2) {
                assert_eq!(invalid.key, option.key, "{text}");
                refused.insert(invalid.key);
            }
        }
    }
    for key in ["threads", "rate", "arrivals", "time", "operations", "steady", "cpus", "queue"] {
        assert!(refused.contains(key), "{key}: {refused:?}");
    }
}
