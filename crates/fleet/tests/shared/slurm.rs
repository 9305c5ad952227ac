//! A Slurm cluster of the test's own on this machine: `munged`, `slurmctld` and three `slurmd`. Each
//! runs in a process namespace that ends with it, so that nothing is left. Says so where it cannot.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::ports::free_ports;

const LIMIT: Duration = Duration::from_secs(30);
const UNSHARE: [&str; 4] = ["--pid", "--fork", "--kill-child", "--mount-proc"];
const NODES: [&str; 3] = ["node1", "node2", "node3"];

pub struct SlurmCluster {
    /// By the name of a daemon or node.
    servers: BTreeMap<&'static str, Child>,
    place: TempDir,
}

impl SlurmCluster {
    pub fn start() -> Option<SlurmCluster> {
        if let Err(why) = available() {
            eprintln!("SKIPPED: {why}");
            return None;
        }
        let mut cluster = SlurmCluster { servers: BTreeMap::new(), place: TempDir::new().unwrap() };
        cluster.configure();
        let file = |name: &str| cluster.file(name).display().to_string();
        let munge = [
            "--foreground".to_owned(),
            "--force".to_owned(),
            "--num-threads=2".to_owned(),
            format!("--key-file={}", file("key")),
            format!("--socket={}", file("munge")),
            format!("--pid-file={}", file("munged.pid")),
            format!("--log-file={}", file("munged.log")),
            format!("--seed-file={}", file("munged.seed")),
        ];
        cluster.serve("munged", "munged", &munge);
        cluster.until("munged", |cluster| cluster.file("munge").exists());
        cluster.serve("slurmctld", "slurmctld", &["-D".to_owned(), "-c".to_owned()]);
        for node in NODES {
            cluster.serve(node, "slurmd", &["-D".to_owned(), "-N".to_owned(), node.to_owned()]);
        }
        cluster.until("three idle nodes", |cluster| {
            let nodes = ["--noheader", "--Node", "--partition=arm,broken", "--format=%T"];
            cluster.ask("sinfo", &nodes) == "idle\nidle\nidle"
        });
        Some(cluster)
    }

    fn configure(&self) {
        let file = |name: &str| self.file(name).display().to_string();
        std::fs::write(self.file("key"), [7; 1024]).unwrap();
        std::fs::set_permissions(self.file("key"), PermissionsExt::from_mode(0o600)).unwrap();
        std::fs::create_dir(self.file("jobs")).unwrap();
        // Each node has what would be its own on a machine of its own.
        let prolog = format!(
            "#!/bin/sh\necho export KVMETER_STATE_DIR={0}-$SLURMD_NODENAME\n\
             echo export XDG_CACHE_HOME={1}-$SLURMD_NODENAME\n",
            file("state"),
            file("cache"),
        );
        std::fs::write(self.file("prolog"), prolog).unwrap();
        std::fs::set_permissions(self.file("prolog"), PermissionsExt::from_mode(0o755)).unwrap();
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
        let host = host.trim().split('.').next().unwrap();
        let ports = free_ports(1 + NODES.len());
        let mut conf = format!(
            "ClusterName=test\nSlurmctldHost={host}(127.0.0.1)\nSlurmctldPort={}\n\
             SlurmUser=root\nSlurmdUser=root\nAuthType=auth/munge\nAuthInfo=socket={}\n\
             StateSaveLocation={}\nSlurmctldPidFile={}\nSlurmctldLogFile={}\n\
             SlurmdSpoolDir={}-%n\nSlurmdPidFile={}-%n.pid\nSlurmdLogFile={}-%n.log\n\
             TaskProlog={}\nTaskPlugin=task/affinity\nProctrackType=proctrack/linuxproc\n\
             SelectType=select/cons_tres\nSlurmdParameters=config_overrides\nMpiDefault=none\n\
             PreemptType=preempt/partition_prio\nPreemptMode=CANCEL\nKillWait=5\n\
             SlurmdTimeout=10\nReturnToService=2\n",
            ports[0],
            file("munge"),
            file("jobs"),
            file("slurmctld.pid"),
            file("slurmctld.log"),
            file("spool"),
            file("slurmd"),
            file("slurmd"),
            file("prolog"),
        );
        for (node, port) in NODES.iter().zip(&ports[1..]) {
            conf += &format!(
                "NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=1\n"
            );
        }
        conf += "PartitionName=arm Nodes=node1,node2 Default=YES PriorityTier=1\n\
                 PartitionName=urgent Nodes=node1,node2 PriorityTier=9\n\
                 PartitionName=broken Nodes=node3 State=DOWN\n";
        std::fs::write(self.conf(), conf).unwrap();
    }

    fn serve(&mut self, name: &'static str, program: &str, args: &[String]) {
        let log = std::fs::File::create(self.file(&format!("{name}.out"))).unwrap();
        let mut command = Command::new("unshare");
        command.args(UNSHARE).arg(program).args(args).env("SLURM_CONF", self.conf());
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{path}:/usr/sbin"));
        self.servers.insert(name, command.spawn().unwrap());
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    pub fn conf(&self) -> PathBuf {
        self.file("slurm.conf")
    }

    /// What a command of Slurm prints.
    pub fn ask(&self, program: &str, args: &[&str]) -> String {
        let done = Command::new(program)
            .args(args)
            .env("SLURM_CONF", self.conf())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        String::from_utf8_lossy(&done.stdout).trim().to_owned()
    }

    /// The jobs that wait or run: number and state of each.
    pub fn jobs(&self) -> String {
        self.ask("squeue", &["--noheader", "--format=%i %T"])
    }

    /// Ends all that runs on a node, or a daemon, as if its power were cut.
    pub fn kill(&mut self, name: &str) {
        let mut server = self.servers.remove(name).unwrap();
        server.kill().unwrap();
        server.wait().unwrap();
    }

    pub fn until(&self, what: &str, holds: impl Fn(&SlurmCluster) -> bool) {
        let begin = Instant::now();
        while !holds(self) {
            assert!(begin.elapsed() < LIMIT, "no {what}: {}", self.logs());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn logs(&self) -> String {
        let tail = |name: &str| {
            let text = std::fs::read_to_string(self.file(name)).unwrap_or_default();
            let lines: Vec<&str> = text.lines().rev().take(5).collect();
            format!("{name}: {}\n", lines.join("\n"))
        };
        ["munged.out", "slurmctld.out", "slurmctld.log", "node1.out", "slurmd-node1.log"]
            .map(tail)
            .concat()
    }
}

impl Drop for SlurmCluster {
    fn drop(&mut self) {
        for server in self.servers.values_mut() {
            let _ = server.kill();
        }
        for server in self.servers.values_mut() {
            let _ = server.wait();
        }
    }
}

fn available() -> Result<(), String> {
    for program in ["munged", "slurmctld", "slurmd"] {
        let path = format!("/usr/sbin/{program}");
        if !Path::new(&path).exists() {
            return Err(format!("{path} is not installed"));
        }
    }
    Command::new("srun").arg("--version").output().map_err(|error| format!("srun: {error}"))?;
    let unshared = Command::new("unshare").args(UNSHARE).arg("true").output();
    match unshared {
        Ok(done) if done.status.success() => Ok(()),
        Ok(done) => Err(String::from_utf8_lossy(&done.stderr).trim().to_owned()),
        Err(error) => Err(format!("unshare: {error}")),
    }
}
