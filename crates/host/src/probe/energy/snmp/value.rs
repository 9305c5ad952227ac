//! The number in an object's value.

use snmp2::Value;

/// Longest part of a text that is shown.
const SHOWN: usize = 60;

/// How an opaque value announces a float or a double; the length follows. Source: Net-SNMP,
/// `asn1.h`, ASN_OPAQUE_FLOAT and ASN_OPAQUE_DOUBLE.
const FLOAT: [u8; 3] = [0x9f, 0x78, 4];
const DOUBLE: [u8; 3] = [0x9f, 0x79, 8];

/// Why a value is not a power.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum NoPower {
    /// The agent has no such object.
    Missing,
    /// What the value is.
    Other(String),
}

/// The number, which is finite and not below zero.
pub(super) fn power(value: &Value<'_>) -> Result<f64, NoPower> {
    let number = match value {
        Value::Integer(number) => *number as f64,
        Value::Unsigned32(number) | Value::Counter32(number) => f64::from(*number),
        Value::Counter64(number) => *number as f64,
        Value::Opaque(bytes) => {
            opaque(bytes).ok_or_else(|| NoPower::Other("opaque bytes".to_owned()))?
        }
        Value::OctetString(bytes) => text(bytes)?,
        Value::NoSuchObject | Value::NoSuchInstance | Value::EndOfMibView => {
            return Err(NoPower::Missing);
        }
        Value::Null => return Err(NoPower::Other("empty".to_owned())),
        Value::Timeticks(_) => return Err(NoPower::Other("a time".to_owned())),
        Value::ObjectIdentifier(_) => return Err(NoPower::Other("an object's name".to_owned())),
        _ => return Err(NoPower::Other("of another type".to_owned())),
    };
    match number.is_finite() && number >= 0.0 {
        true => Ok(number),
        false => Err(NoPower::Other(number.to_string())),
    }
}

fn opaque(bytes: &[u8]) -> Option<f64> {
    match (bytes.strip_prefix(&FLOAT), bytes.strip_prefix(&DOUBLE)) {
        (Some(float), _) => Some(f32::from_be_bytes(float.try_into().ok()?).into()),
        (_, Some(double)) => Some(f64::from_be_bytes(double.try_into().ok()?)),
        (None, None) => None,
    }
}

/// Some agents write numbers as text.
fn text(bytes: &[u8]) -> Result<f64, NoPower> {
    let number = std::str::from_utf8(bytes).ok().and_then(|text| text.trim().parse().ok());
    number.ok_or_else(|| {
        let start = String::from_utf8_lossy(&bytes[..bytes.len().min(SHOWN)]).into_owned();
        NoPower::Other(format!("`{}`", start.replace(char::is_control, " ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_number_is_read() {
        let float = [&FLOAT[..], &41.5f32.to_be_bytes()].concat();
        let double = [&DOUBLE[..], &0.1f64.to_be_bytes()].concat();
        for (value, expected) in [
            (Value::Integer(42), 42.0),
            (Value::Unsigned32(u32::MAX), 4_294_967_295.0),
            (Value::Counter32(7), 7.0),
            (Value::Counter64(1 << 40), 1_099_511_627_776.0),
            (Value::Opaque(&float), 41.5),
            (Value::Opaque(&double), 0.1),
            (Value::OctetString(b" 45.5\n"), 45.5),
        ] {
            assert_eq!(power(&value), Ok(expected), "{value:?}");
        }
    }

    #[test]
    fn what_is_not_a_power_is_named() {
        let nan = [&FLOAT[..], &f32::NAN.to_be_bytes()].concat();
        for (value, expected) in [
            (Value::Integer(-1), "-1"),
            (Value::Opaque(&nan), "NaN"),
            (Value::Opaque(&FLOAT), "opaque bytes"),
            (Value::Opaque(&[]), "opaque bytes"),
            (Value::OctetString(b"PDU\x1b[2J"), "`PDU [2J`"),
            (Value::OctetString(b"-3"), "-3"),
            (Value::OctetString(b"inf"), "inf"),
            (Value::OctetString(&[0xff; 4000]), &format!("`{}`", "\u{fffd}".repeat(SHOWN))),
            (Value::Timeticks(5), "a time"),
        ] {
            assert_eq!(power(&value), Err(NoPower::Other(expected.to_owned())), "{value:?}");
        }
        for value in [Value::NoSuchObject, Value::NoSuchInstance, Value::EndOfMibView] {
            assert_eq!(power(&value), Err(NoPower::Missing));
        }
    }
}
