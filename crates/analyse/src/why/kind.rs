//! What a stack does, by its frames inside the kernel.

use std::fmt;

/// What a stack does.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Place {
    /// The program's own code and libraries.
    Program,
    /// A system call, by its name: `sendmsg`.
    SystemCall(String),
    PageFault,
    Interrupt,
    /// A thread of the kernel, or a stack whose beginning is not known.
    Kernel,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Program => f.write_str("own code"),
            Place::SystemCall(name) => f.write_str(name),
            Place::PageFault => f.write_str("page faults"),
            Place::Interrupt => f.write_str("interrupts"),
            Place::Kernel => f.write_str("other kernel work"),
        }
    }
}

/// Functions that dispatch system calls, `arch/x86/entry/common.c`, `arch/arm64/kernel/syscall.c`.
const DISPATCH: [&str; 6] = [
    "do_syscall_64",
    "x64_sys_call",
    "do_el0_svc",
    "el0_svc_common",
    "invoke_syscall",
    "el0_svc_common.constprop.0",
];
/// What the kernel puts before the name of a system call; compilers leave out the outer function
/// where it only calls another.
const PREFIXES: [&str; 7] =
    ["__x64_sys_", "__arm64_sys_", "__se_sys_", "__do_sys_", "__sys_", "ksys_", "do_sys_"];
const OF_KERNEL: &str = "_[k]";

/// What a stack does, whose outermost frame is the first.
pub fn place(frames: &[String]) -> Place {
    let Some(first) = frames.iter().position(|frame| frame.ends_with(OF_KERNEL)) else {
        return Place::Program;
    };
    let in_kernel: Vec<&str> =
        frames[first..].iter().map(|frame| frame.trim_end_matches(OF_KERNEL)).collect();
    let dispatch = in_kernel.iter().rposition(|frame| DISPATCH.contains(frame));
    let call = dispatch.and_then(|at| in_kernel.get(at + 1));
    if let Some(name) = call.filter(|name| !name.contains("exit_to_user_mode")) {
        let call = PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix));
        return Place::SystemCall(call.unwrap_or(name).to_owned());
    }
    let begins = |words: &[&str]| in_kernel.iter().any(|f| words.iter().any(|w| f.starts_with(w)));
    if begins(&["asm_exc_page_fault", "exc_page_fault", "do_page_fault", "do_translation_fault"]) {
        Place::PageFault
    } else if begins(&[
        "asm_sysvec_",
        "asm_common_interrupt",
        "el0_interrupt",
        "el0_irq",
        "el1_irq",
    ]) {
        Place::Interrupt
    } else {
        Place::Kernel
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_is_of_its_system_call_fault_or_interrupt() {
        for (frames, expected) in [
            ("main;read", Place::Program),
            (
                "main;send;entry_[k];do_syscall_64_[k];__x64_sys_sendmsg_[k];tcp_sendmsg_[k]",
                Place::SystemCall("sendmsg".to_owned()),
            ),
            ("main;do_syscall_64_[k];ksys_read_[k]", Place::SystemCall("read".to_owned())),
            (
                "main;el0_svc_[k];do_el0_svc_[k];invoke_syscall_[k];__arm64_sys_futex_[k]",
                Place::SystemCall("futex".to_owned()),
            ),
            ("main;do_syscall_64_[k];exit_to_user_mode_loop_[k];task_work_run_[k]", Place::Kernel),
            ("main;asm_exc_page_fault_[k];exc_page_fault_[k]", Place::PageFault),
            ("main;asm_sysvec_apic_timer_interrupt_[k];x_[k]", Place::Interrupt),
            ("ret_from_fork_[k];kthread_[k]", Place::Kernel),
        ] {
            let frames: Vec<String> = frames.split(';').map(str::to_owned).collect();
            assert_eq!(place(&frames), expected, "{frames:?}");
        }
    }
}
