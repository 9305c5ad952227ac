"""What a case of the laboratory is: a machine, what lies in its initramfs, and what is checked."""

from dataclasses import dataclass, field
from typing import Callable


@dataclass
class Case:
    summary: str
    # Runs in the guest, after `guest/lib.sh`; with `play` as often as that boots it.
    script: str
    limit_s: int = 600
    # Packages beside the base, and which of their programs: `sbin/mkfs.xfs`.
    packages: list[str] = field(default_factory=list)
    programs: list[str] = field(default_factory=list)
    modules: list[str] = field(default_factory=list)
    # kvmeter and test programs, by the names of their cargo targets.
    binaries: list[str] = field(default_factory=lambda: ["kvmeter"])
    # Other files: path in the guest to path below the checkout.
    files: dict[str, str] = field(default_factory=dict)
    # Arguments of QEMU. `{dir}` is the case's own folder.
    machine: list[str] = field(default_factory=list)
    smp: str = "2"
    memory: str = "1G"
    cpu: str = "max"
    # Sizes in MiB of virtio disks, which are /dev/vda and so on.
    disks: list[int] = field(default_factory=list)
    # Words for the kernel's command line.
    kernel_words: str = ""
    # Other than KVM where it works, else TCG with a thread for each CPU.
    accelerator: str = ""
    arch: str = "amd64"
    suite: str = ""
    kernel: str = ""
    # Host's part: gets a `laboratory.Laboratory`; without one the guest is booted once.
    play: Callable | None = None
    # The names of other machines on which the same is done: overrides of the fields above.
    variants: dict[str, dict] = field(default_factory=dict)
