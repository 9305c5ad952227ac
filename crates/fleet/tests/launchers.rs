//! Every launcher against the same expectations; `ssh` against a real `sshd` of the test's own, on
//! loopback, `slurm` and `kubernetes` against clusters of the test's own. Says so where there is none.
#![allow(clippy::unwrap_used)]

#[cfg(feature = "kubernetes")]
#[path = "shared/kubernetes.rs"]
#[allow(dead_code)]
mod kubernetes;
#[path = "../../model/tests/shared/ports.rs"]
mod ports;
#[path = "../../kvmeter/tests/shared/slice.rs"]
#[allow(dead_code)]
mod slice;
#[path = "shared/slurm.rs"]
#[allow(dead_code)]
mod slurm;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use fleet::{
    EarlierAttempt, FleetError, FleetTarget, HostFolder, Hosted, HostedEnd, HostedLine, LinesEnded,
};
use tempfile::TempDir;

use ports::free_ports;
use slurm::SlurmCluster;

const SSHD: &str = "/usr/sbin/sshd";
const LIMIT: Duration = Duration::from_secs(20);

#[test]
fn this_machine_conforms() {
    let place = TempDir::new().unwrap();
    let mut target = FleetTarget::parse("local").unwrap();
    target.folder = Some(place.path().join("base").display().to_string());
    conforms(&target);
}

#[test]
fn ssh_conforms() {
    let Some((_server, place)) = Sshd::start() else { return };
    conforms(&FleetTarget::parse(place.path().join("fleet.toml").to_str().unwrap()).unwrap());
}

#[test]
fn a_host_that_refuses_is_named_with_its_reason() {
    let Some((server, place)) = Sshd::start() else { return };
    let target = FleetTarget::parse(place.path().join("fleet.toml").to_str().unwrap()).unwrap();
    drop(server);
    let error = HostFolder::create(&target.launcher, "m1", None, "ab12-m1").unwrap_err();
    let words = error.to_string();
    assert!(words.starts_with("m1: not reached: ") && words.contains("refused"), "{words}");
}

#[test]
fn slurm_conforms() {
    let Some(cluster) = SlurmCluster::start() else { return };
    let place = TempDir::new().unwrap();
    let mut target = slurm_target(&cluster, "partition=arm,nodes=2");
    target.folder = Some(place.path().join("base").display().to_string());
    let shown = acquire(&mut target).unwrap();
    assert!(shown.last().unwrap().ends_with("has node1, node2"), "{shown:?}");
    conforms(&target);
    target.launcher.release_all().unwrap();
    cluster.until("an empty queue", |cluster| cluster.jobs().is_empty());
    let lost = HostFolder::create(&target.launcher, "node1", None, "ab12").unwrap_err();
    assert!(lost.to_string().contains("node1: not reached: its job 1 has ended"), "{lost}");
}

#[test]
fn slurm_names_what_it_does_not_give_and_keeps_no_job() {
    let Some(mut cluster) = SlurmCluster::start() else { return };
    let why = |list: &str| acquire(&mut slurm_target(&cluster, list)).unwrap_err();
    for (list, words) in [
        ("partition=nope", "the cluster has no partition `nope`; it has arm, broken, urgent"),
        ("partition=arm,nodes=3", "nodes: 3 are more than the 2 of partition `arm`"),
        ("nodes=9", "can never start: PartitionConfig"),
        ("constraint=gpu", "Slurm gives no nodes: Job submit/allocate failed: Invalid feature"),
        ("partition=broken,queue=2s", "no nodes within 2s: job"),
        ("job=999", "job 999 is unknown to Slurm"),
    ] {
        let error = why(list);
        assert!(error.is_request() && error.to_string().contains(words), "{list}: {error}");
        assert_eq!(cluster.jobs(), "", "{list}");
    }
    // Its state is shown while it waits, and the user may end that.
    let stop = AtomicBool::new(false);
    let mut shown = String::new();
    let mut target = slurm_target(&cluster, "partition=broken");
    let (jobs, done) = (BTreeMap::new(), BTreeSet::new());
    let stopped =
        target.acquire(EarlierAttempt { jobs: &jobs, done: &done }, &stop, &mut |words| {
            shown.push_str(words);
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
        });
    assert!(matches!(stopped, Err(FleetError::Stopped)));
    assert!(shown.contains("PENDING (PartitionDown)"), "{shown}");
    assert_eq!(cluster.jobs(), "");
    if !slice::is_whole() {
        return;
    }
    cluster.kill("slurmctld");
    let error = acquire(&mut slurm_target(&cluster, "nodes=1")).unwrap_err();
    assert!(error.is_request() && error.to_string().contains("Unable to contact"), "{error}");
}

#[cfg(feature = "kubernetes")]
#[test]
fn pods_conform() {
    let Some(cluster) = kubernetes::KubernetesCluster::start() else { return };
    fleet::start_pod_shells_by(env!("CARGO_BIN_EXE_fleet-pod-shell").into());
    let list = format!(
        "kubernetes:nodes=2,image=here,cpus=1,memory=1Gi,node-selector=pool=arm,kubeconfig={}",
        cluster.kubeconfig("admin").display()
    );
    let mut target = FleetTarget::parse(&list).unwrap();
    let shown = acquire(&mut target).unwrap();
    let last = shown.last().unwrap();
    assert!(last.contains("node1") && last.contains("node2"), "{shown:?}");
    assert_eq!(target.launcher.address("node1").unwrap(), "127.0.0.1");
    conforms(&target);
    target.launcher.release_all().unwrap();
    assert_eq!(cluster.objects(), "");
    let lost = HostFolder::create(&target.launcher, "node1", None, "ab12").unwrap_err();
    assert!(lost.to_string().starts_with("node1: not reached: "), "{lost}");
}

#[cfg(feature = "kubernetes")]
#[test]
fn an_api_server_that_ends_loses_its_hosts_and_the_job_that_is_left_is_named() {
    let Some(mut cluster) = kubernetes::KubernetesCluster::start() else { return };
    fleet::start_pod_shells_by(env!("CARGO_BIN_EXE_fleet-pod-shell").into());
    let list = format!(
        "kubernetes:image=here,cpus=1,memory=1Gi,node-selector=disk=node1,kubeconfig={}",
        cluster.kubeconfig("admin").display()
    );
    let mut target = FleetTarget::parse(&list).unwrap();
    acquire(&mut target).unwrap();
    let base = target.folder.as_deref();
    let folder = HostFolder::create(&target.launcher, "node1", base, "ab12").unwrap();
    let mut hosted =
        Hosted::start(&folder, "echo begun; exec cat", Duration::from_secs(60)).unwrap();
    let begin = Instant::now();
    while hosted.line(Duration::from_secs(1)).unwrap().is_none() {
        assert!(begin.elapsed() < LIMIT, "it never began");
    }
    cluster.kill("kube-apiserver");
    while hosted.line(Duration::from_secs(1)).is_ok() {
        assert!(begin.elapsed() < 2 * LIMIT, "it is not lost");
    }
    assert_eq!(hosted.wait(LIMIT).unwrap(), HostedEnd::Lost);
    let why = target.launcher.why_lost("node1").unwrap();
    assert!(why.contains("is not reached"), "{why}");
    let left = target.launcher.release_all().unwrap_err().to_string();
    assert!(left.contains("is not reached") && left.contains("`kubectl delete job "), "{left}");
    cluster.serve_api();
    cluster.until("no Job and no pod", |cluster| cluster.objects().is_empty());
}

/// No cluster is needed to refuse what names none, and one that is not there is named.
#[cfg(feature = "kubernetes")]
#[test]
fn a_kubeconfig_that_cannot_be_used_is_refused_with_the_way_out() {
    let place = TempDir::new().unwrap();
    let file = place.path().join("config").display().to_string();
    let why = |config: &str| {
        std::fs::write(&file, config).unwrap();
        let list = format!("kubernetes:image=a,cpus=1,memory=1Gi,kubeconfig={file}");
        let error = acquire(&mut FleetTarget::parse(&list).unwrap()).unwrap_err();
        assert!(error.is_request(), "{error}");
        error.to_string()
    };
    let of = |more: &str| {
        format!(
            "{{\"apiVersion\":\"v1\",\"kind\":\"Config\",\"current-context\":\"c\",\"contexts\":[{{\"name\":\
             \"c\",\"context\":{{\"cluster\":\"c\",\"user\":\"u\"{more}}}}}],\"clusters\":[{{\"name\":\"c\",\
             \"cluster\":{{\"server\":\"http://127.0.0.1:1\"}}}}],\"users\":[{{\"name\":\"u\",\"user\":{{}}}}]}}"
        )
    };
    let configured = format!("kubernetes: no cluster is configured: {file}: ");
    let configured = configured.as_str();
    for (config, words) in [
        ("\u{1}\u{2}", configured),
        ("[hosts.m1]\n", configured),
        ("[]", configured),
        ("", configured),
        ("apiVersion: v1\nkind: Config\n", configured),
        (&of(""), "http://127.0.0.1:1/ is not reached"),
        (&of(",\"namespace\":\"../../nodes\""), "namespace: `../../nodes` is no name"),
    ] {
        let error = why(config);
        assert!(error.contains(words) && error.lines().count() == 1, "{config}: {error}");
    }
    let gone = format!("kubernetes:image=a,cpus=1,memory=1Gi,kubeconfig={file}.none");
    let error = acquire(&mut FleetTarget::parse(&gone).unwrap()).unwrap_err().to_string();
    assert!(
        error.contains("no cluster is configured: ") && error.contains("config.none: "),
        "{error}"
    );
}

fn slurm_target(cluster: &SlurmCluster, list: &str) -> FleetTarget {
    FleetTarget::parse(&format!("slurm:{list},conf={}", cluster.conf().display())).unwrap()
}

/// Returns what it shows.
fn acquire(target: &mut FleetTarget) -> Result<Vec<String>, FleetError> {
    let (jobs, done, mut shown) = (BTreeMap::new(), BTreeSet::new(), Vec::new());
    let earlier = EarlierAttempt { jobs: &jobs, done: &done };
    target.acquire(earlier, &AtomicBool::new(false), &mut |words| shown.push(words.to_owned()))?;
    Ok(shown)
}

/// What a study needs of a host.
fn conforms(target: &FleetTarget) {
    let host = target.hosts[0].name.as_str();
    let base = target.folder.as_deref();
    let create = || HostFolder::create(&target.launcher, host, base, "ab12-m1").unwrap();
    let folder = create();
    assert!(folder.is_new && !create().is_new);
    assert!(["x86_64", "aarch64"].contains(&&*folder.architecture));
    // Every byte arrives, there and back.
    let bytes: Vec<u8> = (0..300_000_u32).flat_map(|number| number.to_le_bytes()).collect();
    folder.put("it's data", &bytes, false).unwrap();
    let here = TempDir::new().unwrap();
    let copy = here.path().join("copy");
    assert!(folder.get("it's data", &copy).unwrap());
    assert!(std::fs::read(&copy).unwrap() == bytes);
    assert!(!folder.get("nothing", &copy).unwrap());
    // It is the owner's alone, and found again.
    assert_eq!(folder.first_line("stat -c %a .").unwrap().as_deref(), Some("700"));
    assert_eq!(create().first_line("ls").unwrap().as_deref(), Some("it's data"));
    assert_eq!(folder.first_line("exit 3").unwrap(), None);
    let (offset, bound) = folder.clock_offset().unwrap();
    assert!(offset.abs() <= bound + 0.1, "{offset} {bound}");
    // Both streams come, and the exit code.
    let lines = run(&folder, "echo out; echo err >&2; exit 7", |_| {});
    assert!(lines.0.contains(&HostedLine::Stdout("out".to_owned())), "{lines:?}");
    assert!(lines.0.contains(&HostedLine::Stderr("err".to_owned())), "{lines:?}");
    assert_eq!(lines.1, HostedEnd::Code(7));
    // Renewals arrive, and the end of the lease does.
    let begin = Instant::now();
    let mut seen = 0;
    let lines = run(&folder, "while read -r line; do echo renewed; done; echo ended", |hosted| {
        seen += 1;
        if seen == 20 {
            hosted.stop();
        }
    });
    assert!(lines.0.len() >= 2, "{lines:?}");
    assert_eq!(lines.0.last(), Some(&HostedLine::Stdout("ended".to_owned())));
    assert!(begin.elapsed() < LIMIT);
    // A process here that ends without a word ends the lease too.
    let script = "echo $$; exec cat";
    let mut hosted = Hosted::start(&folder, script, Duration::from_secs(60)).unwrap();
    let id = loop {
        match hosted.line(Duration::from_secs(1)).unwrap() {
            Some(HostedLine::Stdout(id)) => break id.parse::<u32>().unwrap(),
            _ => assert!(begin.elapsed() < LIMIT, "it never began"),
        }
    };
    let alive = || folder.first_line(&format!("kill -0 {id} && echo alive")).unwrap().is_some();
    assert!(alive());
    drop(hosted);
    while alive() {
        assert!(begin.elapsed() < 2 * LIMIT, "the command outlives its coordinator");
    }
    folder.remove().unwrap();
    assert_eq!(create().first_line("ls -A").unwrap(), None);
    folder.remove().unwrap();
    let _ = target.launcher.release(host);
}

fn run(
    folder: &HostFolder,
    script: &str,
    mut each: impl FnMut(&mut Hosted),
) -> (Vec<HostedLine>, HostedEnd) {
    let mut hosted = Hosted::start(folder, script, Duration::from_millis(400)).unwrap();
    let (mut lines, begin) = (Vec::new(), Instant::now());
    loop {
        assert!(begin.elapsed() < LIMIT, "{script}: no end");
        match hosted.line(Duration::from_millis(50)) {
            Ok(line) => lines.extend(line),
            Err(LinesEnded) => break,
        }
        each(&mut hosted);
    }
    (lines, hosted.wait(LIMIT).unwrap())
}

/// A server of the test's own, with keys of its own.
struct Sshd(Child);

impl Sshd {
    fn start() -> Option<(Arc<Sshd>, TempDir)> {
        if !Path::new(SSHD).exists() || Command::new("ssh").arg("-V").output().is_err() {
            eprintln!("SKIPPED: {SSHD} is not installed");
            return None;
        }
        // Where it separates its privileges, if it has them.
        let _ = std::fs::create_dir("/run/sshd");
        let place = TempDir::new().unwrap();
        let file = |name: &str| place.path().join(name).display().to_string();
        for name in ["host", "user"] {
            let made = Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-f", &file(name)])
                .status();
            assert!(made.unwrap().success());
        }
        let port = free_ports(1)[0];
        let server = format!(
            "ListenAddress 127.0.0.1:{port}\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\n\
             StrictModes no\nUsePAM no\nPasswordAuthentication no\nSetEnv XDG_CACHE_HOME={}\n",
            file("host"),
            file("user.pub"),
            file("cache"),
        );
        let client = format!(
            "Host *\nPort {port}\nIdentityFile {}\nIdentitiesOnly yes\nStrictHostKeyChecking no\n\
             UserKnownHostsFile /dev/null\nLogLevel ERROR\n",
            file("user"),
        );
        std::fs::write(file("sshd_config"), server).unwrap();
        std::fs::write(file("ssh_config"), client).unwrap();
        let fleet =
            format!("ssh_config = {:?}\n[hosts.m1]\naddress = \"127.0.0.1\"\n", file("ssh_config"));
        std::fs::write(file("fleet.toml"), fleet).unwrap();
        let child = Command::new(SSHD)
            .args(["-D", "-f", &file("sshd_config"), "-E", &file("log")])
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let begin = Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            let log = std::fs::read_to_string(file("log")).unwrap_or_default();
            assert!(begin.elapsed() < LIMIT, "no sshd: {log}");
            std::thread::sleep(Duration::from_millis(20));
        }
        Some((Arc::new(Sshd(child)), place))
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
