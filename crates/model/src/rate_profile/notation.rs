//! Profiles as people write them: `steps:10k@30s,40k@30s`.

use std::f64::consts::TAU;

use super::{ProfileError, RatePiece, RateProfile};
use crate::quantity::{Rate, Span};
use crate::suggest::hint;

const KINDS: [&str; 4] = ["steps", "ramp", "sine", "burst"];
/// Lines in a period of a sine. The rate is off by at most 5e-6 of the amplitude, and by nothing at
/// the corners; the integral over a period is exact.
const SINE_PIECES: usize = 1024;
/// Multiples of a rate beyond this are a mistake.
const MAX_MULTIPLE: f64 = 1000.0;
/// No client sends more per second: a higher rate is a mistake.
pub const MAX_RATE: f64 = 1e9;

/// Numbers of one profile, which are all rates or all multiples of a rate.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RateNumbers {
    multiples: Option<bool>,
}

impl RateNumbers {
    /// `20k`, or `1.5x` of the rate.
    pub(super) fn read(&mut self, text: &str) -> Result<f64, String> {
        let text = text.trim();
        let (number, multiple) = match text.strip_suffix(['x', 'X']) {
            Some(number) => (number.trim_end(), true),
            None => (text, false),
        };
        if number.parse::<f64>().is_ok_and(|number| number < 0.0) || negative(number) {
            return Err(format!("goes below zero at `{text}`; the least rate is 0"));
        }
        let value = number
            .parse::<Rate>()
            .map_err(|_| format!("has `{text}` for a rate; write it as `20k`, or as `1.5x` of it"))?
            .0;
        if multiple && value > MAX_MULTIPLE {
            return Err(format!("has `{text}`; a multiple is at most {MAX_MULTIPLE}x"));
        }
        if !multiple && value > MAX_RATE {
            return Err(format!("has `{text}`, more than any client sends; at most 1G"));
        }
        // A plain zero is none of both.
        let is_either = value == 0.0 && !multiple;
        if !is_either && *self.multiples.get_or_insert(multiple) != multiple {
            return Err(format!("mixes rates and multiples at `{text}`; write all in one way"));
        }
        Ok(value)
    }

    pub(super) fn are_multiples(self) -> bool {
        self.multiples.unwrap_or_default()
    }
}

fn negative(number: &str) -> bool {
    number.strip_prefix('-').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// A length of time in seconds, `30s` or `30`.
fn seconds(text: &str) -> Result<f64, String> {
    let text = text.trim();
    if negative(text) {
        return Err(format!("has `{text}`; time does not go back"));
    }
    let span: Span = text.parse().map_err(|_| format!("has `{text}` for a time; write `30s`"))?;
    Ok(span.0.as_secs_f64())
}

/// The values of `name=value` pairs, of which the first `needed` must be there.
fn pairs<'a, const N: usize>(
    text: &'a str,
    names: [&str; N],
    needed: usize,
) -> Result<[Option<&'a str>; N], String> {
    let mut values = [None; N];
    for pair in text.split(',') {
        let (name, value) =
            pair.split_once('=').ok_or_else(|| format!("has `{pair}`; write `{}=`", names[0]))?;
        let name = name.trim();
        let at = names.iter().position(|known| *known == name);
        let at = at.ok_or_else(|| format!("has no `{name}`; {}", hint(name, names)))?;
        if values[at].replace(value).is_some() {
            return Err(format!("gives `{name}` twice"));
        }
    }
    match (0..needed).find(|at| values[*at].is_none()) {
        Some(missing) => Err(format!("needs `{}=`", names[missing])),
        None => Ok(values),
    }
}

type Shape = (RateNumbers, Vec<RatePiece>);

/// `10k@30s,40k@30s`; with `ramps`, `10k..40k@1m` is a piece too.
fn steps(text: &str, ramps: bool) -> Result<Shape, String> {
    let mut numbers = RateNumbers::default();
    let mut pieces = Vec::new();
    for part in text.split(',') {
        let form = if ramps { "10k..40k@30s" } else { "10k@30s" };
        let (rates, time) =
            part.split_once('@').ok_or_else(|| format!("has `{part}`; write `{form}`"))?;
        let (from, to) = match rates.split_once("..") {
            Some(_) if !ramps => return Err(format!("has `{part}`; only `ramp:` has slopes")),
            Some((from, to)) => (numbers.read(from)?, numbers.read(to)?),
            None => {
                let rate = numbers.read(rates)?;
                (rate, rate)
            }
        };
        let seconds = seconds(time)?;
        if seconds <= 0.0 {
            return Err(format!("has `{part}`, which takes no time"));
        }
        pieces.push(RatePiece { seconds, from, to });
    }
    Ok((numbers, pieces))
}

/// `mean=20k,amplitude=15k,period=10m`: begins at the mean and rises.
fn sine(text: &str) -> Result<Shape, String> {
    let [mean, amplitude, period] = pairs(text, ["mean", "amplitude", "period"], 3)?;
    let mut numbers = RateNumbers::default();
    let mut rate = |text: Option<&str>| numbers.read(text.unwrap_or_default());
    let (mean, amplitude) = (rate(mean)?, rate(amplitude)?);
    if amplitude > mean {
        return Err("goes below zero; the amplitude is at most the mean".to_owned());
    }
    let period = seconds(period.unwrap_or_default())?;
    let at = |corner: usize| {
        // Rounding must not put the trough below zero.
        let angle = TAU * (corner % SINE_PIECES) as f64 / SINE_PIECES as f64;
        (mean + amplitude * angle.sin()).max(0.0)
    };
    let piece = |nth: usize| RatePiece {
        seconds: period / SINE_PIECES as f64,
        from: at(nth),
        to: at(nth + 1),
    };
    Ok((numbers, (0..SINE_PIECES).map(piece).collect()))
}

/// `base=10k,peak=60k,at=30s,rise=2s,hold=10s,fall=5s,after=1m`: a flash crowd.
fn burst(text: &str) -> Result<Shape, String> {
    let names = ["base", "peak", "at", "hold", "rise", "fall", "after"];
    let [base, peak, at, hold, rise, fall, after] = pairs(text, names, 4)?;
    let mut numbers = RateNumbers::default();
    let mut rate = |text: Option<&str>| numbers.read(text.unwrap_or_default());
    let (base, peak) = (rate(base)?, rate(peak)?);
    if peak < base {
        return Err("has a peak below its base; exchange them".to_owned());
    }
    let time = |text: Option<&str>| text.map_or(Ok(0.0), seconds);
    let at = time(at)?;
    let after = after.map_or(Ok(at), seconds)?;
    let pieces = [
        (at, base, base),
        (time(rise)?, base, peak),
        (time(hold)?, peak, peak),
        (time(fall)?, peak, base),
        (after, base, base),
    ];
    let pieces = pieces.into_iter().filter(|(seconds, ..)| *seconds > 0.0);
    Ok((numbers, pieces.map(RatePiece::from).collect()))
}

impl RateProfile {
    /// Whether a text is the name of a file and no profile itself.
    pub fn is_file(text: &str) -> bool {
        !text.split_once(':').is_some_and(|(kind, _)| {
            KINDS.contains(&kind)
                || (!kind.is_empty() && kind.chars().all(|c| c.is_ascii_lowercase()))
        })
    }

    /// Reads a profile that is no file.
    ///
    /// # Errors
    /// Another notation, numbers that are none or beyond limits, a rate below zero.
    pub fn parse(text: &str) -> Result<RateProfile, ProfileError> {
        let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
        let shape = match kind {
            "steps" => steps(rest, false),
            "ramp" => steps(rest, true),
            "sine" => sine(rest),
            "burst" => burst(rest),
            _ => {
                let hint = hint(kind, KINDS);
                let why = format!("is no profile and names no file of times and rates; {hint}");
                return Err(ProfileError::whole(text, why));
            }
        };
        let (numbers, pieces) = shape.map_err(|why| ProfileError::whole(text, why))?;
        RateProfile::new(text, numbers.are_multiples(), pieces)
    }
}
