use std::collections::BTreeSet;
use std::time::Duration;

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
    let values = [
        "sine:mean=2k,amplitude=1k,period=1m",
        "3",
        "3s",
        "0.5",
        "poisson",
        "epoll",
        "tap",
        "true",
        "false",
    ];
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

fn options(toml: &str) -> LoadOptions {
    toml::from_str(toml).unwrap()
}

#[test]
fn a_profile_gives_the_rate_and_the_length() {
    let of = |toml: &str| options(toml).config(2).unwrap().with_default_length();
    let rates = of("rate_profile = \"steps:10k@30s,40k@30s\"");
    assert_eq!(
        (rates.mean_rate(), rates.shape.until.time),
        (Some(25e3), Some(Duration::from_secs(60)))
    );
    let multiples = of("rate = \"10k\"\nrate_profile = \"steps:0.5x@30s,2x@30s\"");
    assert_eq!(multiples.mean_rate(), Some(12.5e3));
    let short = of("rate = \"10k\"\ntime = \"30s\"\nrate_profile = \"steps:0.5x@30s,2x@30s\"");
    assert_eq!(short.mean_rate(), Some(5e3));
    let constant = of("rate = \"10k\"\nrate_profile = \"constant\"");
    assert_eq!((constant.mean_rate(), constant.shape.profile), (Some(10e3), None));
    // The maximum that a share is of may come later; a trial at a rate does not move.
    let share = of("rate = \"50%\"\nrate_profile = \"steps:0.5x@30s,2x@30s\"");
    assert_eq!(share.calibrated(1e6).mean_rate(), Some(625e3));
    assert_eq!(share.at(7e3, Duration::from_secs(1)).mean_rate(), Some(7e3));
}

#[test]
fn the_profile_that_was_checked_is_run_even_if_its_file_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("day.csv");
    std::fs::write(&file, "0,1000\n10,3000\n").unwrap();
    let given = options(&format!("rate_profile = {file:?}"));
    std::fs::remove_file(&file).unwrap();
    assert_eq!(given.config(2).unwrap().mean_rate(), Some(2e3));
}

#[test]
fn a_profile_is_refused_with_the_way_out() {
    let steps = "rate_profile = \"steps:0.5x@30s,2x@30s\"\n";
    let rates = "rate_profile = \"steps:5k@30s\"\n";
    for (toml, key, words) in [
        (steps.to_owned(), "rate_profile", "a closed loop has none; give `rate` too"),
        (format!("{steps}think = \"1s\""), "rate_profile", "give `rate` too"),
        (format!("{rates}think = \"1s\""), "think", "belongs to a closed loop"),
        (format!("{rates}rate = \"1k\""), "rate_profile", "write multiples of it: `0.5x`"),
        (format!("{rates}operations = 9"), "operations", "give a time"),
        (format!("{rates}steady = {{}}"), "steady", "judges the throughput"),
        (format!("{steps}rate = \"900M\""), "rate_profile", "at most 1G"),
        ("rate_profile = \"steps:-1@1s\"".to_owned(), "rate_profile", "goes below zero"),
        ("rate_profile = \"none.csv\"".to_owned(), "rate_profile", "none.csv"),
    ] {
        let invalid = options(&toml).config(2).unwrap_err();
        assert!(invalid.key == key && invalid.why.contains(words), "{toml}: {invalid}");
    }
    let of_trace = options(rates).replay_config(None, 2).unwrap_err();
    assert_eq!(of_trace.key, "rate_profile");
}
