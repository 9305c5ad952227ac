//! How long a key, a value or a scan is: a number or a distribution.

use std::fmt;
use std::str::FromStr;

use model::{Bytes, suggest};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::SpecError;
use crate::text_or_table::{self, TextOrTable};

/// A length in bytes (keys, values) or records (scans), fixed or drawn.
///
/// Every distribution is drawn by its inverse cumulative function from one uniform number,
/// rounded to the nearest whole number and moved into `min ..= max` where these are given. Without
/// a `max`, an unbounded one ends at 1 MiB for values, 4 KiB for keys, a million for scans.
///
/// In a file: a number, a text as [`LengthSpec::parse`] reads it, or a table with the
/// distribution's name, e.g. `{ uniform = { min = 1, max = "2KiB" } }`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields, remote = "Self")]
pub enum LengthSpec {
    /// Always the same.
    Fixed(Bytes),
    /// Every whole number from `min` to `max`, both included, equally often.
    Uniform { min: Bytes, max: Bytes },
    /// The normal distribution with standard deviation `sd`.
    Normal {
        #[serde(deserialize_with = "amount")]
        mean: f64,
        #[serde(deserialize_with = "amount")]
        sd: f64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        min: Option<Bytes>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max: Option<Bytes>,
    },
    /// F(x) = 1 - exp(-x / mean).
    Exponential {
        #[serde(deserialize_with = "amount")]
        mean: f64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        min: Option<Bytes>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max: Option<Bytes>,
    },
    /// Generalised Pareto: F(x) = 1 - (1 + shape (x - location) / scale)^(-1 / shape), and the
    /// shifted exponential where `shape` is 0.
    Pareto {
        #[serde(deserialize_with = "amount")]
        location: f64,
        #[serde(deserialize_with = "amount")]
        scale: f64,
        shape: f64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        min: Option<Bytes>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max: Option<Bytes>,
    },
    /// Generalised extreme value: F(x) = exp(-(1 + shape (x - location) / scale)^(-1 / shape)),
    /// and Gumbel's distribution where `shape` is 0. A positive shape has the heavy upper tail.
    Gev {
        #[serde(deserialize_with = "amount")]
        location: f64,
        #[serde(deserialize_with = "amount")]
        scale: f64,
        shape: f64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        min: Option<Bytes>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max: Option<Bytes>,
    },
    /// Each size with its probability; what is missing to 1 is drawn from `tail`.
    Discrete {
        values: Vec<(Bytes, f64)>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tail: Option<Box<LengthSpec>>,
    },
    /// The remainder of a length of the law `of` divided by `by`, as RocksDB's mixgraph limits lengths.
    /// Where a length must not be 0, the remainder 0 becomes 1.
    Modulo { by: Bytes, of: Box<LengthSpec> },
}

/// A parameter in bytes that need not be whole: `214.476` or `"4KiB"`.
fn amount<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    struct LengthArgument(f64);
    impl FromStr for LengthArgument {
        type Err = String;
        fn from_str(text: &str) -> Result<LengthArgument, String> {
            number(text).map(LengthArgument)
        }
    }
    impl TextOrTable for LengthArgument {
        const EXPECTED: &'static str = "a number of bytes, as `214.5` or `4KiB`";
        fn table<'de, D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            f64::deserialize(from).map(LengthArgument)
        }
    }
    text_or_table::read::<LengthArgument, D>(from).map(|amount| amount.0)
}

fn number(text: &str) -> Result<f64, String> {
    let text = text.trim();
    match (text.parse::<f64>(), text.parse::<Bytes>()) {
        (Ok(number), _) => Ok(number),
        (_, Ok(bytes)) => Ok(bytes.0 as f64),
        _ => Err(format!("`{text}` is not a number")),
    }
}

fn bytes(text: &str) -> Result<Bytes, String> {
    text.parse::<Bytes>().map_err(|error| error.to_string())
}

impl LengthSpec {
    const LAWS: [&'static str; 8] =
        ["fixed", "uniform", "normal", "exponential", "pareto", "gev", "discrete", "modulo"];

    pub const fn fixed(bytes: u64) -> LengthSpec {
        LengthSpec::Fixed(Bytes(bytes))
    }

    /// Reads what a flag holds:
    ///
    /// `100`, `4KiB`, `uniform:100..2KiB`, `normal:MEAN,SD`, `exponential:MEAN`,
    /// `pareto:LOCATION,SCALE,SHAPE`, `gev:LOCATION,SCALE,SHAPE`, the last four also with
    /// `,min=SIZE` and `,max=SIZE` behind, `discrete:SIZE=WEIGHT,...,tail=OTHER`, and
    /// `modulo:SIZE,of=OTHER`.
    ///
    /// # Errors
    /// [`SpecError::Unreadable`] with what is wrong and the nearest name.
    pub fn parse(text: &str) -> Result<LengthSpec, SpecError> {
        LengthSpec::read(text.trim()).map_err(|problem| SpecError::Unreadable {
            text: text.to_owned(),
            what: "a size",
            problem,
        })
    }

    fn read(text: &str) -> Result<LengthSpec, String> {
        let Some((law, rest)) = text.split_once(':') else {
            return bytes(text).map(LengthSpec::Fixed).map_err(|_| {
                let examples = "write it as `100`, `4KiB`, `uniform:100..2KiB` or `normal:100,20`";
                match suggest::nearest(text, LengthSpec::LAWS) {
                    Some(name) if text.starts_with(|c: char| c.is_alphabetic()) => {
                        format!("`{name}` needs its parameters; {examples}")
                    }
                    _ => examples.to_owned(),
                }
            });
        };
        match law.trim() {
            "fixed" => bytes(rest).map(LengthSpec::Fixed),
            "uniform" => {
                let (min, max) = rest.split_once("..").ok_or("write it as `uniform:100..2KiB`")?;
                Ok(LengthSpec::Uniform { min: bytes(min)?, max: bytes(max)? })
            }
            "normal" => {
                let ([mean, sd], min, max) = parameters(rest, "normal:MEAN,SD")?;
                Ok(LengthSpec::Normal { mean, sd, min, max })
            }
            "exponential" => {
                let ([mean], min, max) = parameters(rest, "exponential:MEAN")?;
                Ok(LengthSpec::Exponential { mean, min, max })
            }
            "pareto" => {
                let ([location, scale, shape], min, max) =
                    parameters(rest, "pareto:LOCATION,SCALE,SHAPE")?;
                Ok(LengthSpec::Pareto { location, scale, shape, min, max })
            }
            "gev" => {
                let ([location, scale, shape], min, max) =
                    parameters(rest, "gev:LOCATION,SCALE,SHAPE")?;
                Ok(LengthSpec::Gev { location, scale, shape, min, max })
            }
            "discrete" => discrete(rest),
            "modulo" => {
                let form = "write it as `modulo:1000,of=exponential:200`";
                let (by, of) = rest.split_once(',').ok_or(form)?;
                let of = of.trim().strip_prefix("of=").ok_or(form)?;
                Ok(LengthSpec::Modulo { by: bytes(by)?, of: Box::new(LengthSpec::read(of)?) })
            }
            other => Err(format!(
                "no distribution is called `{other}`; {}",
                suggest::hint(other, LengthSpec::LAWS)
            )),
        }
    }
}

type Parameters<const N: usize> = ([f64; N], Option<Bytes>, Option<Bytes>);

/// `N` numbers, then `min=` and `max=` in any order.
fn parameters<const N: usize>(text: &str, form: &str) -> Result<Parameters<N>, String> {
    let (mut numbers, mut min, mut max) = (Vec::with_capacity(N), None, None);
    for part in text.split(',') {
        match part.trim().split_once('=') {
            None => numbers.push(number(part)?),
            Some(("min", size)) => min = Some(bytes(size)?),
            Some(("max", size)) => max = Some(bytes(size)?),
            Some((name, _)) => {
                let hint = suggest::hint(name, ["min", "max"]);
                return Err(format!("`{name}` is not a bound; {hint}"));
            }
        }
    }
    let numbers = numbers.try_into().map_err(|_| format!("write it as `{form}`"))?;
    Ok((numbers, min, max))
}

fn discrete(text: &str) -> Result<LengthSpec, String> {
    let (list, tail) = match text.split_once("tail=") {
        Some((list, tail)) => (list, Some(Box::new(LengthSpec::read(tail.trim())?))),
        None => (text, None),
    };
    let form = "write it as `discrete:100=0.5,1KiB=0.5` or with `,tail=pareto:...` at the end";
    let mut values = Vec::new();
    for pair in list.split(',').filter(|pair| !pair.trim().is_empty()) {
        let (size, weight) = pair.split_once('=').ok_or(form)?;
        values.push((bytes(size)?, number(weight)?));
    }
    if values.is_empty() {
        return Err(form.to_owned());
    }
    Ok(LengthSpec::Discrete { values, tail })
}

impl FromStr for LengthSpec {
    type Err = SpecError;
    fn from_str(text: &str) -> Result<LengthSpec, SpecError> {
        LengthSpec::parse(text)
    }
}

/// Writes what [`LengthSpec::parse`] reads.
impl fmt::Display for LengthSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bounds = match self {
            LengthSpec::Fixed(size) => return write!(f, "{size}"),
            LengthSpec::Uniform { min, max } => return write!(f, "uniform:{min}..{max}"),
            LengthSpec::Discrete { values, tail } => {
                f.write_str("discrete:")?;
                for (index, (size, weight)) in values.iter().enumerate() {
                    write!(f, "{}{size}={weight}", if index == 0 { "" } else { "," })?;
                }
                return tail.iter().try_for_each(|tail| write!(f, ",tail={tail}"));
            }
            LengthSpec::Modulo { by, of } => return write!(f, "modulo:{by},of={of}"),
            LengthSpec::Normal { mean, sd, min, max } => {
                write!(f, "normal:{mean},{sd}")?;
                (min, max)
            }
            LengthSpec::Exponential { mean, min, max } => {
                write!(f, "exponential:{mean}")?;
                (min, max)
            }
            LengthSpec::Pareto { location, scale, shape, min, max } => {
                write!(f, "pareto:{location},{scale},{shape}")?;
                (min, max)
            }
            LengthSpec::Gev { location, scale, shape, min, max } => {
                write!(f, "gev:{location},{scale},{shape}")?;
                (min, max)
            }
        };
        bounds.0.iter().try_for_each(|min| write!(f, ",min={min}"))?;
        bounds.1.iter().try_for_each(|max| write!(f, ",max={max}"))
    }
}

impl TextOrTable for LengthSpec {
    const EXPECTED: &'static str = "a size, as `100`, `\"4KiB\"`, `\"uniform:100..2KiB\"` or \
                                    `{ uniform = { min = 100, max = \"2KiB\" } }`";
    fn table<'de, D: Deserializer<'de>>(from: D) -> Result<LengthSpec, D::Error> {
        // The inherent function that `remote = "Self"` derives.
        LengthSpec::deserialize(from)
    }
}

impl<'de> Deserialize<'de> for LengthSpec {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<LengthSpec, D::Error> {
        text_or_table::read(from)
    }
}

impl Serialize for LengthSpec {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        match self {
            LengthSpec::Fixed(size) => size.serialize(out),
            drawn => LengthSpec::serialize(drawn, out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_flags_and_writes_them_back() {
        for text in [
            "100",
            "4KiB",
            "uniform:100..2KiB",
            "normal:100,20",
            "normal:100,20,min=10,max=1KiB",
            "exponential:200,max=4KiB",
            "pareto:15,214.476,0.348238",
            "gev:30.7984,8.20449,0.078688,min=24",
            "discrete:2=0.25,11=0.25,tail=pareto:15,214.476,0.348238,max=1MiB",
            "discrete:1=0.5,tail=discrete:2=0.5,tail=3",
            "modulo:1000,of=pareto:0.5,14.236,2.517",
        ] {
            let size = LengthSpec::parse(text).unwrap();
            assert_eq!(size.to_string(), text);
            let json = serde_json::to_string(&size).unwrap();
            assert_eq!(serde_json::from_str::<LengthSpec>(&json).unwrap(), size, "{json}");
        }
        let kib = LengthSpec::Normal { mean: 4096.0, sd: 1.0, min: None, max: None };
        assert_eq!(LengthSpec::parse("normal:4KiB,1"), Ok(kib));
    }

    #[test]
    fn files_hold_numbers_texts_and_tables() {
        #[derive(Deserialize)]
        struct File {
            size: Vec<LengthSpec>,
        }
        let file: File = toml::from_str(
            r#"size = [100, "4KiB", "uniform:1..2", { uniform = { min = "1", max = 2 } },
                 { normal = { mean = "1KiB", sd = 20 } }, { fixed = 7 },
                 { discrete = { values = [[1, 0.25], ["1KiB", 0.25]], tail = { exponential = { mean = 3 } } } }]"#,
        )
        .unwrap();
        let texts: Vec<String> = file.size.iter().map(LengthSpec::to_string).collect();
        let expected = [
            "100",
            "4KiB",
            "uniform:1..2",
            "uniform:1..2",
            "normal:1024,20",
            "7",
            "discrete:1=0.25,1KiB=0.25,tail=exponential:3",
        ];
        assert_eq!(texts, expected);
        for (bad, says) in [
            ("size = [{ uniforn = { min = 1, max = 2 } }]", "uniforn"),
            ("size = [{ uniform = { min = 1, mac = 2 } }]", "mac"),
            ("size = ['paretto:1,2,3']", "did you mean `pareto`?"),
            ("size = [true]", "a size, as `100`"),
            ("size = [-5]", "is not a size"),
        ] {
            let error = toml::from_str::<File>(bad).err().unwrap().to_string();
            assert!(error.contains(says), "{bad}: {error}");
        }
    }

    #[test]
    fn explains_invalid_texts() {
        for (text, says) in [
            ("uniform:5", "uniform:100..2KiB"),
            ("uniform", "needs its parameters"),
            ("normal:5", "normal:MEAN,SD"),
            ("normal:5,1,maxx=3", "did you mean `max`?"),
            ("pareto:a,b,c", "`a` is not a number"),
            ("discrete:", "discrete:100=0.5"),
            ("modulo:5", "modulo:1000,of=exponential:200"),
            ("modulo:5,exponential:3", "modulo:1000,of=exponential:200"),
            ("modulo:5,of=exponantial:3", "did you mean `exponential`?"),
            ("12 apples", "write it as `100`"),
        ] {
            let error = LengthSpec::parse(text).unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
