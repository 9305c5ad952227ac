use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::process::{Command, Stdio};

use super::*;

const OTHER_UID: u32 = 12_345;
const OWN: LockOptions = LockOptions {
    scope: LockScope::OneUser,
    timeout: Duration::from_secs(5),
    leaves_nothing: false,
};
const COMMON: LockOptions = LockOptions { scope: LockScope::AllUsers, ..OWN };

/// A world-writable folder, as `/run/lock`.
fn shared_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o1777)).unwrap();
    folder
}

fn words(path: &Path, options: &LockOptions) -> String {
    Lock::take(path, options).expect_err("a refusal").to_string()
}

/// Gives a file to another user; only root can.
fn given_away(path: &Path) -> bool {
    let given = own_uid() == 0 && chown(path, Some(OTHER_UID), None).is_ok();
    if !given {
        eprintln!("skipped: only root can give a file to another user");
    }
    given
}

#[test]
fn refusal_names_holder_user_and_start() {
    let folder = shared_folder();
    let path = folder.path().join("lock");
    for options in [OWN, COMMON] {
        let first = Lock::take(&path, &options).unwrap();
        let refused = words(&path, &options);
        let (pid, user) = (std::process::id(), user_name(own_uid()));
        assert!(refused.contains(&format!("process {pid} (")), "{refused}");
        assert!(refused.contains(&format!(") of {user}, which runs since 20")), "{refused}");
        drop(first);
        drop(Lock::take(&path, &options).unwrap());
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.starts_with(&format!("process {pid} of {user} since 20")), "{text}");
    }
}

#[test]
fn holder_comes_from_the_kernel() {
    let folder = shared_folder();
    let path = folder.path().join("lock");
    fs::write(&path, "process 1 of user nobody\x1b[2J since ever").unwrap();
    let other_lock = File::open(&path).unwrap();
    other_lock.try_lock().unwrap();
    let refused = words(&path, &COMMON);
    assert!(refused.contains(&format!("process {} (", std::process::id())), "{refused}");
}

#[test]
fn takes_over_a_killed_holders_file() {
    let folder = shared_folder();
    let path = folder.path().join("lock");
    fs::write(&path, "process 4194304000 of user nobody since yesterday, at half past nine")
        .unwrap();
    drop(Lock::take(&path, &OWN).unwrap());
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.starts_with(&format!("process {} of ", std::process::id())), "{text}");
    assert!(text.ends_with('\n') && !text.contains("yesterday"), "{text}");
}

/// A process that has the lock of a file from one that has ended, for a while or until it is killed.
fn lock_in_child(path: &Path, seconds: &str) -> std::process::Child {
    let script = format!("exec 9<>\"$0\" && flock -x 9 && echo there && exec sleep {seconds}");
    let mut child =
        Command::new("sh").args(["-c", &script]).arg(path).stdout(Stdio::piped()).spawn().unwrap();
    let mut message = [0; 6];
    std::io::Read::read_exact(&mut child.stdout.take().unwrap(), &mut message).unwrap();
    child
}

#[test]
fn waits_for_a_lock_inherited_from_a_dead_process() {
    let folder = shared_folder();
    let path = folder.path().join("lock");
    fs::write(&path, "process 4194304000").unwrap();
    let mut child = lock_in_child(&path, "0.3");
    drop(Lock::take(&path, &OWN).unwrap());
    child.wait().unwrap();
    // A child that keeps the lock is named after the timeout.
    let mut child = lock_in_child(&path, "60");
    let soon = LockOptions { timeout: Duration::from_millis(50), ..COMMON };
    let refused = words(&path, &soon);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(refused.contains(&format!("process {} (sleep)", child.id())), "{refused}");
}

#[test]
fn refuses_links_and_hard_links() {
    let folder = shared_folder();
    let victim = folder.path().join("victim");
    fs::write(&victim, "precious").unwrap();
    fs::set_permissions(&victim, fs::Permissions::from_mode(0o600)).unwrap();
    let path = folder.path().join("lock");
    for options in [OWN, COMMON] {
        symlink(&victim, &path).unwrap();
        assert!(words(&path, &options).contains("is a symbolic link of user "));
        fs::remove_file(&path).unwrap();
        symlink(folder.path().join("not there yet"), &path).unwrap();
        assert!(words(&path, &options).contains("is a symbolic link of user "));
        assert!(!folder.path().join("not there yet").exists());
        fs::remove_file(&path).unwrap();
        fs::hard_link(&victim, &path).unwrap();
        assert!(words(&path, &options).contains("is a second name (hard link)"));
        fs::remove_file(&path).unwrap();
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(words(&path, &options).contains("is not a regular file"));
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(words(&path, &options).contains("is not a regular file"));
        fs::remove_dir(&path).unwrap();
    }
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    assert_eq!(fs::metadata(&victim).unwrap().mode() & 0o777, 0o600);
}

#[test]
fn another_users_file_is_never_written() {
    let folder = shared_folder();
    let path = folder.path().join("lock");
    fs::write(&path, "another user's").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
    assert!(words(&path, &OWN).contains("can be written by every user"));
    if !given_away(&path) {
        return;
    }
    let refused = words(&path, &OWN);
    assert!(refused.contains(&format!("belongs to user {OTHER_UID}")), "{refused}");
    // All users share this one: the first has created it.
    drop(Lock::take(&path, &COMMON).unwrap());
    assert_eq!(fs::read_to_string(&path).unwrap(), "another user's");
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o666, "its mode is its owner's");
    // In the other user's own folder the file is trusted.
    chown(folder.path(), Some(OTHER_UID), None).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    drop(Lock::take(&path, &OWN).unwrap());
}

#[test]
fn removes_the_file_when_requested() {
    let folder = shared_folder();
    let options = LockOptions { leaves_nothing: true, ..OWN };
    drop(Lock::take(&folder.path().join("lock"), &options).unwrap());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn reports_a_lock_held_by_another_user() {
    let folder = shared_folder();
    let path = folder.path().join("lock");
    fs::write(&path, "").unwrap();
    if !given_away(&path) {
        return;
    }
    let mut child = lock_in_child(&path, "60");
    let error = Lock::take(&path, &OWN).expect_err("a refusal");
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(matches!(&error, LockError::Held { .. }), "{error}");
    assert!(error.to_string().contains(&child.id().to_string()), "{error}");
    assert!(words(&path, &OWN).contains(&format!("belongs to user {OTHER_UID}")));
}

/// Runs the test of this name as another user, who may read but not write the file.
#[test]
fn reader_without_write_permission_learns_the_holder() {
    const AS_HIM: &str = "SAFE_FILE_TEST_LOCK";
    if let Some(path) = std::env::var_os(AS_HIM) {
        let path = Path::new(&path);
        nix::unistd::setuid(nix::unistd::Uid::from_raw(OTHER_UID)).unwrap();
        println!("<{}>", words(path, &OWN));
        return;
    }
    let folder = shared_folder();
    let path = folder.path().join("lock");
    fs::write(&path, "").unwrap();
    if !given_away(&path) {
        return;
    }
    chown(&path, Some(0), None).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    let as_him = || {
        let name = "lock::tests::reader_without_write_permission_learns_the_holder";
        let mut program = Command::new("/proc/self/exe");
        program.args(["--exact", name, "--nocapture"]).env(AS_HIM, &path);
        String::from_utf8(program.output().unwrap().stdout).unwrap()
    };
    let lock = Lock::take(&path, &OWN).unwrap();
    let message = as_him();
    assert!(
        message.contains(&format!("is locked by process {} (", std::process::id())),
        "{message}"
    );
    drop(lock);
    let message = as_him();
    let me = format!("lock belongs to {} and may not be written by", user_name(0));
    assert!(message.contains(&me), "{message}");
}
