//! Requests to an SNMP agent (RFC 1157, RFC 3416) by UDP, each within a limit of time whatever comes.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::time::Duration;

use model::Unavailable;
use snmp2::{Error, Oid, Pdu, SyncSession};

use super::settings::{SnmpSettings, SnmpVersion, arcs};
use super::value::{NoPower, power};
use crate::probe::energy::secret::Secret;

/// A request is sent this often, and each has this long for its answer: 1.8 s in all, which the
/// other sensors wait for.
const TRIES: u32 = 3;
const TRY: Duration = Duration::from_millis(600);

/// Of a name with more addresses, the first ones are tried.
const MAX_ADDRESSES: usize = 4;

const NO_SUCH_NAME: u32 = 2;

/// An agent and what is read from it.
pub(super) struct Agent {
    target: SocketAddr,
    /// Host and port as they are shown.
    name: String,
    version: SnmpVersion,
    community: String,
    oids: Vec<Oid<'static>>,
    factor: f64,
}

/// Why a request has no sum of watts.
enum Failure {
    /// No answer came.
    Silent,
    Other(Unavailable),
}

impl Agent {
    /// Finds the address at which the agent answers, and reads it once.
    pub(super) fn open(settings: &SnmpSettings) -> Result<Agent, Unavailable> {
        let (host, port) = settings.endpoint().ok_or_else(|| invalid(settings))?;
        let name =
            if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
        let oids = settings.oids.iter().map(|oid| Oid::from(&arcs(oid)?).ok()).collect();
        let secret = Secret {
            probe: "snmp",
            name: "community",
            file: settings.community_file.as_deref(),
            env: settings.community_env.as_deref(),
        };
        let mut agent = Agent {
            target: (Ipv4Addr::LOCALHOST, port).into(),
            name,
            version: settings.version,
            community: secret.read()?.unwrap_or_else(|| "public".to_owned()),
            oids: Option::ok_or_else(oids, || invalid(settings))?,
            factor: settings.factor,
        };
        let addresses = (host, port).to_socket_addrs().map_err(|error| {
            Unavailable::new(
                format!("{host} has no address: {error}"),
                "give a name that this machine can resolve, or an address",
            )
        })?;
        // Where a name has several addresses, the agent may listen at one of them alone.
        for target in addresses.take(MAX_ADDRESSES) {
            agent.target = target;
            match agent.read() {
                Ok(_) => return Ok(agent),
                Err(Failure::Silent) => {}
                Err(Failure::Other(why)) => return Err(why),
            }
        }
        Err(agent.silence())
    }

    /// The agent and the objects, for people.
    pub(super) fn source(&self) -> String {
        let names: Vec<String> = self.oids.iter().map(Oid::to_string).collect();
        format!("{} at {}", self.name, names.join(" + "))
    }

    /// The watts of all objects together.
    pub(super) fn watts(&self) -> Result<f64, Unavailable> {
        self.read().map_err(|failure| match failure {
            Failure::Silent => self.silence(),
            Failure::Other(why) => why,
        })
    }

    /// A session of its own for each reading: late answers to an earlier one meet a closed port, and
    /// the port is connected, so that the kernel drops what others send.
    fn read(&self) -> Result<f64, Failure> {
        let open = match self.version {
            SnmpVersion::V1 => SyncSession::new_v1::<SocketAddr>,
            SnmpVersion::V2c => SyncSession::new_v2c::<SocketAddr>,
        };
        let session = open(self.target, self.community.as_bytes(), Some(TRY), first_request());
        let mut session = session.map_err(|error| {
            Failure::Other(Unavailable::new(
                format!("{} cannot be reached: {error}", self.name),
                "name an address to which this machine has a route",
            ))
        })?;
        let names: Vec<&Oid<'_>> = self.oids.iter().collect();
        let mut unusable = None;
        for _ in 0..TRIES {
            match session.get_many(&names) {
                Ok(answer) => return self.sum(&answer).map_err(Failure::Other),
                Err(Error::Send | Error::Receive) => {}
                Err(error) => unusable = Some(error),
            }
        }
        Err(match unusable {
            None => Failure::Silent,
            Some(error) => Failure::Other(Unavailable::new(
                format!("{} sent what does not answer the request ({error})", self.name),
                "name the address of an SNMP agent, or try the other version",
            )),
        })
    }

    fn sum(&self, answer: &Pdu<'_>) -> Result<f64, Unavailable> {
        if answer.error_status != 0 {
            return Err(self.refused(answer.error_status, answer.error_index));
        }
        let pairs: Vec<_> = answer.varbinds.clone().take(self.oids.len() + 1).collect();
        if !pairs.iter().map(|(oid, _)| oid).eq(&self.oids) {
            return Err(Unavailable::new(
                format!("{} answered for other objects than the request names", self.name),
                "update the firmware of the agent, or read it by the probe command",
            ));
        }
        let mut sum = 0.0;
        for (oid, value) in &pairs {
            sum += power(value).map_err(|why| match why {
                NoPower::Missing => self.missing(&oid.to_string()),
                NoPower::Other(what) => Unavailable::new(
                    format!("{oid} of {} is {what}, which is not a power", self.name),
                    "name the object with the active power; models that do not measure it answer -1",
                ),
            })?;
        }
        Ok(sum * self.factor)
    }

    /// The agent refuses the whole request.
    fn refused(&self, status: u32, index: u32) -> Unavailable {
        let which = (index as usize).checked_sub(1).and_then(|index| self.oids.get(index));
        let which = which.map_or_else(|| "the objects".to_owned(), Oid::to_string);
        if status == NO_SUCH_NAME {
            return self.missing(&which);
        }
        let (error, remedy) = match status {
            1 => ("tooBig", "name fewer objects: its answer has no room for all of them"),
            5 => ("genErr", "restart the agent's management module, or name another object"),
            6 => ("noAccess", "let the community read the object"),
            16 => ("authorizationError", "let the community read the object"),
            _ => ("no error of a read", "name the address of an SNMP agent"),
        };
        Unavailable::new(
            format!("{} refuses to read {which}: error-status {status} ({error})", self.name),
            remedy,
        )
    }

    fn missing(&self, oid: &str) -> Unavailable {
        Unavailable::new(
            format!("{} has no object {oid}", self.name),
            "name it down to the instance: .0, or the numbers of the row such as the outlet; or let \
             the community see it",
        )
    }

    fn silence(&self) -> Unavailable {
        Unavailable::new(
            format!(
                "{} did not answer {TRIES} requests of SNMP{} within {:.1} s",
                self.name,
                self.version.name(),
                (TRY * TRIES).as_secs_f64()
            ),
            "check address, version and community (`community_file` of the probe snmp): agents do not \
             answer a wrong one; and let this machine's UDP through to the agent",
        )
    }
}

fn invalid(settings: &SnmpSettings) -> Unavailable {
    Unavailable::new(
        format!("the probe snmp cannot read {} of {}", settings.oids.join("+"), settings.address),
        "give an address and objects: `--probes snmp=ADDRESS/OID`",
    )
}

/// The number of the first request, which others cannot guess.
fn first_request() -> i32 {
    let random = RandomState::new().build_hasher().finish();
    // Far from the end of the numbers.
    i32::try_from(random >> 34).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 42 W of 1.3.6.1.4.1.1.1.0, by version 2c.
    const ANSWER: &[u8] =
        b"\x30\x2a\x02\x01\x01\x04\x06public\xa2\x1d\x02\x04\0\0\0\x07\x02\x01\0\x02\x01\0\
        \x30\x0f\x30\x0d\x06\x08\x2b\x06\x01\x04\x01\x01\x01\0\x02\x01\x2a";

    #[test]
    fn damaged_answers_end_in_a_power_or_a_reason() {
        let agent = Agent {
            target: (Ipv4Addr::LOCALHOST, 161).into(),
            name: "pdu".to_owned(),
            version: SnmpVersion::V2c,
            community: "public".to_owned(),
            oids: vec![Oid::from(&[1, 3, 6, 1, 4, 1, 1, 1, 0]).unwrap()],
            factor: 0.5,
        };
        let sum = |bytes: &[u8]| Some(agent.sum(&Pdu::from_bytes(bytes).ok()?));
        assert_eq!(sum(ANSWER), Some(Ok(21.0)));
        let mut random = 0x9e37_79b9_7f4a_7c15_u64;
        let mut below = |limit: usize| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            (random % limit as u64) as usize
        };
        let (mut powers, mut reasons) = (0, 0);
        for _ in 0..300_000 {
            let mut bytes = ANSWER.to_vec();
            for _ in 0..=below(3) {
                let at = below(bytes.len());
                match below(4) {
                    0 => drop(bytes.remove(at)),
                    1 => bytes.insert(at, below(256) as u8),
                    _ => bytes[at] = below(256) as u8,
                }
            }
            match sum(&bytes) {
                Some(Ok(watts)) => {
                    assert!(watts.is_finite() && watts >= 0.0, "{bytes:x?}: {watts}");
                    powers += 1;
                }
                Some(Err(_)) => reasons += 1,
                None => {}
            }
        }
        assert!(powers > 1000 && reasons > 1000, "{powers} {reasons}");
    }
}
