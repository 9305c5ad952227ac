//! Certificates of one session: an authority that lives in this process alone, and what it signs.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::PathBuf;

use agents::TlsFiles;
use anyhow::Context;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustix::fs::{MemfdFlags, Mode, fchmod, memfd_create};

/// Signs the certificates of a session. Its key is never written, and goes with it.
pub struct SessionAuthority(CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key in PEM.
pub struct SessionIdentity {
    pub certificate: String,
    pub key: String,
}

impl SessionAuthority {
    pub fn new() -> anyhow::Result<SessionAuthority> {
        let mut parameters = CertificateParams::default();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        let issuer = CertifiedIssuer::self_signed(parameters, KeyPair::generate()?);
        Ok(SessionAuthority(issuer.context("no authority can be made")?))
    }

    /// The authority's own certificate in PEM.
    pub fn certificate(&self) -> String {
        self.0.pem()
    }

    /// An identity for a host by its name or IP address.
    pub fn sign(&self, host: &str) -> anyhow::Result<SessionIdentity> {
        let key = KeyPair::generate()?;
        let parameters = CertificateParams::new([host.to_owned()])
            .with_context(|| format!("{host}: no certificate can be made for it"))?;
        let signed = parameters.signed_by(&key, &self.0)?;
        Ok(SessionIdentity { certificate: signed.pem(), key: key.serialize_pem() })
    }
}

/// The coordinator's credentials as files in memory, which end with the process.
pub struct MemoryFiles {
    ca: File,
    certificate: File,
    key: File,
}

impl MemoryFiles {
    pub fn of(authority: &SessionAuthority) -> anyhow::Result<MemoryFiles> {
        let own = authority.sign("coordinator")?;
        Ok(MemoryFiles {
            ca: memory_file(&authority.certificate())?,
            certificate: memory_file(&own.certificate)?,
            key: memory_file(&own.key)?,
        })
    }

    /// Paths that this process can read while `self` lives.
    pub fn paths(&self) -> TlsFiles {
        let path = |file: &File| Some(PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd())));
        TlsFiles { ca: path(&self.ca), cert: path(&self.certificate), key: path(&self.key) }
    }
}

fn memory_file(text: &str) -> anyhow::Result<File> {
    let made = memfd_create("kvmeter-credentials", MemfdFlags::CLOEXEC)
        .and_then(|memory| fchmod(&memory, Mode::RUSR | Mode::WUSR).map(|()| memory))
        .context("no file in memory for the credentials")?;
    let mut file = File::from(made);
    file.write_all(text.as_bytes())?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use agents::Credentials;

    #[test]
    fn files_in_memory_are_credentials() {
        let authority = SessionAuthority::new().expect("an authority");
        let files = MemoryFiles::of(&authority).expect("files");
        let credentials = Credentials::load(&files.paths(), None).expect("credentials");
        assert_eq!(credentials.kind(), "mutual TLS");
        let path = files.paths().key.expect("a key");
        drop(files);
        assert!(std::fs::read(path).is_err(), "they end with their owner");
    }
}
