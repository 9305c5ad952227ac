//! Readings that are quotients of other readings: the cost of an operation.

use model::signal::{
    CPU_S_PER_MOP, MANAGEMENT_TRAFFIC_DEVICE, READ_AMPLIFICATION, WRITE_AMPLIFICATION,
};
use model::{Reading, ReadingValue, Scope, Unit};

const OPS_PER_MOP: f64 = 1e6;

/// `sum of cpu / operations * 10^6`, in CPU-s/Mop.
///
/// `cpu` are the parts in seconds, e.g. user and system time, all of one scope and over the
/// same window; the answer has their scope. For the process that is the store's background
/// threads and the harness too. Unavailable, with the reason: no operations, no part, a part
/// that is unavailable, parts of different scopes or not in seconds.
pub fn cpu_s_per_mop(cpu: &[&Reading], operations: u64) -> Reading {
    let name = CPU_S_PER_MOP.name.to_owned();
    let mops = operations as f64 / OPS_PER_MOP;
    let ratio = quotient(name, cpu, Unit::Seconds, mops, "operations");
    Reading { unit: Unit::CpuSecondsPerMillionOps, ..ratio }
}

/// `counted / operations * 10^6`: a count for a million operations, under the count's name and
/// scope. `server.cpu` in seconds becomes `server.cpu_s_per_mop` in CPU-s/Mop, `server.syscalls` as
/// a count becomes `server.syscalls_per_mop`.
///
/// Unavailable, with the reason: no operations, or `counted` is unavailable or neither seconds
/// nor a count.
pub fn per_mop(counted: &Reading, operations: u64) -> Reading {
    let mops = operations as f64 / OPS_PER_MOP;
    let (unit, name) = match counted.unit {
        Unit::Seconds => (Unit::CpuSecondsPerMillionOps, format!("{}_s_per_mop", counted.signal)),
        _ => (Unit::PerMillionOps, format!("{}_per_mop", counted.signal)),
    };
    let part = if counted.unit == Unit::Seconds { Unit::Seconds } else { Unit::Count };
    Reading { unit, ..quotient(name, &[counted], part, mops, "operations") }
}

/// `written / user`, a ratio: bytes written below for each byte of key and value that the
/// workload wrote.
///
/// The boundary is that of `written`: the process (`write_amplification`) or the servers
/// (`server.write_amplification`), whose pages count when they become dirty, or the device (whoever
/// wrote to it; `write_amplification.device`), where they count when they are written.
/// Unavailable, with the reason: the workload wrote nothing, or `written` is unavailable or not in
/// bytes.
pub fn write_amplification(written: &Reading, user_bytes: u64) -> Reading {
    let name = scoped(WRITE_AMPLIFICATION.name, written.scope);
    quotient(name, &[written], Unit::Bytes, user_bytes as f64, "bytes the workload wrote")
}

/// `read / user`, a ratio: bytes read below for each byte of key and value that the workload
/// was answered. Under 1 where a cache answers. Boundary and errors as for
/// [`write_amplification`].
pub fn read_amplification(read: &Reading, user_bytes: u64) -> Reading {
    let name = scoped(READ_AMPLIFICATION.name, read.scope);
    quotient(name, &[read], Unit::Bytes, user_bytes as f64, "bytes the workload read")
}

/// `1 - user / (read + written)`, a ratio: the share of the traffic between host and device that
/// manages data. Below 0 where caches answer more than that. Errors as for
/// [`write_amplification`].
pub fn management_traffic(read: &Reading, written: &Reading, user_bytes: u64) -> Reading {
    let user = "bytes the workload read and wrote";
    let name = MANAGEMENT_TRAFFIC_DEVICE.name.to_owned();
    let mut reading = quotient(name, &[read, written], Unit::Bytes, user_bytes as f64, user);
    if let ReadingValue::Value(times) = reading.answer {
        reading.answer = match times > 0.0 {
            true => ReadingValue::Value(1.0 - 1.0 / times),
            false => unavailable("nothing went to the device or came from it".to_owned()),
        };
    }
    reading.source = format!("1 - {user} / ({} + {})", read.signal, written.signal);
    reading
}

fn scoped(name: &str, scope: Scope) -> String {
    match scope {
        Scope::Process => name.to_owned(),
        Scope::Server => format!("{scope}.{name}"),
        _ => format!("{name}.{scope}"),
    }
}

/// `sum of parts / divisor` with the parts' provenance.
fn quotient(
    signal: String,
    parts: &[&Reading],
    unit: Unit,
    divisor: f64,
    divisor_name: &str,
) -> Reading {
    let answer = match sum(parts, unit) {
        Ok(_) if divisor <= 0.0 => unavailable(format!("there were no {divisor_name}")),
        Ok(sum) => ReadingValue::Value(sum / divisor),
        Err(answer) => answer,
    };
    let sources: Vec<&str> = parts.iter().map(|part| part.signal.as_str()).collect();
    let first = parts.first();
    Reading {
        signal,
        answer,
        unit: Unit::Ratio,
        scope: first.map_or(Scope::Process, |part| part.scope),
        source: format!("{} / {divisor_name}", sources.join(" + ")),
        window_s: first.map_or(0.0, |part| part.window_s),
        origin: first.map_or(model::Origin::Measured, |part| part.origin),
    }
}

fn sum(parts: &[&Reading], unit: Unit) -> Result<f64, ReadingValue> {
    let first = parts.first().ok_or_else(|| unavailable("nothing was read".to_owned()))?;
    let mut sum = 0.0;
    for part in parts {
        if part.unit != unit {
            return Err(unavailable(format!("{} is not in {}", part.signal, unit.symbol())));
        }
        if part.scope != first.scope || part.origin != first.origin {
            return Err(unavailable(format!(
                "{} and {} are of different scope or origin",
                first.signal, part.signal
            )));
        }
        match &part.answer {
            ReadingValue::Value(value) => sum += value,
            missing => return Err(missing.clone()),
        }
    }
    Ok(sum)
}

fn unavailable(reason: String) -> ReadingValue {
    ReadingValue::Unavailable { reason, remedy: None }
}

#[cfg(test)]
mod tests {
    use model::Origin;

    use super::*;

    fn reading(signal: &str, value: f64, unit: Unit, scope: Scope) -> Reading {
        Reading {
            signal: signal.to_owned(),
            answer: ReadingValue::Value(value),
            unit,
            scope,
            source: "a file".to_owned(),
            window_s: 10.0,
            origin: Origin::Measured,
        }
    }

    #[test]
    fn cpu_seconds_are_user_and_system() {
        let user = reading("cpu.user", 6.0, Unit::Seconds, Scope::Process);
        let system = reading("cpu.system", 2.0, Unit::Seconds, Scope::Process);
        let result = cpu_s_per_mop(&[&user, &system], 2_000_000);
        assert_eq!(result.value(), Some(4.0));
        assert_eq!((result.unit, result.scope), (Unit::CpuSecondsPerMillionOps, Scope::Process));
        assert_eq!((result.signal.as_str(), result.window_s), ("cpu_s_per_mop", 10.0));
        assert_eq!(result.source, "cpu.user + cpu.system / operations");
    }

    #[test]
    fn counts_of_the_server_keep_their_name_and_scope() {
        let cpu = reading("server.cpu", 16.8, Unit::Seconds, Scope::Server);
        let calls = reading("server.syscalls", 6e6, Unit::Count, Scope::Server);
        let result = per_mop(&cpu, 2_000_000);
        assert_eq!((result.signal.as_str(), result.value()), ("server.cpu_s_per_mop", Some(8.4)));
        assert_eq!((result.unit, result.scope), (Unit::CpuSecondsPerMillionOps, Scope::Server));
        let result = per_mop(&calls, 2_000_000);
        assert_eq!(
            (result.signal.as_str(), result.value()),
            ("server.syscalls_per_mop", Some(3e6))
        );
        assert_eq!((result.unit, result.scope), (Unit::PerMillionOps, Scope::Server));
        assert_eq!(per_mop(&calls, 0).value(), None);
        let bytes = reading("server.sent", 6.0, Unit::Bytes, Scope::Server);
        assert_eq!(per_mop(&bytes, 5).value(), None);
    }

    #[test]
    fn the_boundary_is_in_the_name() {
        let process = reading("io.written", 410.0, Unit::Bytes, Scope::Process);
        let device = reading("device.written", 520.0, Unit::Bytes, Scope::Device);
        let result = write_amplification(&process, 100);
        assert_eq!((result.signal.as_str(), result.value()), ("write_amplification", Some(4.1)));
        let result = write_amplification(&device, 100);
        assert_eq!(
            (result.signal.as_str(), result.value()),
            ("write_amplification.device", Some(5.2))
        );
        assert_eq!(result.scope, Scope::Device);
        assert_eq!(read_amplification(&process, 820).value(), Some(0.5));
    }

    #[test]
    fn what_manages_data_is_the_traffic_that_nobody_requested() {
        let device = |signal, bytes| reading(signal, bytes, Unit::Bytes, Scope::Device);
        let (read, written) = (device("device.read", 300.0), device("device.written", 500.0));
        let result = management_traffic(&read, &written, 200);
        assert_eq!(
            (result.signal.as_str(), result.scope),
            ("management_traffic.device", Scope::Device)
        );
        assert_eq!(result.value(), Some(0.75));
        // Caches answered half of it.
        assert_eq!(management_traffic(&read, &written, 1600).value(), Some(-1.0));
        let nothing = device("device.read", 0.0);
        assert_eq!(management_traffic(&nothing, &nothing, 200).value(), None);
        assert_eq!(management_traffic(&read, &written, 0).value(), None);
    }

    #[test]
    fn quotients_of_missing_readings_are_unavailable() {
        let user = reading("cpu.user", 6.0, Unit::Seconds, Scope::Process);
        let machine = reading("cpu.all", 6.0, Unit::Seconds, Scope::Machine);
        let bytes = reading("io.written", 6.0, Unit::Bytes, Scope::Process);
        let missing = Reading { answer: unavailable("no such file".to_owned()), ..user.clone() };
        for (parts, operations, reason) in [
            (vec![&user], 0, "there were no operations"),
            (vec![], 5, "nothing was read"),
            (vec![&user, &machine], 5, "different scope"),
            (vec![&user, &bytes], 5, "io.written is not in s"),
            (vec![&user, &missing], 5, "no such file"),
        ] {
            match cpu_s_per_mop(&parts, operations).answer {
                ReadingValue::Unavailable { reason: actual, .. } => {
                    assert!(actual.contains(reason))
                }
                ReadingValue::Value(value) => panic!("{value} for {reason}"),
            }
        }
        assert_eq!(write_amplification(&bytes, 0).value(), None);
    }
}
