//! URLs of servers as other tools write them: safe forms are accepted, passwords are refused
//! without being shown.

use crate::StoreError;
use crate::adapters::{ADAPTERS, Adapter, DataLocation};

/// Schemes that mean TLS, and kvmeter's scheme for each.
const TLS: [(&str, &str); 2] = [("rediss", "redis"), ("valkeys", "valkey")];

/// The part before the host.
const LOGIN: &str = "a user or a password";

/// Refuses a text that may hold a password: other users see the command line.
///
/// # Errors
/// What to write instead; of the text itself only a known scheme is quoted.
pub(crate) fn refuse_secrets(text: &str) -> Result<(), StoreError> {
    let (location, options) = text.split_once('?').unwrap_or((text, ""));
    let login = match location.split_once("://") {
        Some((_, servers)) => servers.split(',').any(|one| {
            // A path may hold what it likes.
            let host = if one.starts_with('/') { "" } else { one };
            host.contains('@')
        }),
        None => false,
    };
    let given = options.split('&').find_map(|option| {
        let name = option.split('=').next().unwrap_or_default();
        let secret = ["pass", "pwd", "secret", "token", "auth"];
        let names_a_place = ["_env", "_file"].iter().any(|end| name.ends_with(end));
        let is_secret = secret.iter().any(|it| name.to_lowercase().contains(it));
        (is_secret && !names_a_place).then_some(name)
    });
    let plain = |name: &&str| name.chars().all(|c| c.is_ascii_alphabetic() || c == '_');
    match (login, given) {
        (false, None) => Ok(()),
        (false, Some(name)) if plain(&name) => Err(secret(text, &format!("option `{name}`"))),
        _ => Err(secret(text, LOGIN)),
    }
}

/// The error for a URL that was not understood and may hold a password.
pub(crate) fn redacted(text: &str, error: StoreError) -> StoreError {
    let scheme = text.split(':').next().unwrap_or_default();
    let known = ADAPTERS.iter().any(|adapter| {
        adapter.scheme == scheme && !matches!(adapter.location, DataLocation::Servers { .. })
    });
    // In the path of an embedded store `@` is an ordinary character.
    if text.contains('@') && !known { secret(text, LOGIN) } else { error }
}

fn secret(text: &str, what: &str) -> StoreError {
    let scheme = text.split(':').next().unwrap_or_default();
    let ours = TLS.iter().find(|(theirs, _)| *theirs == scheme).map_or(scheme, |(_, ours)| ours);
    let networked = |adapter: &&Adapter| matches!(adapter.location, DataLocation::Servers { .. });
    let known = ADAPTERS.iter().filter(networked).find(|adapter| adapter.scheme == ours);
    let scheme = known.map_or("redis", |adapter| adapter.scheme);
    StoreError::Request(format!(
        "the URL of the store contains {what} (not shown), and other users see command lines; \
         write `{scheme}://HOST:PORT?user=NAME&password_env=VARIABLE`, or `password_file=FILE` \
         instead of the variable"
    ))
}

/// The same URL in kvmeter's form: `rediss://` becomes `tls=on`, and `redis://HOST/2` becomes
/// `db=2`.
///
/// # Errors
/// The URL contradicts itself, or names a database other than by its number.
pub(crate) fn normalised(text: &str) -> Result<String, StoreError> {
    let (location, options) =
        text.split_once('?').map_or((text, None), |(location, o)| (location, Some(o)));
    let Some((theirs, servers)) = location.split_once("://") else { return Ok(text.to_owned()) };
    let tls = TLS.iter().find(|(known, _)| *known == theirs);
    let scheme = tls.map_or(theirs, |(_, ours)| ours);
    let takes = |name: &str| {
        let adapter = ADAPTERS.iter().find(|adapter| adapter.scheme == scheme);
        adapter.is_some_and(|adapter| adapter.options.iter().any(|option| option.name == name))
    };
    let mut added = Vec::new();
    if tls.is_some() {
        let given =
            options.into_iter().flat_map(|all| all.split('&')).find(|o| o.starts_with("tls="));
        match given {
            None => added.push("tls=on".to_owned()),
            Some("tls=on" | "tls=true") => {}
            Some(other) => {
                return Err(StoreError::Request(format!(
                    "`{theirs}://` means TLS, but `{other}` is given; write `{scheme}://` without \
                     it"
                )));
            }
        }
    }
    let (others, last) = match servers.rsplit_once(',') {
        Some((others, last)) => (Some(others), last),
        None => (None, servers),
    };
    let mut last = last;
    if takes("db")
        && !last.starts_with('/')
        && let Some((server, database)) = last.split_once('/')
    {
        last = server;
        match database.parse::<u32>() {
            Ok(number) => added.push(format!("db={number}")),
            Err(_) if database.is_empty() => {}
            Err(_) => {
                return Err(StoreError::Request(format!(
                    "`/{database}` names no database; write its number, as in \
                     `{scheme}://HOST:PORT?db=2`"
                )));
            }
        }
    }
    let servers = others.map_or(last.to_owned(), |others| format!("{others},{last}"));
    let options: Vec<String> = options.map(str::to_owned).into_iter().chain(added).collect();
    Ok(match options.is_empty() {
        true => format!("{scheme}://{servers}"),
        false => format!("{scheme}://{servers}?{}", options.join("&")),
    })
}

#[cfg(test)]
mod tests {
    use model::Address;

    use crate::StoreUrl;

    #[test]
    fn understands_urls_of_other_tools() {
        for (text, ours) in [
            ("rediss://a", "redis://a:6379?tls=on"),
            ("valkeys://a:1?timeout=1s", "valkey://a:1?timeout=1s&tls=on"),
            ("rediss://a?tls=on", "redis://a:6379?tls=on"),
            ("redis://a:1/2", "redis://a:1?db=2"),
            ("redis://a,[::1]:1/0?timeout=1s", "redis://a:6379,[::1]:1?timeout=1s&db=0"),
            ("redis://a/", "redis://a:6379"),
            ("redis:///run/a@b.sock", "redis:///run/a@b.sock"),
            ("redis://a?user=x&password_env=HOME", "redis://a:6379?user=x&password_env=HOME"),
        ] {
            assert_eq!(text.parse::<StoreUrl>().unwrap().to_string(), ours, "{text}");
        }
        for (text, why) in [
            ("rediss://a?tls=off", "`rediss://` means TLS"),
            ("redis://a/x", "names no database"),
            ("redis://a/1?db=2", "given twice"),
        ] {
            let error = text.parse::<StoreUrl>().unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn refuses_secrets_without_showing_them() {
        for text in [
            "redis://user:s3cret@host",
            "redis://:s3cret@host:1/2",
            "redis://s3cret@host",
            "rediss://user:s3/cret@host",
            "redis://user:s3?cret@host",
            "redis://a,user:s3cret@b",
            "memcached://user:s3cret@host",
            "postgres://user:s3cret@host",
            "user:s3cret@host:6379",
            "s3cret@host:6379",
            "redis:user:s3cret@host",
            "redis://a?password=s3cret",
            "redis://a?requirepass=s3cret&foo",
            "redis://a?auth=s3cret",
        ] {
            let error = text.parse::<StoreUrl>().unwrap_err().to_string();
            assert!(!error.contains("cret") && !error.contains("s3"), "{text}: {error}");
            assert!(error.contains("password_env"), "{text}: {error}");
        }
        // An address alone, as a study's `servers` has it.
        let error = Address::parse("user:s3cret@host", 1).unwrap_err().to_string();
        assert!(!error.contains("s3cret"), "{error}");
        // In a path it is an ordinary character.
        let error = "lmdb:/a@b?x=1".parse::<StoreUrl>().unwrap_err().to_string();
        assert!(!error.contains("password"), "{error}");
    }
}
