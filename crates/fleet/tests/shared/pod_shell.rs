//! The verb `pod-shell` alone, for tests of the launcher without the command kvmeter.

use std::process::ExitCode;

use fleet::PodShell;

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let mut shell = PodShell {
        program: "/proc/self/exe".into(),
        namespace: String::new(),
        context: None,
        kubeconfig: None,
    };
    for word in words.by_ref() {
        match word.split_once('=') {
            Some(("--namespace", value)) => value.clone_into(&mut shell.namespace),
            Some(("--kubeconfig", value)) => shell.kubeconfig = Some(value.to_owned()),
            _ if word == "--" => break,
            _ => {}
        }
    }
    let (Some(pod), Some(script)) = (words.next(), words.next()) else {
        return ExitCode::from(2);
    };
    match fleet::run_pod_shell(&shell, &pod, &script) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(fleet::POD_NOT_REACHED)
        }
    }
}
