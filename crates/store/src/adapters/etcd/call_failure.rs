//! What an error of etcd means: whether the request is repeated, and the way out.

use model::Address;
use tls::TlsFailure;
use tonic::{Code, Status};

use super::connection::{LONGEST_ANSWER, innermost, lost_with};
use crate::StoreError;

/// Why a request has no answer yet.
#[derive(Debug)]
pub(super) enum CallFailure {
    /// It is repeated at the next endpoint.
    Retryable { words: String, connected: bool },
    /// The members have forgotten the login.
    TokenExpired,
    /// It is not repeated.
    Final(StoreError),
}

impl CallFailure {
    /// Of an error while connecting.
    pub(super) fn connecting(error: StoreError) -> CallFailure {
        match error {
            StoreError::Failed(words) => CallFailure::Retryable { words, connected: false },
            other => CallFailure::Final(other),
        }
    }

    pub(super) fn of(address: &Address, status: &Status) -> CallFailure {
        if let Some(lost) = lost_with(status) {
            return match refused_by_tls(lost) {
                Some(why) => CallFailure::Final(StoreError::Request(format!("{address}: {why}"))),
                None => CallFailure::Retryable {
                    words: format!("{address}: the connection was lost ({})", innermost(lost)),
                    connected: true,
                },
            };
        }
        let said = status.message();
        let again =
            || CallFailure::Retryable { words: format!("{address}: {said}"), connected: true };
        let request = |words: &str| StoreError::Request(format!("{address}: {words}"));
        let failed = |words: &str| StoreError::Failed(format!("{address}: {words}"));
        CallFailure::Final(match status.code() {
            // No leader, a new leader, a member that stops: another request may succeed.
            Code::Unavailable => return again(),
            Code::ResourceExhausted if said.contains("too many requests") => return again(),
            Code::Unauthenticated => return CallFailure::TokenExpired,
            Code::ResourceExhausted if said.contains("space exceeded") => {
                StoreError::Full(format!(
                    "{address}: the database has reached its quota (alarm NOSPACE); compact and \
                     defragment it and disarm the alarm with `etcdctl`, or start etcd with a larger \
                     `--quota-backend-bytes`"
                ))
            }
            Code::ResourceExhausted if said.contains("larger than max") => failed(TOO_LARGE),
            Code::InvalidArgument if said.contains("too large") => failed(TOO_LARGE),
            Code::InvalidArgument if said.contains("user name is empty") => {
                request("a login is required; give `user` and `password_file` or `password_env`")
            }
            Code::InvalidArgument if said.contains("authentication failed") => {
                request("the user does not exist, or the password is not theirs")
            }
            Code::FailedPrecondition if said.contains("authentication is not enabled") => {
                request("it has no logins (authentication is not enabled); leave out `user`")
            }
            Code::PermissionDenied => request(
                "the user lacks a permission; grant its role `readwrite` for the `prefix` \
                 (`etcdctl role grant-permission ROLE readwrite --prefix=true PREFIX`)",
            ),
            Code::Unimplemented => request("it is no etcd with the API v3; correct the address"),
            Code::OutOfRange => failed(&format!(
                "an answer is longer than {} MiB; scan fewer records, or make values shorter",
                LONGEST_ANSWER >> 20
            )),
            Code::DataLoss => failed(&format!("{said}; restore the member from the others")),
            code => failed(&format!("{said} ({code:?})")),
        })
    }
}

const TOO_LARGE: &str = "the request is too large: etcd takes 1.5 MiB unless its \
    `--max-request-bytes` says otherwise; make values shorter, or raise that on every member";

/// A server may refuse a client's certificate after the handshake; HTTP/2 keeps TLS's words alone.
pub(super) fn refused_by_tls(error: &hyper::Error) -> Option<TlsFailure> {
    let words = innermost(error);
    let alert = words.strip_prefix("received fatal alert: ")?;
    let about_it = ["Certificate", "UnknownCA", "AccessDenied"];
    about_it
        .iter()
        .any(|sign| alert.contains(sign))
        .then(|| TlsFailure::ClientCertificateRefused(alert.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_is_typed_and_has_a_way_out() {
        let address = Address::parse("h:1", 1).unwrap();
        let of = |code, words: &str| CallFailure::of(&address, &Status::new(code, words));
        let full = of(Code::ResourceExhausted, "etcdserver: mvcc: database space exceeded");
        assert!(
            matches!(full, CallFailure::Final(StoreError::Full(words)) if words.contains("etcdctl"))
        );
        for (code, words) in [
            (Code::Unavailable, "etcdserver: no leader"),
            (Code::Unavailable, "etcdserver: leader changed"),
            (Code::ResourceExhausted, "etcdserver: too many requests"),
        ] {
            assert!(
                matches!(of(code, words), CallFailure::Retryable { connected: true, .. }),
                "{words}"
            );
        }
        for (code, said, way) in [
            (Code::InvalidArgument, "etcdserver: user name is empty", "password_file"),
            (Code::InvalidArgument, "etcdserver: authentication failed, invalid user", "password"),
            (Code::FailedPrecondition, "etcdserver: authentication is not enabled", "leave out"),
            (Code::PermissionDenied, "etcdserver: permission denied", "grant-permission"),
            (Code::Unimplemented, "unknown service", "address"),
        ] {
            match of(code, said) {
                CallFailure::Final(StoreError::Request(words)) => {
                    assert!(words.starts_with("h:1: ") && words.contains(way), "{words}");
                }
                other => panic!("{said}: {other:?}"),
            }
        }
        for (code, said, way) in [
            (Code::InvalidArgument, "etcdserver: request is too large", "--max-request-bytes"),
            (
                Code::ResourceExhausted,
                "grpc: received message larger than max (3 vs. 2)",
                "shorter",
            ),
            (Code::OutOfRange, "decoded message length too large", "64 MiB"),
            (Code::DataLoss, "etcdserver: corrupt cluster", "restore"),
        ] {
            match of(code, said) {
                CallFailure::Final(StoreError::Failed(words)) => {
                    assert!(words.contains(way), "{words}")
                }
                other => panic!("{said}: {other:?}"),
            }
        }
        assert!(matches!(
            of(Code::Unauthenticated, "invalid auth token"),
            CallFailure::TokenExpired
        ));
    }
}
