//! Evaluates a formula of a vendor's file: `max(a - b, 0) / (4 * c)`.

use model::Unavailable;

/// The value of a formula, whose names `look_up` knows. Nothing divided by nothing is 0: no branch
/// of none was mispredicted.
///
/// # Errors
/// A name has no value, something is divided by zero, or the text is no formula.
pub(super) fn evaluate(
    text: &str,
    look_up: &dyn Fn(&str) -> Result<f64, Unavailable>,
) -> Result<f64, Unavailable> {
    let mut formula = Formula { text, rest: text, look_up };
    let value = formula.sum()?;
    match formula.rest.trim().is_empty() {
        true => Ok(value),
        false => Err(formula.malformed()),
    }
}

struct Formula<'a> {
    text: &'a str,
    rest: &'a str,
    look_up: &'a dyn Fn(&str) -> Result<f64, Unavailable>,
}

impl<'a> Formula<'a> {
    fn sum(&mut self) -> Result<f64, Unavailable> {
        let mut value = self.product()?;
        loop {
            if self.take("+") {
                value += self.product()?;
            } else if self.take("-") {
                value -= self.product()?;
            } else {
                return Ok(value);
            }
        }
    }

    fn product(&mut self) -> Result<f64, Unavailable> {
        let mut value = self.factor()?;
        loop {
            if self.take("*") {
                value *= self.factor()?;
            } else if self.take("/") {
                value = self.quotient(value)?;
            } else {
                return Ok(value);
            }
        }
    }

    fn quotient(&mut self, part: f64) -> Result<f64, Unavailable> {
        let of = self.factor()?;
        match (part == 0.0, of == 0.0) {
            (true, _) => Ok(0.0),
            (false, true) => Err(Unavailable::new(
                format!("a divisor of {} was counted zero times", self.text),
                "measure for longer, so that more of it happens",
            )),
            (false, false) => Ok(part / of),
        }
    }

    fn factor(&mut self) -> Result<f64, Unavailable> {
        if self.take("(") {
            let value = self.sum()?;
            return self.closed(value);
        }
        let word = self.word();
        match word.as_bytes().first() {
            Some(first) if first.is_ascii_digit() => word.parse().map_err(|_| self.malformed()),
            Some(_) if word == "max" && self.take("(") => {
                let value = self.sum()?;
                if !self.take(",") {
                    return Err(self.malformed());
                }
                let other = self.sum()?;
                self.closed(value.max(other))
            }
            Some(_) => (self.look_up)(word),
            None => Err(self.malformed()),
        }
    }

    fn closed(&mut self, value: f64) -> Result<f64, Unavailable> {
        if self.take(")") { Ok(value) } else { Err(self.malformed()) }
    }

    fn take(&mut self, sign: &str) -> bool {
        self.rest = self.rest.trim_start();
        let rest = self.rest.strip_prefix(sign);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// A number or a name, which may have dots and colons.
    fn word(&mut self) -> &'a str {
        self.rest = self.rest.trim_start();
        let is_part = |c: char| c.is_ascii_alphanumeric() || "_.:".contains(c);
        let end = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    fn malformed(&self) -> Unavailable {
        Unavailable::new(
            format!("`{}` is not a formula from `{}` on", self.text, self.rest),
            "report this: the table of this kind of core is wrong",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Result<f64, Unavailable> {
        evaluate(text, &|name| match name {
            "ex_ret.all" => Ok(6.0),
            "A.B:c1" => Ok(2.0),
            "max" => Ok(9.0),
            _ => Err(Unavailable::new(format!("no {name}"), "-")),
        })
    }

    #[test]
    fn formulas_have_the_rules_of_arithmetic() {
        for (text, expected) in [
            ("1 + 2 * 3", 7.0),
            ("(1 + 2) * 3", 9.0),
            ("7 - 2 - 1", 4.0),
            ("8 / 4 / 2", 1.0),
            ("ex_ret.all / (4 * A.B:c1)", 0.75),
            ("max(1 - ex_ret.all, 0) + 0.5", 0.5),
            ("max(A.B:c1, ex_ret.all)", 6.0),
            ("max + 1", 10.0),
            ("0 / 0", 0.0),
        ] {
            assert_eq!(value(text), Ok(expected), "{text}");
        }
        for (text, reason) in [
            ("1 / (A.B:c1 - 2)", "counted zero times"),
            ("1 + missing", "no missing"),
            ("", "is not a formula"),
            ("1 +", "is not a formula"),
            ("(1", "is not a formula"),
            ("max(1)", "is not a formula"),
            ("1 2", "from `2` on"),
            ("1.2.3", "is not a formula"),
        ] {
            let why = value(text).unwrap_err();
            assert!(why.reason.contains(reason), "{text}: {why}");
        }
    }
}
