//! Connects a script in a pod to this process, for a coordinator on this machine.

use clap::Args;
use fleet::{POD_NOT_REACHED, PodShell};

use crate::exit::ExitOutcome;
use crate::flags::machine::this_program;
use crate::output::write_stderr;

#[derive(Debug, Args)]
pub struct PodShellArgs {
    /// The pod's namespace
    #[arg(long, value_name = "NAME")]
    pub namespace: String,
    /// A context of the configuration
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
    /// The configuration, instead of KUBECONFIG and ~/.kube/config
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<String>,
    /// The pod
    pub pod: String,
    /// What `sh` runs in it
    pub script: String,
}

pub fn run(args: &PodShellArgs) -> anyhow::Result<ExitOutcome> {
    let shell = PodShell {
        program: this_program()?,
        namespace: args.namespace.clone(),
        context: args.context.clone(),
        kubeconfig: args.kubeconfig.clone(),
    };
    match fleet::run_pod_shell(&shell, &args.pod, &args.script) {
        Ok(code) => Ok(ExitOutcome::Code(code)),
        Err(error) => {
            write_stderr(&error.to_string());
            Ok(ExitOutcome::Code(POD_NOT_REACHED))
        }
    }
}
