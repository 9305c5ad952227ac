//! Real servers behind TLS, with certificates that the tests make.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, date_time_ymd,
};
use store::StoreError;
use tempfile::TempDir;

use crate::support::*;

/// A signer of certificates; everything lies in one folder.
struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: TempDir,
}

impl Authority {
    fn new() -> Authority {
        let mut params = CertificateParams::new([]).unwrap();
        params.distinguished_name.push(DnType::CommonName, "an authority of the tests");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let folder = TempDir::new().unwrap();
        fs::write(folder.path().join("ca.pem"), issuer.pem()).unwrap();
        Authority { issuer, folder }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    fn issue(&self, file: &str, names: &[&str], change: impl FnOnce(&mut CertificateParams)) {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let cert = params.signed_by(&key, &self.issuer).unwrap();
        fs::write(self.path(&format!("{file}.pem")), cert.pem()).unwrap();
        fs::write(self.path(&format!("{file}.key")), key.serialize_pem()).unwrap();
        fs::set_permissions(self.path(&format!("{file}.key")), fs::Permissions::from_mode(0o600))
            .unwrap();
    }

    fn redis(&self, cert: &str, clients: &str) -> Option<Real> {
        let (pem, key) = (self.path(&format!("{cert}.pem")), self.path(&format!("{cert}.key")));
        let ca = self.path("ca.pem");
        let files = ["--tls-cert-file", &pem, "--tls-key-file", &key, "--tls-ca-cert-file", &ca];
        let args = [&["--tls-port", "--tls-auth-clients", clients][..], &files].concat();
        Real::redis(&args)
    }
}

fn works(url: &str) {
    with_each_engine(|engine| {
        let network = network(url);
        let workload = workload("ycsb-a", 200);
        load(&network, &workload);
        let mut plan = mix(2, 2, 8);
        plan.connections.engine = Some(engine);
        plan.shape.until = operations(2000);
        let outcome = run_phase(&network, &workload, &plan).unwrap();
        assert_eq!(outcome.failures, [], "{url} with {engine}");
        assert!(outcome.verified > 0);
    });
}

fn refused(url: &str, words: &[&str]) {
    let error = connect(url).unwrap_err();
    assert!(matches!(error, StoreError::Request(_)), "{error:?}");
    for word in words {
        assert!(error.to_string().contains(word), "{url}: no `{word}` in {error}");
    }
}

#[test]
fn redis_over_tls_checks_certificates() {
    let authority = Authority::new();
    authority.issue("good", &["localhost", "127.0.0.1"], |_| {});
    authority.issue("other-name", &["elsewhere.example"], |_| {});
    authority.issue("expired", &["localhost", "127.0.0.1"], |params| {
        params.not_before = date_time_ymd(2001, 1, 1);
        params.not_after = date_time_ymd(2002, 1, 1);
    });
    let ca = authority.path("ca.pem");
    let Some(good) = authority.redis("good", "no") else { return };
    let url = |server: &Real, more: &str| format!("redis://127.0.0.1:{}?tls=on{more}", server.port);
    works(&url(&good, &format!("&ca={ca}")));
    works(&url(&good, "&any_certificate=on"));
    refused(&url(&good, ""), &["127.0.0.1", "`ca`"]);
    let other_authority = Authority::new();
    refused(
        &url(&good, &format!("&ca={}", other_authority.path("ca.pem"))),
        &["unknown authority"],
    );
    let missing = Path::new(&ca).with_file_name("missing.pem");
    refused(&url(&good, &format!("&ca={}", missing.display())), &["missing.pem"]);

    let expired = authority.redis("expired", "no").unwrap();
    refused(&url(&expired, &format!("&ca={ca}")), &["expired"]);
    let other = authority.redis("other-name", "no").unwrap();
    refused(&url(&other, &format!("&ca={ca}")), &["elsewhere.example"]);
    works(&url(&other, &format!("&ca={ca}&server_name=elsewhere.example")));
}

#[test]
fn redis_gets_a_client_certificate() {
    let authority = Authority::new();
    authority.issue("good", &["localhost", "127.0.0.1"], |_| {});
    authority.issue("client", &["client"], |_| {});
    let Some(server) = authority.redis("good", "yes") else { return };
    let url = format!("redis://127.0.0.1:{}?tls=on&ca={}", server.port, authority.path("ca.pem"));
    let [cert, key] = ["client.pem", "client.key"].map(|name| authority.path(name));
    works(&format!("{url}&cert={cert}&key={key}"));
    let error = connect(&url).unwrap_err();
    assert!(error.to_string().contains("certificate"), "{error}");
}

#[test]
fn memcached_over_tls_works_on_every_protocol() {
    let authority = Authority::new();
    authority.issue("good", &["localhost", "127.0.0.1"], |_| {});
    let chain = format!("ssl_chain_cert={}", authority.path("good.pem"));
    let key = format!("ssl_key={}", authority.path("good.key"));
    let Some(server) = Real::memcached(&["-Z", "-o", &chain, "-o", &key]) else { return };
    let ca = authority.path("ca.pem");
    for protocol in ["meta", "text", "binary"] {
        let address = server.address();
        works(&format!("memcached://{address}?tls=on&ca={ca}&protocol={protocol}"));
    }
    let error = connect(&format!("memcached://{}?timeout=500ms", server.address())).unwrap_err();
    assert!(error.to_string().contains("tls=on"), "{error}");
}

#[test]
fn tls_to_a_plain_server_is_reported() {
    let Some(server) = Real::redis(&[]) else { return };
    let url = format!("redis://{}?tls=on&timeout=500ms", server.address());
    let error = connect(&url).unwrap_err();
    assert!(error.to_string().contains("TLS"), "{error}");
}
