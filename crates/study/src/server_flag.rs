//! Parses the settings of a server in a flag: those of a study's table, in one line.

use serde::Deserialize;
use server::launch::{ServerSettings, Value};

/// A setting and its value, as TOML reads it in a study.
#[derive(Deserialize)]
struct SettingLine {
    value: Value,
}

/// Reads `memory=1GiB,cpus=0,1,arguments=["-v", "-R", "5"]`: values as in a study's `[server.NAME]`,
/// where text needs its quotes only if it could be read as something else. A comma ends a setting
/// where another one follows, outside quotes and brackets.
///
/// # Errors
/// Text that is not `setting=value`.
pub(crate) fn read(words: &str) -> Result<ServerSettings, String> {
    let mut settings = ServerSettings::default();
    for setting in settings_of(words) {
        let (key, text) =
            setting.split_once('=').filter(|(key, _)| is_key(key)).ok_or_else(|| {
                format!(
                    "`{setting}` is not `setting=value`; settings follow each other with commas"
                )
            })?;
        settings = settings.with(key.trim(), value(text.trim()));
    }
    Ok(settings)
}

fn value(text: &str) -> Value {
    // Nothing that ends the value's line is part of it.
    let line = (!text.contains(['\n', '\r'])).then(|| format!("value = {text}"));
    let read = line.and_then(|line| toml::from_str::<SettingLine>(&line).ok());
    read.map_or_else(|| Value::from(text), |line| line.value)
}

fn is_key(text: &str) -> bool {
    let text = text.trim();
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

/// Each setting's text: what follows a comma and names no setting belongs to the one before.
fn settings_of(words: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for part in parts(words) {
        let begins = part.split_once('=').is_some_and(|(key, _)| is_key(key));
        match all.last_mut() {
            Some(last) if !begins => {
                last.push(',');
                last.push_str(part);
            }
            _ => all.push(part.to_owned()),
        }
    }
    all
}

/// Split at the commas that stand outside quotes and brackets.
fn parts(words: &str) -> Vec<&str> {
    let (mut parts, mut begin, mut depth) = (Vec::new(), 0, 0_usize);
    let (mut quote, mut escaped) = (None, false);
    for (at, c) in words.char_indices() {
        match (quote, c) {
            _ if escaped => escaped = false,
            (Some('"'), '\\') => escaped = true,
            (Some(open), _) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '[') => depth += 1,
            (None, ']') => depth = depth.saturating_sub(1),
            (None, ',') if depth == 0 => {
                parts.push(&words[begin..at]);
                begin = at + 1;
            }
            (None, _) => {}
        }
    }
    parts.push(&words[begin..]);
    parts
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use server::launch::PROGRAMS;

    use super::*;
    use crate::server_spec::ServerSpec;

    /// A value of every setting that any program has: as a flag has it, and as a study has it.
    fn sample(setting: &str) -> (&'static str, &'static str) {
        match setting {
            "memory" => ("1GiB", "\"1GiB\""),
            "threads" | "connections" | "processes" | "cluster" | "replicas" => ("3", "3"),
            "user" => ("nobody", "\"nobody\""),
            "policy" => ("allkeys-lru", "\"allkeys-lru\""),
            "port" => ("7000", "7000"),
            "socket" => ("\"/tmp/a,b=c.sock\"", "\"/tmp/a,b=c.sock\""),
            "listen" => ("::1", "\"::1\""),
            "cpus" => ("0-1,3", "\"0-1,3\""),
            "binary" => ("/opt/my server", "\"/opt/my server\""),
            "arguments" => ("[\"--save\", \"60,1\", 'a=b']", "[\"--save\", \"60,1\", 'a=b']"),
            other => panic!("say here what `{other}` takes"),
        }
    }

    #[test]
    fn every_setting_is_written_alike_in_flags_and_studies() {
        for program in PROGRAMS {
            let names = program.settings().iter().map(|setting| setting.name);
            let (mut flags, mut lines) = (Vec::new(), String::new());
            for name in names.chain(["processes"]) {
                let (flag, line) = sample(name);
                let study: BTreeMap<String, Value> =
                    toml::from_str(&format!("{name} = {line}")).unwrap();
                let read = read(&format!("{name}={flag}")).unwrap();
                assert_eq!(read, ServerSettings(study.into_iter().collect()), "{name}");
                // Replicas are of a cluster.
                let alone = match name {
                    "replicas" => read.with("cluster", 3),
                    _ => read,
                };
                ServerSpec::new(program.name(), alone).unwrap();
                // What a study's line says is a flag's text, too; these exclude `port`.
                if !["socket", "processes", "cluster", "replicas"].contains(&name) {
                    flags.push(format!("{name}={flag}"));
                    lines.push_str(&format!("{name} = {line}\n"));
                }
            }
            // All compatible settings in one line.
            let all = read(&flags.join(",")).unwrap();
            let study: BTreeMap<String, Value> = toml::from_str(&lines).unwrap();
            let sorted: BTreeMap<String, Value> = all.0.iter().cloned().collect();
            assert_eq!(sorted, study);
            ServerSpec::new(program.name(), all).unwrap();
        }
    }

    #[test]
    fn text_may_have_its_quotes() {
        let quoted = read("memory=\"1GiB\", user='nobody'").unwrap();
        assert_eq!(quoted, read("memory=1GiB,user=nobody").unwrap());
    }

    #[test]
    fn mistakes_are_named() {
        for (words, sign) in [
            ("", "`` is not `setting=value`"),
            ("memory", "`memory` is not `setting=value`"),
            ("=1", "`=1` is not"),
            ("1,memory=2", "`1` is not"),
        ] {
            let error = read(words).unwrap_err();
            assert!(error.contains(sign), "{words}: {error}");
        }
        let refused = |words: &str| {
            ServerSpec::new("memcached", read(words).unwrap()).unwrap_err().to_string()
        };
        let error = refused("memroy=1GiB");
        assert!(error.contains("did you mean `memory`?"), "{error}");
        let error = refused("xyzzyxyzzy=1");
        assert!(error.contains("arguments, processes"), "{error}");
        let error = refused("arguments=[-v]");
        assert!(error.contains("takes a list of texts such as `[\"-v\"]`, not `[-v]`"), "{error}");
    }
}
