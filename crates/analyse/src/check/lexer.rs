//! Tokens of a relation, each with its position.

use super::error::CheckError;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    Number(f64),
    Text(String),
    Name(String),
    /// `<=`, `(`, `+` ...
    Sign(&'static str),
    End,
}

/// A token and the byte at which it begins.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PlacedToken {
    pub(super) token: Token,
    pub(super) at: usize,
}

/// Longer ones first: `<=` is not `<` and `=`. Each with its canonical spelling.
const SIGNS: [(&str, &str); 19] = [
    ("<=", "<="),
    (">=", ">="),
    ("==", "=="),
    ("!=", "!="),
    ("&&", "and"),
    ("||", "or"),
    ("≤", "<="),
    ("≥", ">="),
    ("≠", "!="),
    ("<", "<"),
    (">", ">"),
    ("=", "=="),
    ("+", "+"),
    ("-", "-"),
    ("*", "*"),
    ("/", "/"),
    ("(", "("),
    (")", ")"),
    (",", ","),
];

/// Suffixes of numbers: powers of ten and of 1024, as in studies.
const SCALES: [(&str, f64); 7] = [
    ("k", 1e3),
    ("M", 1e6),
    ("G", 1e9),
    ("Ki", 1024.0),
    ("Mi", 1_048_576.0),
    ("Gi", 1_073_741_824.0),
    ("%", 0.01),
];

/// Splits a text into tokens, with [`Token::End`] as the last.
pub(super) fn tokens(text: &str) -> Result<Vec<PlacedToken>, CheckError> {
    let mut words = Vec::new();
    let mut at = 0;
    loop {
        at += text[at..].len() - text[at..].trim_start().len();
        let rest = &text[at..];
        let Some(first) = rest.chars().next() else {
            words.push(PlacedToken { token: Token::End, at });
            return Ok(words);
        };
        let token = match first {
            '\'' | '"' | '`' => quoted(rest, first),
            _ if first.is_ascii_digit() => number(rest),
            _ if first.is_ascii_alphabetic() || first == '_' => Ok(name(rest)),
            _ => sign(rest, first),
        };
        let (word, length) = token.map_err(|what| CheckError::new(text, at, what))?;
        words.push(PlacedToken { token: word, at });
        at += length;
    }
}

/// A token and its length in bytes, or why it is invalid.
type Lexed = Result<(Token, usize), String>;

/// Text in quotes; in backquotes a name that contains signs.
fn quoted(rest: &str, quote: char) -> Lexed {
    let inner = &rest[1..];
    let end = inner.find(quote).ok_or_else(|| format!("the closing {quote} is missing"))?;
    let text = inner[..end].to_owned();
    let word = if quote == '`' { Token::Name(text) } else { Token::Text(text) };
    Ok((word, end + 2))
}

fn number(rest: &str) -> Lexed {
    let digits = |c: char| c.is_ascii_digit() || c == '.' || c == '_';
    let end = rest.find(|c| !digits(c)).unwrap_or(rest.len());
    let whole: String = rest[..end].chars().filter(|c| *c != '_').collect();
    let value: f64 = whole.parse().map_err(|_| format!("`{}` is not a number", &rest[..end]))?;
    let behind = &rest[end..];
    let suffix = behind.find(|c: char| !c.is_ascii_alphanumeric() && c != '%');
    let suffix = &behind[..suffix.unwrap_or(behind.len())];
    if suffix.is_empty() {
        return Ok((Token::Number(value), end));
    }
    let scale = SCALES.iter().find(|(name, _)| *name == suffix).map(|(_, scale)| *scale);
    let power = suffix.strip_prefix(['e', 'E']).and_then(|power| power.parse::<i32>().ok());
    let scale = scale.or(power.map(|power| 10_f64.powi(power))).ok_or_else(|| {
        let known: Vec<&str> = SCALES.iter().map(|(name, _)| *name).collect();
        format!(
            "`{suffix}` after a number is not one of {}; figures are in the unit of their name",
            known.join(", ")
        )
    })?;
    Ok((Token::Number(value * scale), end + suffix.len()))
}

fn name(rest: &str) -> (Token, usize) {
    let part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    let end = rest.find(|c| !part(c)).unwrap_or(rest.len());
    let text = &rest[..end];
    let word = match text {
        "and" => Token::Sign("and"),
        "or" => Token::Sign("or"),
        "not" => Token::Sign("not"),
        _ => Token::Name(text.to_owned()),
    };
    (word, end)
}

fn sign(rest: &str, first: char) -> Lexed {
    match SIGNS.iter().find(|(sign, _)| rest.starts_with(sign)) {
        Some((sign, meaning)) => Ok((Token::Sign(meaning), sign.len())),
        None => Err(format!("`{first}` is unexpected here")),
    }
}
