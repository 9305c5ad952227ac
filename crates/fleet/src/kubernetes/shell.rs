//! `kvmeter pod-shell`: a script in a pod, with its standard streams and exit code here.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::AttachParams;
use kube::{Api, Client};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};

use super::api::{causes, configuration};
use super::group::{ClusterPlace, check_name};
use crate::error::FleetError;

/// The exit code of `pod-shell` where the pod was not reached.
pub const POD_NOT_REACHED: u8 = 255;
/// The process that starts commands, which is this program.
const THIS: &str = "/proc/self/exe";
static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
/// What is in flight.
const BUFFER: usize = 1 << 20;
/// Time until a command is connected.
const LIMIT: Duration = Duration::from_secs(40);

/// Sets the program with the verb `pod-shell`, where it is not this one.
pub fn start_pod_shells_by(program: PathBuf) {
    let _ = PROGRAM.set(program);
}

/// Starts `pod-shell` for pods of one namespace.
#[derive(Debug, Clone)]
pub struct PodShell {
    /// A program with the verb `pod-shell`.
    pub program: PathBuf,
    pub namespace: String,
    pub context: Option<String>,
    pub kubeconfig: Option<String>,
}

impl PodShell {
    pub(super) fn new(place: &ClusterPlace, namespace: &str) -> PodShell {
        PodShell {
            program: PROGRAM.get().cloned().unwrap_or_else(|| THIS.into()),
            namespace: namespace.to_owned(),
            context: place.context.clone(),
            kubeconfig: place.kubeconfig.clone(),
        }
    }

    pub(super) fn command(&self, pod: &str, script: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("pod-shell").arg(format!("--namespace={}", self.namespace));
        if let Some(context) = &self.context {
            command.arg(format!("--context={context}"));
        }
        if let Some(file) = &self.kubeconfig {
            command.arg(format!("--kubeconfig={file}"));
        }
        command.args(["--", pod, script]);
        command
    }
}

/// Runs a script in a pod by `sh`, and returns its exit code.
///
/// # Errors
/// The pod is not reached, or its end was lost.
pub fn run_pod_shell(shell: &PodShell, pod: &str, script: &str) -> Result<u8, FleetError> {
    check_name("namespace", &shell.namespace)?;
    check_name("pod", pod)?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime =
        runtime.map_err(|error| FleetError::Here(format!("kubernetes: no runtime: {error}")))?;
    let code = runtime.block_on(connected(shell, pod, script));
    // A read of standard input that is in progress must not keep the process.
    runtime.shutdown_background();
    code.map_err(|why| FleetError::Unreachable { host: pod.to_owned(), why })
}

async fn connected(shell: &PodShell, pod: &str, script: &str) -> Result<u8, String> {
    let place = ClusterPlace {
        namespace: None,
        context: shell.context.clone(),
        kubeconfig: shell.kubeconfig.clone(),
    };
    let config = configuration(&place).await.map_err(|error| error.to_string())?;
    let client = Client::try_from(config).map_err(|error| causes(&error))?;
    let pods: Api<Pod> = Api::namespaced(client, &shell.namespace);
    let parameters = AttachParams {
        stdin: true,
        max_stdin_buf_size: Some(BUFFER),
        max_stdout_buf_size: Some(BUFFER),
        max_stderr_buf_size: Some(BUFFER),
        ..AttachParams::default()
    };
    let connecting = pods.exec(pod, ["sh", "-c", script], &parameters);
    let mut process = tokio::time::timeout(LIMIT, connecting)
        .await
        .map_err(|_| format!("no connection within {} s", LIMIT.as_secs()))?
        .map_err(|error| causes(&error))?;
    let (Some(stdin), Some(stdout), Some(stderr), Some(status)) =
        (process.stdin(), process.stdout(), process.stderr(), process.take_status())
    else {
        return Err("the command has no streams".to_owned());
    };
    tokio::spawn(pass(tokio::io::stdin(), stdin));
    let out = tokio::spawn(pass(stdout, tokio::io::stdout()));
    let err = tokio::spawn(pass(stderr, tokio::io::stderr()));
    // Of a connection that is lost, kube ends the status alone: the streams would stay open.
    let Some(status) = status.await else {
        return Err("the connection ended before the command".to_owned());
    };
    let _ = out.await;
    let _ = err.await;
    exit_code(&status)
}

/// Copies all of a stream, and ends the other one with it.
async fn pass(mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin) {
    let _ = tokio::io::copy(&mut from, &mut to).await;
    let _ = to.flush().await;
    let _ = to.shutdown().await;
}

/// The exit code of a command, of the status that the server sends at its end.
fn exit_code(
    status: &k8s_openapi::apimachinery::pkg::apis::meta::v1::Status,
) -> Result<u8, String> {
    if status.status.as_deref() == Some("Success") {
        return Ok(0);
    }
    let causes = status.details.iter().flat_map(|details| details.causes.iter().flatten());
    let code = causes
        .filter(|cause| cause.reason.as_deref() == Some("ExitCode"))
        .find_map(|cause| cause.message.as_deref()?.parse::<i32>().ok());
    match code {
        Some(code) => Ok(u8::try_from(code).unwrap_or(1)),
        None => Err(status.message.clone().unwrap_or_else(|| "the command failed".to_owned())),
    }
}
