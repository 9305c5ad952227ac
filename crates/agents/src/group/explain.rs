//! Explains errors of the transport.
use std::error::Error;
use std::io;

use model::Address;
use rustls::{AlertDescription, CertificateError};

use crate::error::{AgentError, CertificateFault};

/// Why no session was opened over a connection.
pub fn explain(address: &Address, tls: bool, error: &(dyn Error + 'static)) -> AgentError {
    let address = address.clone();
    let Some(fault) = find_tls(error) else {
        return AgentError::NoAnswer { address, tls, why: root(error) };
    };
    match fault {
        rustls::Error::InvalidCertificate(why) => {
            AgentError::Certificate { address, fault: of_certificate(why) }
        }
        rustls::Error::AlertReceived(alert) => match of_alert(*alert) {
            Some(fault) => AgentError::OwnCertificate { address, fault },
            None => AgentError::Tls { address, why: fault.to_string() },
        },
        rustls::Error::InvalidMessage(_) => AgentError::NoTls { address },
        _ => AgentError::Tls { address, why: fault.to_string() },
    }
}

fn find_tls<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    chain(error).find_map(|error| {
        error.downcast_ref::<rustls::Error>().or_else(|| {
            // An I/O error has its inner error only in `get_ref`.
            error.downcast_ref::<io::Error>()?.get_ref()?.downcast_ref()
        })
    })
}

/// The innermost cause, in words.
pub fn root(error: &(dyn Error + 'static)) -> String {
    chain(error).last().map_or_else(String::new, ToString::to_string)
}

fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    let mut next = Some(error);
    std::iter::from_fn(move || {
        let error = next?;
        next = error.source();
        Some(error)
    })
}

/// What is wrong with the other side's certificate.
fn of_certificate(error: &CertificateError) -> CertificateFault {
    match error {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            CertificateFault::Expired
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            CertificateFault::NotYetValid
        }
        // A signature that does not fit: an authority of the same name with another key.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            CertificateFault::NotTrusted
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            CertificateFault::OtherName
        }
        CertificateError::Revoked => CertificateFault::Revoked,
        _ => CertificateFault::Unacceptable,
    }
}

/// What is wrong with this side's certificate, by the other's alert.
fn of_alert(alert: AlertDescription) -> Option<CertificateFault> {
    Some(match alert {
        AlertDescription::CertificateExpired => CertificateFault::Expired,
        AlertDescription::UnknownCA | AlertDescription::DecryptError => {
            CertificateFault::NotTrusted
        }
        AlertDescription::CertificateRequired => CertificateFault::Missing,
        AlertDescription::CertificateRevoked => CertificateFault::Revoked,
        AlertDescription::BadCertificate
        | AlertDescription::CertificateUnknown
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::AccessDenied => CertificateFault::Unacceptable,
        _ => return None,
    })
}
