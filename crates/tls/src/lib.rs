//! TLS of clients: the files that options name, read and checked, and why a connection failed.
#![forbid(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::Address;
use model::secrecy::is_exposed;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    AlertDescription, CertificateError, ClientConfig, DigitallySignedStruct, InvalidMessage,
    RootCertStore, SignatureScheme,
};
use thiserror::Error;

/// TLS options. All files are PEM.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tls {
    /// Trusted authorities; `None`: the system's.
    pub ca: Option<PathBuf>,
    /// The client's certificate, and those between it and its root.
    pub cert: Option<PathBuf>,
    /// The key of the client's certificate.
    pub key: Option<PathBuf>,
    /// The name that the server's certificate must hold; `None`: the address's host.
    pub server_name: Option<String>,
    /// Take any certificate. For tests: the server is not authenticated.
    pub insecure: bool,
}

/// The checked result of [`Tls::load`]; cheap to clone and to share.
#[derive(Debug, Clone)]
pub struct TlsConfig {
    pub client: Arc<ClientConfig>,
    server_name: Option<ServerName<'static>>,
}

/// Why TLS cannot be set up.
#[derive(Debug, Error)]
pub enum TlsError {
    #[error("cannot read the {what} {}: {source}", path.display())]
    Unreadable { what: &'static str, path: PathBuf, source: io::Error },
    #[error("everyone can read the key {}; run `chmod go= {}`", path.display(), path.display())]
    Exposed { path: PathBuf },
    #[error("the {what} {} is not a PEM file: {why}", path.display())]
    NotPem { what: &'static str, path: PathBuf, why: String },
    #[error("the {what} {} contains no {expected}", path.display())]
    Empty { what: &'static str, path: PathBuf, expected: &'static str },
    #[error("the {what} {} is not usable: {why}", path.display())]
    Unusable { what: &'static str, path: PathBuf, why: String },
    #[error("a client certificate needs both its `cert` and its `key`; the {missing} is missing")]
    IncompletePair { missing: &'static str },
    #[error(
        "the key {} does not belong to the client certificate {}; give the pair that was made together",
        key.display(), cert.display()
    )]
    OtherKey { cert: PathBuf, key: PathBuf },
    #[error("the system has no trusted certificates ({why}); name a `ca` file")]
    NoRoots { why: String },
    #[error("`{name}` is not a server name: write a host name or an IP address")]
    NoName { name: String },
    #[error("TLS cannot be set up: {0}")]
    Other(String),
}

/// Why a TLS connection failed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TlsFailure {
    #[error("the server's certificate has expired{when}; renew it on the server")]
    Expired { when: String },
    #[error("the server's certificate is not valid yet{when}; are both clocks right?")]
    NotYetValid { when: String },
    #[error(
        "the server's certificate is signed by an unknown authority; name the signer's certificate as `ca`"
    )]
    UnknownIssuer,
    #[error(
        "the server's certificate is not for {expected_name} but for {presented}; set the `server_name` that it is for"
    )]
    WrongName { expected_name: String, presented: String },
    #[error("the server's certificate has been revoked")]
    Revoked,
    #[error("the server's certificate is not acceptable: {0}")]
    BadCertificate(String),
    #[error("the server does not speak TLS ({0}); use the port on which it does, or leave out TLS")]
    NotTls(String),
    #[error("the server requires a client certificate; give `cert` and `key`")]
    ClientCertificateRequired,
    #[error("the server does not accept the client certificate ({0})")]
    ClientCertificateRefused(String),
    #[error("a unix socket has no host name to check; give the `server_name`")]
    NoServerName,
    #[error("`{0}` is not a name that a certificate can have; give the `server_name`")]
    BadServerName(String),
    #[error("{0}")]
    Other(String),
}

impl Tls {
    /// Reads the files and checks that they fit together.
    ///
    /// # Errors
    /// The file or the setting that is wrong.
    pub fn load(&self) -> Result<TlsConfig, TlsError> {
        let provider = provider();
        let other = |error: rustls::Error| TlsError::Other(error.to_string());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(other)?;
        let builder = match self.insecure {
            true => builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(AcceptAnyCertificate { provider })),
            false => {
                let roots = Arc::new(self.roots()?);
                let verifier = WebPkiServerVerifier::builder_with_provider(roots, provider)
                    .build()
                    .map_err(|error| TlsError::Other(error.to_string()))?;
                builder.with_webpki_verifier(verifier)
            }
        };
        let client = match (&self.cert, &self.key) {
            (None, None) => builder.with_no_client_auth(),
            (Some(_), None) => return Err(TlsError::IncompletePair { missing: "key" }),
            (None, Some(_)) => return Err(TlsError::IncompletePair { missing: "cert" }),
            (Some(cert), Some(key)) => builder
                .with_client_auth_cert(certificates("client certificate", cert)?, private_key(key)?)
                .map_err(|error| pair_error(error, cert, key))?,
        };
        let server_name = match &self.server_name {
            None => None,
            Some(name) => Some(
                ServerName::try_from(name.clone())
                    .map_err(|_| TlsError::NoName { name: name.clone() })?,
            ),
        };
        Ok(TlsConfig { client: Arc::new(client), server_name })
    }

    /// The certificates of the trusted authorities: at least one that can be used.
    ///
    /// # Errors
    /// The file that is wrong, or a system without trusted certificates.
    pub fn trusted(&self) -> Result<Vec<CertificateDer<'static>>, TlsError> {
        self.trusted_with_store().map(|(trusted, _)| trusted)
    }

    fn roots(&self) -> Result<RootCertStore, TlsError> {
        self.trusted_with_store().map(|(_, roots)| roots)
    }

    fn trusted_with_store(
        &self,
    ) -> Result<(Vec<CertificateDer<'static>>, RootCertStore), TlsError> {
        let mut roots = RootCertStore::empty();
        match &self.ca {
            Some(path) => {
                let trusted = certificates("CA file", path)?;
                for certificate in trusted.iter().cloned() {
                    roots.add(certificate).map_err(|error| TlsError::Unusable {
                        what: "CA file",
                        path: path.clone(),
                        why: error.to_string(),
                    })?;
                }
                Ok((trusted, roots))
            }
            None => {
                let system = rustls_native_certs::load_native_certs();
                // Systems hold certificates that are too old to be read; one good one is enough.
                let (good, _) = roots.add_parsable_certificates(system.certs.iter().cloned());
                if good == 0 {
                    let why = match system.errors.first() {
                        Some(error) => error.to_string(),
                        None => "none were found".to_owned(),
                    };
                    return Err(TlsError::NoRoots { why });
                }
                Ok((system.certs, roots))
            }
        }
    }
}

/// The algorithms of every TLS connection.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn open(what: &'static str, path: &Path) -> Result<File, TlsError> {
    File::open(path).map_err(|source| TlsError::Unreadable { what, path: path.into(), source })
}

fn pem_error(
    what: &'static str,
    path: &Path,
    expected: &'static str,
    error: rustls::pki_types::pem::Error,
) -> TlsError {
    use rustls::pki_types::pem::Error as Pem;
    match error {
        Pem::Io(source) => TlsError::Unreadable { what, path: path.into(), source },
        Pem::NoItemsFound => TlsError::Empty { what, path: path.into(), expected },
        other => TlsError::NotPem { what, path: path.into(), why: other.to_string() },
    }
}

fn certificates(what: &'static str, path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let expected = "certificate";
    let all: Vec<_> = CertificateDer::pem_reader_iter(open(what, path)?)
        .collect::<Result<_, _>>()
        .map_err(|error| pem_error(what, path, expected, error))?;
    match all.is_empty() {
        true => Err(TlsError::Empty { what, path: path.into(), expected }),
        false => Ok(all),
    }
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    let what = "key";
    let file = open(what, path)?;
    let metadata = file.metadata().map_err(|source| TlsError::Unreadable {
        what,
        path: path.into(),
        source,
    })?;
    if metadata.is_file() && is_exposed(metadata.mode()) {
        return Err(TlsError::Exposed { path: path.into() });
    }
    PrivateKeyDer::from_pem_reader(file)
        .map_err(|error| pem_error(what, path, "private key", error))
}

fn pair_error(error: rustls::Error, cert: &Path, key: &Path) -> TlsError {
    match error {
        rustls::Error::InconsistentKeys(_) => {
            TlsError::OtherKey { cert: cert.into(), key: key.into() }
        }
        rustls::Error::InvalidCertificate(why) => TlsError::Unusable {
            what: "client certificate",
            path: cert.into(),
            why: why.to_string(),
        },
        other => TlsError::Unusable { what: "key", path: key.into(), why: other.to_string() },
    }
}

impl TlsConfig {
    /// The name that the certificate of a server must hold.
    ///
    /// # Errors
    /// The address has no such name.
    pub fn name_of(&self, address: &Address) -> Result<ServerName<'static>, TlsFailure> {
        match (&self.server_name, address) {
            (Some(name), _) => Ok(name.clone()),
            (None, Address::Unix(_)) => Err(TlsFailure::NoServerName),
            (None, Address::Tcp { host, .. }) => {
                // The scope of an address is not part of certificates.
                let host = host.split('%').next().unwrap_or(host);
                ServerName::try_from(host.to_owned())
                    .map_err(|_| TlsFailure::BadServerName(host.to_owned()))
            }
        }
    }

    /// The same configuration for a connection that speaks this protocol alone, such as `h2`.
    pub fn speaking(mut self, protocol: &[u8]) -> TlsConfig {
        Arc::make_mut(&mut self.client).alpn_protocols = vec![protocol.to_vec()];
        self
    }
}

impl TlsFailure {
    /// What a TLS library's error means.
    pub fn of(error: rustls::Error) -> TlsFailure {
        use rustls::Error as Tls;
        match error {
            Tls::InvalidCertificate(why) => TlsFailure::of_certificate(why),
            Tls::InvalidMessage(InvalidMessage::InvalidContentType) => {
                TlsFailure::NotTls("its answer is not TLS".to_owned())
            }
            Tls::AlertReceived(alert) => TlsFailure::of_alert(alert),
            other => TlsFailure::Other(other.to_string()),
        }
    }

    /// The failure that an I/O error of `rustls` holds.
    pub fn inside(error: &io::Error) -> Option<TlsFailure> {
        let inner = error.get_ref()?;
        let tls = inner
            .downcast_ref::<rustls::Error>()
            .or_else(|| inner.source()?.downcast_ref::<rustls::Error>())?;
        Some(TlsFailure::of(tls.clone()))
    }

    fn of_certificate(why: CertificateError) -> TlsFailure {
        use CertificateError as Why;
        let days = |time: UnixTime, limit: UnixTime| {
            let days = time.as_secs().abs_diff(limit.as_secs()) / 86_400;
            match days {
                0 => String::new(),
                1 => " by a day".to_owned(),
                days => format!(" by {days} days"),
            }
        };
        match why {
            Why::Expired => TlsFailure::Expired { when: String::new() },
            Why::ExpiredContext { time, not_after } => {
                TlsFailure::Expired { when: days(time, not_after) }
            }
            Why::NotValidYet => TlsFailure::NotYetValid { when: String::new() },
            Why::NotValidYetContext { time, not_before } => {
                TlsFailure::NotYetValid { when: days(time, not_before) }
            }
            // Or signed by another key than the trusted one of that name.
            Why::UnknownIssuer | Why::BadSignature => TlsFailure::UnknownIssuer,
            Why::Revoked => TlsFailure::Revoked,
            Why::NotValidForName => TlsFailure::WrongName {
                expected_name: "the expected name".to_owned(),
                presented: "others".to_owned(),
            },
            Why::NotValidForNameContext { expected, presented } => TlsFailure::WrongName {
                expected_name: format!("`{}`", expected.to_str()),
                presented: match presented.is_empty() {
                    true => "no name at all".to_owned(),
                    false => presented.join(", "),
                },
            },
            other => TlsFailure::BadCertificate(other.to_string()),
        }
    }

    fn of_alert(alert: AlertDescription) -> TlsFailure {
        use AlertDescription as Alert;
        match alert {
            Alert::CertificateRequired | Alert::NoCertificate => {
                TlsFailure::ClientCertificateRequired
            }
            Alert::BadCertificate
            | Alert::UnsupportedCertificate
            | Alert::CertificateRevoked
            | Alert::CertificateExpired
            | Alert::CertificateUnknown
            | Alert::UnknownCA
            | Alert::AccessDenied => TlsFailure::ClientCertificateRefused(format!("{alert:?}")),
            other => TlsFailure::Other(format!("the server ended the TLS handshake: {other:?}")),
        }
    }
}

/// Accepts any certificate, but still verifies that the server has its key.
#[derive(Debug)]
struct AcceptAnyCertificate {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for AcceptAnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(
            message,
            cert,
            signed,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(
            message,
            cert,
            signed,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
