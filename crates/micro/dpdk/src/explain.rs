//! Explains DPDK's log messages.

/// Parts of messages, and their explanation.
const MEANINGS: &[(&[&str], &str)] = &[
    (
        &[
            "Cannot get hugepage information",
            "No free hugepages",
            "No free 2048 kB",
            "No available",
        ],
        "there are no huge pages; reserve some (echo 1024 > \
         /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages), or, for virtual devices, give \
         --eal '--no-huge -m 512 ...'",
    ),
    (
        &["Permission denied", "Operation not permitted", "EACCES", "EPERM"],
        "the process lacks the permission; run it as root, or grant it the device, the huge pages \
         and (for raw sockets) CAP_NET_RAW",
    ),
    (
        &[
            "unrecognized option",
            "invalid option",
            "requires an argument",
            "is not compatible with",
            "Invalid 'command line'",
            "invalid parameters",
            "Usage: ",
        ],
        "an argument in --eal is not one of DPDK's, or conflicts with another; `--eal --help` \
         lists them",
    ),
    (
        &["Cannot create lock", "Is another primary process running"],
        "another DPDK process uses the same files; end it, or give both a --file-prefix of their \
         own in --eal",
    ),
    (
        &[
            "failed to parse device",
            "no driver found for",
            "Cannot find a driver",
            "Driver cannot attach",
            "failed to initialize",
            "failed to create",
            "Bus (vdev) probe failed",
            "vdev_probe",
            "cannot probe device",
            "ioctl failed (SIOCGIFINDEX)",
        ],
        "a device in --eal could not be made; check its driver, and its settings after the name",
    ),
    (
        &["cannot reserve memory", "Cannot init memory", "not enough memory", "Not enough memory"],
        "there is too little memory; lower -m in --eal, or reserve more huge pages",
    ),
];

/// Lines of the log that are shown with the explanation.
const SHOWN: usize = 6;

/// Explains an environment that did not start or that ended its process, and quotes the last lines
/// of its log.
pub fn explain(log: &str) -> String {
    let meaning = MEANINGS
        .iter()
        .find(|(words, _)| words.iter().any(|word| log.contains(word)))
        .map(|(_, meaning)| *meaning);
    let lines: Vec<&str> = log.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = lines[lines.len().saturating_sub(SHOWN)..].join("\n  ");
    match (meaning, last.is_empty()) {
        (Some(meaning), _) => format!("{meaning}. DPDK says:\n  {last}"),
        (None, false) => format!("DPDK says:\n  {last}"),
        (None, true) => "DPDK gives no reason".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn explains_messages_of_dpdk() {
        for (log, meaning) in [
            ("EAL: Cannot get hugepage information.\n", "there are no huge pages"),
            ("EAL: Detected CPU lcores: 2\nkvmeter: unrecognized option '--nohuge'\n", "--eal"),
            ("EAL: Cannot create lock on '/var/run/dpdk/rte/config'.", "--file-prefix"),
            ("vdev_probe(): failed to initialize net_nosuch0 device\n", "could not be made"),
            ("EAL: failed to open VFIO container: Permission denied", "permission"),
        ] {
            let text = explain(log);
            assert!(text.contains(meaning) && text.contains(log.lines().last().unwrap()), "{text}");
        }
        assert_eq!(explain("\n"), "DPDK gives no reason");
    }
}
