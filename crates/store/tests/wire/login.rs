use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use store::wire::{Login, Secret, SecretError};

fn file(directory: &Path, content: &[u8], mode: u32) -> std::path::PathBuf {
    let path = directory.join(format!("{mode:o}-{}", content.len()));
    std::fs::write(&path, content).expect("written");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).expect("a mode");
    path
}

#[test]
fn a_password_is_never_shown() {
    let directory = tempfile::tempdir().expect("a directory");
    let secret = Secret::from_file(&file(directory.path(), b"hunter2\n", 0o600)).expect("read");
    let login = Login { password: Some(secret.clone()), ..Login::default() };
    for shown in [format!("{login:?}"), format!("{secret:?}"), secret.to_string()] {
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}

#[test]
fn refuses_invalid_passwords() {
    let directory = tempfile::tempdir().expect("a directory");
    let read = |content: &[u8], mode| Secret::from_file(&file(directory.path(), content, mode));
    let cases: [(&[u8], u32, &str); 6] = [
        (b"", 0o600, "is empty"),
        (b"\n", 0o600, "is empty"),
        (b"one\ntwo\n", 0o600, "line ends"),
        (b"a\0b", 0o600, "control characters"),
        (&[0xff, 0xfe, 0xfd, 0xfc, 0xfb], 0o600, "UTF-8"),
        (&[b'x'; 5000], 0o600, "longer"),
    ];
    for (content, mode, fault) in cases {
        let error = read(content, mode).expect_err(fault).to_string();
        assert!(error.contains(fault), "{error}");
    }
    assert!(read(b"windows\r\n", 0o640).is_ok());
    let exposed = read(b"secret!", 0o644).expect_err("everyone reads it");
    assert!(matches!(exposed, SecretError::Exposed { .. }));
    assert!(exposed.to_string().contains("chmod"), "{exposed}");
    let absent = Secret::from_file(&directory.path().join("absent")).expect_err("not there");
    assert!(matches!(absent, SecretError::Unreadable { .. }));
}

#[test]
fn reads_password_from_environment() {
    // Set by cargo for every test.
    assert!(Secret::from_env("CARGO_PKG_NAME").is_ok());
    let unset = Secret::from_env("KVMETER_TEST_NOT_SET").expect_err("unset");
    assert!(matches!(unset, SecretError::Unset { .. }));
    assert!(unset.to_string().contains("KVMETER_TEST_NOT_SET"), "{unset}");
}
