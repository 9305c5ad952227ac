//! Credentials of both sides: mutual TLS, a shared token, or both.
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use model::secrecy::is_exposed;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use subtle::ConstantTimeEq;
use tonic::transport::{Certificate, Identity, ServerTlsConfig};

use crate::error::AgentError;
use crate::flags;

/// The fewest characters of a token: 128 bits in hexadecimal are 32, in base 64 are 22.
const SHORTEST_TOKEN: usize = 16;
const LONGEST_TOKEN: usize = 4096;
/// Maximum file size; all authorities that a system trusts take a quarter of it.
const LONGEST_FILE: u64 = 1 << 20;
/// How long the other side may take over the TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(5);

/// A shared secret. Never shown.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// The token of a variable, mostly [`flags::TOKEN_VARIABLE`]. None where it is not set.
    ///
    /// # Errors
    /// It is too short, too long or not of visible ASCII characters.
    pub fn from_variable(name: &str) -> Result<Option<Token>, AgentError> {
        let place = || format!("the variable {name}");
        match std::env::var(name) {
            Ok(text) => Token::check(&text, place).map(Some),
            Err(std::env::VarError::NotPresent) => Ok(None),
            Err(std::env::VarError::NotUnicode(_)) => Token::check("\0", place).map(Some),
        }
    }

    /// The token that is the first and only line of a file.
    ///
    /// # Errors
    /// The file cannot be read, everyone can read it, or the token is no good, as above.
    pub fn from_file(path: &Path) -> Result<Token, AgentError> {
        let bytes = read(flags::TOKEN_FILE, path, FileSecrecy::Secret, |_| Ok(()))?;
        // What is not text has characters that no token has.
        let text = String::from_utf8_lossy(&bytes);
        Token::check(&text, || format!("{} {}", flags::TOKEN_FILE, path.display()))
    }

    fn check(text: &str, place: impl FnOnce() -> String) -> Result<Token, AgentError> {
        let token = text.trim();
        let why = match token.len() {
            0 => "is empty",
            length if length < SHORTEST_TOKEN => "has fewer than 16 characters",
            length if length > LONGEST_TOKEN => "has more than 4096 characters",
            _ if !token.bytes().all(|byte| byte.is_ascii_graphic()) => {
                "has spaces or characters other than ASCII"
            }
            _ => return Ok(Token(token.to_owned())),
        };
        Err(AgentError::Token { place: place(), why })
    }

    /// What is sent in the `authorization` metadata.
    pub(crate) fn bearer(&self) -> String {
        format!("Bearer {}", self.0)
    }

    /// Whether the other side's metadata holds this token, in a time that tells only the length.
    pub(crate) fn matches(&self, shown: &[u8]) -> bool {
        self.bearer().as_bytes().ct_eq(shown).into()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

/// Where the PEM files for mutual TLS are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsFiles {
    pub ca: Option<PathBuf>,
    pub cert: Option<PathBuf>,
    pub key: Option<PathBuf>,
}

/// The credentials of one side; never empty.
#[derive(Clone)]
pub struct Credentials {
    tls: Option<Pem>,
    token: Option<Token>,
}

#[derive(Clone)]
struct Pem {
    ca: Vec<u8>,
    cert: Vec<u8>,
    key: Vec<u8>,
}

impl Credentials {
    /// Reads the files, all of them or none, and takes the token. With both, both are required.
    ///
    /// # Errors
    /// There is neither, a file is missing, cannot be read or holds something else.
    pub fn load(files: &TlsFiles, token: Option<Token>) -> Result<Credentials, AgentError> {
        let tls = match (&files.ca, &files.cert, &files.key) {
            (None, None, None) => None,
            (Some(ca), Some(cert), Some(key)) => Some(Pem {
                ca: read(flags::CA, ca, FileSecrecy::Public, holds_certificate)?,
                cert: read(flags::CERT, cert, FileSecrecy::Public, holds_certificate)?,
                key: read(flags::KEY, key, FileSecrecy::Secret, holds_key)?,
            }),
            (ca, cert, _) => {
                let missing = match (ca, cert) {
                    (None, _) => flags::CA,
                    (_, None) => flags::CERT,
                    _ => flags::KEY,
                };
                return Err(AgentError::HalfTls { missing });
            }
        };
        let credentials = Credentials { tls, token };
        match credentials {
            Credentials { tls: None, token: None } => Err(AgentError::NoCredentials),
            _ => {
                credentials.check_pair(files)?;
                Ok(credentials)
            }
        }
    }

    /// A short description.
    pub fn kind(&self) -> &'static str {
        match (&self.tls, &self.token) {
            (Some(_), Some(_)) => "mutual TLS and a token",
            (Some(_), None) => "mutual TLS",
            _ => "a token over plain text",
        }
    }

    pub(crate) fn token(&self) -> Option<&Token> {
        self.token.as_ref()
    }

    pub(crate) fn has_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// The server's side of TLS.
    pub(crate) fn server(&self) -> Option<ServerTlsConfig> {
        self.tls.as_ref().map(|pem| {
            ServerTlsConfig::new()
                .identity(Identity::from_pem(&pem.cert, &pem.key))
                .client_ca_root(Certificate::from_pem(&pem.ca))
                .timeout(HANDSHAKE)
        })
    }

    /// The client's side of TLS; None without TLS.
    pub(crate) fn client(&self) -> Option<Result<ClientConfig, rustls::Error>> {
        self.tls.as_ref().map(|pem| {
            let mut roots = RootCertStore::empty();
            roots.add_parsable_certificates(certificates(&pem.ca));
            let key = PrivateKeyDer::from_pem_slice(&pem.key)
                .map_err(|error| rustls::Error::General(error.to_string()))?;
            let mut config = ClientConfig::builder()
                .with_root_certificates(roots)
                .with_client_auth_cert(certificates(&pem.cert).collect(), key)?;
            config.alpn_protocols.push(b"h2".to_vec());
            Ok(config)
        })
    }

    /// Checks that key and certificate match and can be used.
    fn check_pair(&self, files: &TlsFiles) -> Result<(), AgentError> {
        let (Some(pem), Some(path), Some(ca)) = (&self.tls, &files.cert, &files.ca) else {
            return Ok(());
        };
        // One cryptography for the whole process: without it rustls has to guess.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let wrong = |why: String| AgentError::File { flag: flags::CERT, path: path.clone(), why };
        let chain = certificates(&pem.cert).collect();
        let key = PrivateKeyDer::from_pem_slice(&pem.key)
            .map_err(|error| wrong(format!("{}: {error}", flags::KEY)))?;
        ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(|error| wrong(format!("does not match {}: {error}", flags::KEY)))?;
        match RootCertStore::empty().add_parsable_certificates(certificates(&pem.ca)) {
            (0, _) => Err(AgentError::File {
                flag: flags::CA,
                path: ca.clone(),
                why: "holds no authority's certificate".to_owned(),
            }),
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Credentials({})", self.kind())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileSecrecy {
    Public,
    /// Only its owner and their group may read it.
    Secret,
}

fn read(
    flag: &'static str,
    path: &Path,
    secrecy: FileSecrecy,
    check: impl Fn(&[u8]) -> Result<(), String>,
) -> Result<Vec<u8>, AgentError> {
    let wrong = |why| AgentError::File { flag, path: path.to_owned(), why };
    let failed = |error: std::io::Error| wrong(error.to_string());
    let file = File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if secrecy == FileSecrecy::Secret && metadata.is_file() && is_exposed(metadata.mode()) {
        return Err(wrong(format!("everyone can read it; run `chmod go= {}`", path.display())));
    }
    let mut bytes = Vec::new();
    file.take(LONGEST_FILE + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > LONGEST_FILE {
        return Err(wrong(format!("is larger than {} MiB", LONGEST_FILE >> 20)));
    }
    check(&bytes).map_err(wrong)?;
    Ok(bytes)
}

fn certificates(pem: &[u8]) -> impl Iterator<Item = CertificateDer<'static>> {
    CertificateDer::pem_slice_iter(pem).filter_map(Result::ok)
}

fn holds_certificate(bytes: &[u8]) -> Result<(), String> {
    match CertificateDer::pem_slice_iter(bytes).next() {
        Some(Ok(_)) => Ok(()),
        Some(Err(error)) => Err(error.to_string()),
        None => Err("holds no certificate in PEM form".to_owned()),
    }
}

fn holds_key(bytes: &[u8]) -> Result<(), String> {
    PrivateKeyDer::from_pem_slice(bytes)
        .map(|_| ())
        .map_err(|_| "holds no private key in PEM form".to_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn tokens_are_long_visible_and_never_shown() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let of = |text: &str| {
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
            Token::from_file(&path)
        };
        let token = of("0123456789abcdef\n").unwrap();
        assert!(token.matches(b"Bearer 0123456789abcdef"));
        for other in ["", "Bearer ", "Bearer 0123456789abcdee", "Bearer 0123456789abcdef0"] {
            assert!(!token.matches(other.as_bytes()), "{other}");
        }
        assert!(!format!("{token:?}").contains("0123"));
        for (text, why) in
            [("", "empty"), ("short", "fewer than 16"), ("0123456789 abcdefghi", "has spaces")]
        {
            let error = of(text).unwrap_err().to_string();
            assert!(error.contains(why) && error.contains("--agent-token-file"), "{error}");
            assert!(text.is_empty() || !error.contains(text), "{error}");
        }
        // As password files are.
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        let error = Token::from_file(&path).unwrap_err().to_string();
        assert!(error.contains("everyone can read it; run `chmod go="), "{error}");
        let error = Token::from_file(Path::new("/dev/zero")).unwrap_err().to_string();
        assert!(error.contains("is larger than"), "{error}");
        assert!(Token::from_variable("KVMETER_NO_SUCH_VARIABLE").unwrap().is_none());
        assert!(matches!(
            Token::from_file(&folder.path().join("none")),
            Err(AgentError::File { flag: flags::TOKEN_FILE, .. })
        ));
    }

    #[test]
    fn incomplete_and_invalid_credentials_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("nonsense.pem");
        std::fs::write(&file, "nonsense").unwrap();
        assert_eq!(
            Credentials::load(&TlsFiles::default(), None).unwrap_err(),
            AgentError::NoCredentials
        );
        let half = TlsFiles { ca: Some(file.clone()), cert: Some(file.clone()), key: None };
        assert_eq!(
            Credentials::load(&half, None).unwrap_err(),
            AgentError::HalfTls { missing: flags::KEY }
        );
        let all = TlsFiles { key: Some(file), ..half };
        let error = Credentials::load(&all, None).unwrap_err().to_string();
        assert!(error.contains("nonsense.pem: holds no certificate"), "{error}");
    }

    #[test]
    fn a_key_of_another_certificate_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: String| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
            Some(path)
        };
        let one = rcgen::generate_simple_self_signed(["a".to_owned()]).unwrap();
        let other = rcgen::KeyPair::generate().unwrap();
        let cert = write("cert.pem", one.cert.pem());
        let right = write("right.pem", one.signing_key.serialize_pem());
        let wrong = write("wrong.pem", other.serialize_pem());
        let files = |key| TlsFiles { ca: cert.clone(), cert: cert.clone(), key };
        assert_eq!(Credentials::load(&files(right), None).unwrap().kind(), "mutual TLS");
        let error = Credentials::load(&files(wrong), None).unwrap_err().to_string();
        assert!(error.contains("does not match --agent-key"), "{error}");
    }
}
