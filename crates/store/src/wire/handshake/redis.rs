//! Redis, Valkey and compatible servers.

use std::io::{Read, Write};

use super::super::error::excerpt;
use super::super::resp::{self, Value};
use super::super::{ClusterMap, Login, Refusal, Response, WireError};
use super::HandshakeError;
use super::exchange::{Handshake, is_protected};

/// The statistic that says when the append-only file is synced.
pub const APPENDFSYNC: &str = "appendfsync";

/// An owned answer.
enum Reply {
    Text(String),
    /// The texts of a list, or of the lists that it has.
    Texts(Vec<String>),
    Refused {
        why: Refusal,
        words: String,
    },
}

pub(super) fn greet<const VERSION: u8>(
    handshake: &mut Handshake<'_, impl Read + Write>,
    login: &Login,
) -> Result<String, HandshakeError> {
    match (&login.user, &login.password) {
        (_, Some(password)) => {
            let mut words = vec!["AUTH".as_bytes()];
            words.extend(login.user.as_deref().map(str::as_bytes));
            words.push(password.expose().as_bytes());
            match request::<VERSION>(handshake, "logging in", &words)? {
                Reply::Refused { why: Refusal::Auth, words } if !is_protected(&words) => {
                    return Err(HandshakeError::LoginRefused { words });
                }
                Reply::Refused { words, .. } if words.contains("without any password") => {
                    return Err(HandshakeError::LoginNotRequired { words });
                }
                reply => done(handshake, reply)?,
            };
        }
        (Some(_), None) => return Err(HandshakeError::IncompleteLogin { protocol: "Redis" }),
        (None, None) => {}
    }
    if VERSION == 3 {
        let reply = request::<VERSION>(handshake, "requesting RESP3", &[b"HELLO", b"3"])?;
        done(handshake, reply)?;
    }
    if login.database != 0 {
        let database = login.database.to_string();
        let words: [&[u8]; 2] = [b"SELECT", database.as_bytes()];
        let reply = request::<VERSION>(handshake, "choosing the database", &words)?;
        done(handshake, reply)?;
    }
    version::<VERSION>(handshake)
}

/// The version as the server names itself; without the permission only the kind of server.
fn version<const VERSION: u8>(
    handshake: &mut Handshake<'_, impl Read + Write>,
) -> Result<String, HandshakeError> {
    let step = "requesting the version";
    match request::<VERSION>(handshake, step, &[b"INFO", b"server"])? {
        Reply::Refused { why, words } if !words.starts_with("NOPERM") && !is_unknown(&words) => {
            return Err(handshake.refused(Response::Refused { why, words }));
        }
        Reply::Refused { words, .. } if is_unknown(&words) => {
            let own = own_statistics::<VERSION>(handshake, step)?;
            let field = |key: &str| own.iter().find(|(name, _)| name == key).map(|(_, text)| text);
            if let (Some(product), Some(version)) = (field("product"), field("version")) {
                return Ok(format!("{} {version}", capitalised(product)));
            }
        }
        Reply::Text(info) => return Ok(named_by_info(&info)),
        _ => {}
    }
    match request::<VERSION>(handshake, step, &[b"HELLO"])? {
        Reply::Texts(facts) => {
            let fact = |key: &str| {
                let mut pairs = facts.chunks_exact(2);
                pairs.find(|pair| pair[0] == key).map(|pair| pair[1].as_str())
            };
            let name = capitalised(fact("server").unwrap_or("redis"));
            Ok(fact("version").map_or(name.clone(), |version| format!("{name} {version}")))
        }
        _ => Ok("Redis".into()),
    }
}

/// The name and version in the answer to `INFO server`.
fn named_by_info(info: &str) -> String {
    let field = |key: &str| {
        let mut lines = info.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(name, _)| *name == key).map(|(_, text)| text.trim())
    };
    // The others report a Redis version for compatibility.
    let known = [
        ("valkey_version", "Valkey"),
        ("dragonfly_version", "Dragonfly"),
        ("garnet_version", "Garnet"),
        ("kvrocks_version", "Kvrocks"),
        ("keydb_version", "KeyDB"),
        ("redis_version", "Redis"),
    ];
    let named = known.iter().find_map(|(key, name)| Some((*name, field(key)?)));
    // KeyDB has no field of its own version, which is the one that it calls Redis's.
    let program = field("executable").and_then(|path| path.rsplit('/').next()).unwrap_or_default();
    match named {
        Some(("Redis", version)) if program.starts_with("keydb") => format!("KeyDB {version}"),
        Some((name, version)) => format!("{name} {version}"),
        None => "Redis".into(),
    }
}

/// Statistics as memcached names them, which Pogocache answers in pairs; none of a server without.
fn own_statistics<const VERSION: u8>(
    handshake: &mut Handshake<'_, impl Read + Write>,
    step: &'static str,
) -> Result<Vec<(String, String)>, HandshakeError> {
    let Reply::Texts(texts) = request::<VERSION>(handshake, step, &[b"STATS"])? else {
        return Ok(Vec::new());
    };
    let pairs = texts.chunks_exact(2);
    Ok(pairs.map(|pair| (pair[0].clone(), pair[1].clone())).collect())
}

/// Whether a server does not have a command.
fn is_unknown(words: &str) -> bool {
    words.contains("unknown command")
}

fn capitalised(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().collect::<String>() + letters.as_str()
    })
}

/// Marks a connection that is no load: the server does not drop it for memory, and its commands
/// leave the keys' ages as they are. Servers and logins without these are left alone.
pub(super) fn control<const VERSION: u8>(
    handshake: &mut Handshake<'_, impl Read + Write>,
) -> Result<(), HandshakeError> {
    for option in ["NO-EVICT", "NO-TOUCH"] {
        let words: [&[u8]; 3] = [b"CLIENT", option.as_bytes(), b"on"];
        // A refusal is an answer too.
        request::<VERSION>(handshake, "preparing a control connection", &words)?;
    }
    Ok(())
}

pub(super) fn statistics<const VERSION: u8>(
    handshake: &mut Handshake<'_, impl Read + Write>,
) -> Result<Vec<(String, String)>, HandshakeError> {
    let step = "requesting statistics";
    let reply = request::<VERSION>(handshake, step, &[b"INFO"])?;
    if matches!(&reply, Reply::Refused { words, .. } if is_unknown(words)) {
        return own_statistics::<VERSION>(handshake, step);
    }
    let mut statistics = flatten(&done(handshake, reply)?);
    if statistics.iter().any(|(name, value)| name == "aof_enabled" && value != "0") {
        let words: [&[u8]; 3] = [b"CONFIG", b"GET", APPENDFSYNC.as_bytes()];
        // Not every server has it, and not every login has the permission.
        if let Reply::Texts(pair) = request::<VERSION>(handshake, step, &words)?
            && let [name, how] = &pair[..]
        {
            statistics.push((name.clone(), how.clone()));
        }
    }
    Ok(statistics)
}

pub(super) fn flush<const VERSION: u8>(
    handshake: &mut Handshake<'_, impl Read + Write>,
) -> Result<(), HandshakeError> {
    let reply = request::<VERSION>(handshake, "emptying the database", &[b"FLUSHDB"])?;
    done(handshake, reply).map(drop)
}

pub(super) fn cluster<const VERSION: u8>(
    handshake: &mut Handshake<'_, impl Read + Write>,
    via: &str,
    tls: bool,
) -> Result<ClusterMap, HandshakeError> {
    let words: [&[u8]; 2] = [b"CLUSTER", b"NODES"];
    let reply = request::<VERSION>(handshake, "requesting the nodes of the cluster", &words)?;
    let text = done(handshake, reply)?;
    let map = ClusterMap::parse(&text, via, tls);
    map.ok_or_else(|| {
        let (expected, got) = ("a list of cluster nodes", excerpt(text.as_bytes()));
        handshake.wrong(WireError::Garbage { expected, got })
    })
}

pub(super) fn read_only<const VERSION: u8>(
    handshake: &mut Handshake<'_, impl Read + Write>,
) -> Result<(), HandshakeError> {
    let reply = request::<VERSION>(handshake, "asking for reads of a replica", &[b"READONLY"])?;
    done(handshake, reply).map(drop)
}

/// `name:text` a line; a text that is `a=1,b=2` gives `name.a` and `name.b`.
fn flatten(info: &str) -> Vec<(String, String)> {
    let mut statistics = Vec::new();
    for (name, text) in info.lines().filter_map(|line| line.trim_end().split_once(':')) {
        let parts: Option<Vec<(&str, &str)>> =
            text.split(',').map(|part| part.split_once('=')).collect();
        match parts {
            Some(parts) => statistics.extend(
                parts.iter().map(|(part, text)| (format!("{name}.{part}"), (*text).into())),
            ),
            None => statistics.push((name.into(), text.into())),
        }
    }
    statistics
}

fn request<const VERSION: u8>(
    handshake: &mut Handshake<'_, impl Read + Write>,
    step: &'static str,
    words: &[&[u8]],
) -> Result<Reply, HandshakeError> {
    let mut message = Vec::new();
    resp::put_command(words, &mut message);
    handshake.send(step, &message)?;
    loop {
        let received = handshake.receive(|bytes| {
            // A RESP3 server may push messages from its HELLO on.
            let (value, used) = resp::value::<VERSION>(bytes, 0, 0)?;
            // Each is consumed by itself: there may be many before the answer.
            let is_push = VERSION == 3 && resp::is_push(bytes);
            Ok(((!is_push).then(|| owned_reply(value)), used))
        })?;
        if let Some(reply) = received {
            return Ok(reply);
        }
    }
}

fn owned_reply(value: Value<'_>) -> Reply {
    let text = |value: &Value<'_>| match value {
        Value::Text(text) => String::from_utf8_lossy(text).into_owned(),
        Value::Integer(number) => number.to_string(),
        _ => String::new(),
    };
    match &value {
        Value::Error(words) => match resp::refusal(words) {
            Response::Refused { why, words } => Reply::Refused { why, words },
            _ => Reply::Refused { why: Refusal::Other, words: excerpt(words) },
        },
        Value::List(elements) => {
            let list = |element: &Value<'_>| match element {
                Value::List(inner) => Some(inner.iter().map(text).collect::<Vec<_>>()),
                _ => None,
            };
            let lists: Option<Vec<_>> = elements.iter().map(list).collect();
            let texts = lists.map(|lists| lists.concat());
            Reply::Texts(texts.unwrap_or_else(|| elements.iter().map(text).collect()))
        }
        single => Reply::Text(text(single)),
    }
}

/// The text of an answer that is no refusal.
fn done(
    handshake: &Handshake<'_, impl Read + Write>,
    reply: Reply,
) -> Result<String, HandshakeError> {
    match reply {
        Reply::Text(text) => Ok(text),
        Reply::Texts(texts) => Ok(texts.join(" ")),
        Reply::Refused { words, .. } if is_unknown(&words) && words.contains("HELLO") => {
            Err(handshake.wrong(WireError::Garbage { expected: "RESP3", got: words }))
        }
        Reply::Refused { why, words } => Err(handshake.refused(Response::Refused { why, words })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flattens_composed_values() {
        let info = "# Keyspace\r\nused_memory:10\r\ndb0:keys=1,expires=0\r\nos:a=b c,d\r\n";
        let pair = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        let expected = [
            pair("used_memory", "10"),
            pair("db0.keys", "1"),
            pair("db0.expires", "0"),
            pair("os", "a=b c,d"),
        ];
        assert_eq!(flatten(info), expected);
    }
}
