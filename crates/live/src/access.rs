//! Who may read: the token, and the name under which the page was requested.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hyper::HeaderMap;
use hyper::header::{AUTHORIZATION, HOST, HeaderValue};
use subtle::ConstantTimeEq;

use crate::{ListenAddress, LiveError};

/// A shorter token could be guessed.
pub const MIN_TOKEN_CHARS: usize = 16;
pub const MAX_TOKEN_CHARS: usize = 512;

/// What a viewer must present. It is never shown, not even by `Debug`.
#[derive(Clone)]
pub struct ViewToken(String);

impl std::fmt::Debug for ViewToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ViewToken(***)")
    }
}

impl ViewToken {
    /// The token that is the first and only line of a file.
    ///
    /// # Errors
    /// The file cannot be read, others can read it, or the token is too short, too long or not of
    /// visible ASCII characters.
    pub fn from_file(path: &Path) -> Result<ViewToken, LiveError> {
        let place = path.display();
        let wrong = |why: String| LiveError::Token(format!("{place}: {why}"));
        let text = safe_file::read_text(path, 2 * MAX_TOKEN_CHARS as u64)
            .map_err(|error| LiveError::Token(error.to_string()))?;
        let mode = std::fs::metadata(path).map_err(|error| wrong(error.to_string()))?;
        if mode.permissions().mode() & 0o077 != 0 {
            return Err(wrong("other users can read it; run chmod 600 on it".to_owned()));
        }
        let token = text.trim_end_matches(['\r', '\n']);
        let why = match token.len() {
            0 => "is empty; write one with `openssl rand -hex 32`",
            length if length < MIN_TOKEN_CHARS => "has fewer than 16 characters",
            length if length > MAX_TOKEN_CHARS => "has more than 512 characters",
            _ if !token.bytes().all(|byte| byte.is_ascii_graphic()) => {
                "has spaces, lines or characters other than ASCII"
            }
            _ => return Ok(ViewToken(token.to_owned())),
        };
        Err(wrong(format!("the token {why}")))
    }

    /// Whether a request presents it: as a bearer token, or as the password of basic
    /// authentication with any user name.
    fn is_presented(&self, authorization: Option<&HeaderValue>) -> bool {
        let Some(text) = authorization.and_then(|value| value.to_str().ok()) else { return false };
        let (scheme, rest) = text.split_once(' ').unwrap_or((text, ""));
        let presented = match scheme.to_ascii_lowercase().as_str() {
            "bearer" => rest.trim().as_bytes().to_vec(),
            "basic" => {
                let pair = BASE64_STANDARD.decode(rest.trim()).unwrap_or_default();
                let colon = pair.iter().position(|byte| *byte == b':');
                colon.map_or_else(Vec::new, |at| pair[at + 1..].to_vec())
            }
            _ => return false,
        };
        // Lengths are compared first, contents in constant time.
        presented.as_slice().ct_eq(self.0.as_bytes()).into()
    }
}

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The Host header names another machine: a page elsewhere may have had its name point here
    /// (DNS rebinding).
    Host,
    Token,
}

/// Whether a request may be answered. Without a token its Host must be this machine, by number or
/// as `localhost`; with one, the token alone decides.
pub(crate) fn check(
    headers: &HeaderMap,
    listen: ListenAddress,
    token: Option<&ViewToken>,
) -> Result<(), Refusal> {
    if let Some(token) = token {
        return match token.is_presented(headers.get(AUTHORIZATION)) {
            true => Ok(()),
            false => Err(Refusal::Token),
        };
    }
    let mut hosts = headers.get_all(HOST).iter();
    let host = match (hosts.next(), hosts.next()) {
        (Some(one), None) => one.to_str().unwrap_or_default(),
        _ => return Err(Refusal::Host),
    };
    // The port may differ: a tunnel (`ssh -L`) has one of its own.
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let number = name.trim_start_matches('[').trim_end_matches(']').parse();
    let is_here = number.is_ok_and(|ip: std::net::IpAddr| ip.is_loopback() || ip == listen.0.ip());
    match is_here || name.eq_ignore_ascii_case("localhost") {
        true => Ok(()),
        false => Err(Refusal::Host),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_str(value).unwrap()))
            .collect()
    }

    #[test]
    fn a_name_that_points_here_is_refused() {
        let listen: ListenAddress = "127.0.0.1:9400".parse().unwrap();
        let of = |host| check(&headers(&[("host", host)]), listen, None);
        for host in ["127.0.0.1:9400", "localhost:9400", "LOCALHOST", "[::1]:8000", "127.0.0.1"] {
            assert_eq!(of(host), Ok(()), "{host}");
        }
        for host in
            ["evil.example", "evil.example:9400", "localhost.evil.example", "10.0.0.1", "", ":9400"]
        {
            assert_eq!(of(host), Err(Refusal::Host), "{host}");
        }
        assert_eq!(check(&HeaderMap::new(), listen, None), Err(Refusal::Host));
        let mut two = headers(&[("host", "localhost")]);
        two.append(HOST, HeaderValue::from_static("evil.example"));
        assert_eq!(check(&two, listen, None), Err(Refusal::Host));
    }

    #[test]
    fn a_token_is_presented_as_bearer_or_as_password() {
        let token = ViewToken("0123456789abcdef".to_owned());
        let listen: ListenAddress = "0.0.0.0:9400".parse().unwrap();
        let of = |value: &str| check(&headers(&[("authorization", value)]), listen, Some(&token));
        assert_eq!(of("Bearer 0123456789abcdef"), Ok(()));
        let basic = format!("Basic {}", BASE64_STANDARD.encode("any:0123456789abcdef"));
        assert_eq!(of(&basic), Ok(()));
        for value in
            ["Bearer 0123456789abcdeX", "Bearer ", "Bearer", "0123456789abcdef", "Basic !", "x y z"]
        {
            assert_eq!(of(value), Err(Refusal::Token), "{value}");
        }
        assert_eq!(check(&HeaderMap::new(), listen, Some(&token)), Err(Refusal::Token));
        assert!(!format!("{token:?}").contains("0123"));
    }

    #[test]
    fn a_file_with_a_token_is_secret_and_holds_one() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        let write = |text: &str, mode| {
            std::fs::write(&file, text).unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
            ViewToken::from_file(&file).map_err(|error| error.to_string())
        };
        assert!(write("0123456789abcdef\n", 0o600).is_ok());
        for (text, mode, why) in [
            ("0123456789abcdef", 0o644, "chmod 600"),
            ("", 0o600, "is empty"),
            ("short", 0o600, "fewer than 16"),
            ("0123456789abcdef 0", 0o600, "spaces"),
            ("0123456789abcdef\n0123456789abcdef\n", 0o600, "lines"),
        ] {
            let error = write(text, mode).unwrap_err();
            assert!(error.contains(why) && !error.contains("0123456789"), "{error}");
        }
    }
}
