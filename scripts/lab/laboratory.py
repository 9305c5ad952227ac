"""A case at work: its initramfs, its disks, its boots, its checks."""

import shutil
import time
from pathlib import Path

from archive import Archive
from case import Case
from guest import MACHINES, Guest, kvm_works
from packages import Packages, cache
from programs import program

HERE = Path(__file__).resolve().parent
TRIPLETS = {"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}
BASE_MODULES = ["virtio_pci", "virtio_console", "virtio_blk", "virtio_net"]


class Laboratory:
    """Prepares a case, boots its guests and collects what they say."""

    def __init__(self, name: str, case: Case, broken: bool = False):
        self.name, self.case = name, case
        self.place = cache() / "work" / name
        shutil.rmtree(self.place, ignore_errors=True)
        self.place.mkdir(parents=True)
        self.log = (self.place / "log").open("w")
        self.checks: list[tuple[bool, str]] = []
        self.figures: list[str] = []
        self.notes: list[str] = []
        self.guest: Guest | None = None
        self.boots, self.accelerator = 0, "tcg"
        # A variable for the script: break what the case checks, so that it must fail.
        self.broken = "lab_broken=1" if broken else ""
        self.deadline = time.monotonic() + case.limit_s

    def prepare(self) -> None:
        case = self.case
        packages = Packages(case.arch, case.suite)
        self.kernel = packages.kernel(case.kernel)
        tools = Packages(case.arch)
        roots = [tools.tree(["busybox-static", "libc6", "libgcc-s1", "bash", "jq", *case.packages])]
        archive = Archive(TRIPLETS[case.arch])
        archive.file("init", (HERE / "guest/init").read_bytes())
        archive.file("lab/lib.sh", (HERE / "guest/lib.sh").read_bytes())
        archive.file("lab/case.sh", case.script.encode())
        archive.file("etc/passwd", b"root:x:0:0::/root:/bin/sh\nlab:x:1000:1000::/tmp:/bin/sh\n", 0o644)
        archive.file("etc/group", b"root:x:0:\nlab:x:1000:\n", 0o644)
        archive.file("bin/busybox", (roots[0] / "bin/busybox").read_bytes())
        # A program that was built here wants this machine's C library, which is the newer one.
        own = [Path("/"), *roots] if case.arch == "amd64" else roots
        for name in case.binaries:
            archive.program(f"lab/bin/{name}", program(name, case.arch), own)
        for name in ["bin/bash", "usr/bin/jq", *case.programs]:
            # busybox has some of the names, and `/lab/bin` comes last.
            archive.program(f"usr/sbin/{Path(name).name}", archive.find(name, roots), roots)
        for name, path in case.files.items():
            archive.file(name, (HERE.parents[1] / path).read_bytes())
        archive.modules(self.kernel, [*BASE_MODULES, *case.modules])
        self.initramfs, self.archive = self.place / "initramfs", archive
        archive.write(self.initramfs)
        for number, size in enumerate(case.disks):
            self.blank(number, size)
        if kvm_works(case.arch, self.kernel.image, cache() / "kvm"):
            self.accelerator = "kvm"

    def extra(self, name: str, content: bytes) -> None:
        """Another file in the next guests."""
        self.archive.file(name, content)
        self.archive.write(self.initramfs)

    def disk(self, number: int) -> Path:
        return self.place / f"disk{number}"

    def blank(self, number: int, size: int) -> None:
        self.disk(number).unlink(missing_ok=True)
        with self.disk(number).open("wb") as file:
            file.truncate(size << 20)

    def boot(self, words: str = "", machine: tuple = ()) -> Guest:
        """Starts a guest. `words` are variables of its script: `lab_round=3`."""
        case = self.case
        qemu, arguments, console = MACHINES[case.arch]
        accelerator = case.accelerator or ("kvm" if self.accelerator == "kvm" else "tcg,thread=multi")
        command = [qemu, *arguments, "-accel", accelerator, "-cpu", "host" if accelerator == "kvm" else case.cpu]
        command += ["-smp", case.smp, "-m", case.memory, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]
        command += ["-kernel", str(self.kernel.image), "-initrd", str(self.initramfs)]
        command += ["-append", f"{console} quiet panic=-1 {case.kernel_words} {self.broken} {words}"]
        command += ["-serial", f"file:{self.place}/console{self.boots}"]
        command += ["-device", "virtio-serial-pci", "-chardev", "stdio,id=lab,signal=off", "-device", "virtconsole,chardev=lab"]
        for number in range(len(case.disks)):
            command += ["-drive", f"file={self.disk(number)},if=none,id=disk{number},format=raw,cache=writeback"]
            command += ["-device", f"virtio-blk-pci,drive=disk{number},serial=disk{number}"]
        command += [word.replace("{dir}", str(self.place)) for word in [*case.machine, *machine]]
        self.boots += 1
        self.stop()
        self.log.write(f"$ {' '.join(command)}\n")
        self.log.flush()
        self.guest = Guest(command, self.place, self.log)
        return self.guest

    def stop(self) -> None:
        """No guest outlives its case."""
        if self.guest:
            self.guest.kill()

    def listen(self, guest: Guest, until: str | None = None, host: dict | None = None, seen: dict | None = None) -> None:
        """Collects a guest's lines to its end, or to a line that begins with `until`."""
        ended = False
        while True:
            try:
                line = guest.line(self.deadline)
            except TimeoutError:
                guest.kill()
                raise Broken(f"the case's limit of {self.case.limit_s} s has passed") from None
            if line is None:
                if guest.process.wait() != 0:
                    raise Broken(f"QEMU ended with {guest.process.returncode}: {self.tail()}")
                if until or not ended:
                    raise Broken(f"the guest ended before its script: {self.tail()}")
                return
            ended |= self.take(guest, line, host or {}, {} if seen is None else seen)
            if until and line.startswith(until):
                return

    def listen_until(self, guest: Guest, moment: float, seen: dict, done) -> None:
        """Collects lines up to a moment, to the guest's end, or until `done`."""
        while time.monotonic() < min(moment, self.deadline) and not done():
            try:
                line = guest.line(min(moment, time.monotonic() + 0.2))
            except TimeoutError:
                continue
            if line is None:
                return
            self.take(guest, line, {}, seen)

    def take(self, guest: Guest, line: str, host: dict, seen: dict) -> bool:
        """One line of a guest; whether it is the script's end. Other words than these are counted in
        `seen`, or have their number there."""
        kind, _, rest = line.partition(" ")
        if kind == "check":
            self.check(rest.startswith("ok "), rest.partition(" ")[2])
        elif kind == "figure":
            self.figures.append(rest)
        elif kind == "note":
            self.notes.append(rest)
        elif kind == "host":
            word, _, rest = rest.partition(" ")
            guest.answer(str(host[word](guest, rest)))
        elif kind == "end" and rest != "0":
            raise Broken(f"the guest's script ended with {rest}")
        else:
            seen[kind] = int(rest) if rest.isdigit() else seen.get(kind, 0) + 1
        return kind == "end"

    def check(self, passed: bool, name: str) -> None:
        self.checks.append((passed, name))

    def tail(self) -> str:
        """The end of the kernel's console, which often says why."""
        console = self.place / f"console{self.boots - 1}"
        lines = console.read_text(errors="replace").splitlines() if console.exists() else []
        return " / ".join(line.strip() for line in lines[-6:])

    def run(self) -> None:
        self.prepare()
        # Downloads are not the case's time.
        self.deadline = time.monotonic() + self.case.limit_s
        if self.case.play:
            self.case.play(self)
        else:
            self.listen(self.boot())
        if not self.checks:
            raise Broken("nothing was checked")


class Broken(Exception):
    """The case did not come to its end, as a sentence."""
