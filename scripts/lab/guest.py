"""One boot of a guest: QEMU, its console, its lines, its end."""

import json
import os
import select
import signal
import socket
import subprocess
import time
from pathlib import Path

# The machine of each architecture: program, arguments, words for the kernel. On a busy host an
# emulated timer ticks too late for the kernel's check of it.
MACHINES = {
    "amd64": ("qemu-system-x86_64", ["-machine", "q35"], "console=ttyS0 no_timer_check"),
    "arm64": ("qemu-system-aarch64", ["-machine", "virt,gic-version=3"], "console=ttyAMA0"),
}


class Guest:
    """A running QEMU. Lines of the guest come by `line`."""

    def __init__(self, command: list[str], place: Path, log):
        self.qmp_path, self.log, self.text = place / "qmp", log, b""
        self.started = time.monotonic()
        self.qmp_path.unlink(missing_ok=True)
        command = [*command, "-qmp", f"unix:{self.qmp_path},server=on,wait=off"]
        self.process = subprocess.Popen(
            ["nice", "-n", "15", *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
            start_new_session=True,
        )

    def line(self, limit: float) -> str | None:
        """The next line, or `None` at the guest's end. Raises `TimeoutError` at the limit."""
        while b"\n" not in self.text:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0, limit - time.monotonic()))
            if not ready:
                raise TimeoutError
            got = os.read(self.process.stdout.fileno(), 65536)
            if not got:
                return None
            self.text += got
        line, self.text = self.text.split(b"\n", 1)
        text = line.decode(errors="replace").strip("\r\0")
        self.log.write(f"[{time.monotonic() - self.started:7.1f}] {text}\n")
        self.log.flush()
        return text

    def answer(self, text: str) -> None:
        self.process.stdin.write(text.encode() + b"\n")
        self.process.stdin.flush()

    def kill(self) -> None:
        """The loss of power: nothing that the guest holds in memory survives."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def qmp(self, command: str, **arguments) -> dict:
        with socket.socket(socket.AF_UNIX) as line:
            line.connect(str(self.qmp_path))
            stream = line.makefile("rw")
            stream.readline()
            for message in ({"execute": "qmp_capabilities"}, {"execute": command, "arguments": arguments}):
                stream.write(json.dumps(message) + "\n")
                stream.flush()
                # Events come in between.
                while "event" in (reply := json.loads(stream.readline())):
                    pass
            return reply


def kvm_works(arch: str, image: Path, mark: Path) -> bool:
    """Whether a guest really runs under KVM: the device may be there and do nothing."""
    if arch != {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine) or not os.access("/dev/kvm", os.W_OK):
        return False
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    if not mark.exists() or mark.read_text().split()[0] != boot:
        program, machine, console = MACHINES[arch]
        # Without a file system the kernel panics and the guest ends: that is all that is waited for.
        command = [program, *machine, "-accel", "kvm", "-cpu", "host", "-m", "512", "-nodefaults", "-display", "none"]
        command += ["-kernel", str(image), "-append", f"{console} panic=-1", "-no-reboot"]
        try:
            code = subprocess.run(command, timeout=20, capture_output=True).returncode
        except subprocess.TimeoutExpired:
            code = "timeout"
        mark.write_text(f"{boot} {'yes' if code == 0 else 'no'}\n")
    return mark.read_text().split()[1] == "yes"
