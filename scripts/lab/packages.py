"""Debian packages of any release and architecture, unpacked into a cache and never installed.

apt runs with a state of its own: the host's list of packages, its architectures and its database
are not touched. The mirrors are those that the host's apt has.
"""

import hashlib
import os
import re
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path


class Missing(Exception):
    """What this machine lacks for the laboratory, as a sentence."""


def cache() -> Path:
    """Outside of the checkout, so that it outlives it."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("KVMETER_LAB_CACHE") or Path(home) / "kvmeter-lab")


def run(command: list, **options) -> str:
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode != 0:
        raise Missing(f"`{' '.join(map(str, command[:1] + command[-2:]))}` failed: {done.stderr.strip()[-400:]}")
    return done.stdout


def release() -> str:
    """The code name of the host's release."""
    system = dict(re.findall(r'^(\w+)="?([^"\n]*)', Path("/etc/os-release").read_text(), re.M))
    if system.get("ID") != "debian":
        raise Missing("the guests are made of Debian's packages, and this is not Debian")
    return system["VERSION_CODENAME"]


@dataclass(frozen=True)
class Mirror:
    uri: str
    suite: str
    keys: str


def mirrors() -> list[Mirror]:
    """Where the host's apt finds Debian's own packages of its release, updates and backports apart."""
    name, found = release(), []
    for path in [Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt/sources.list.d").glob("*"))]:
        text = path.read_text() if path.is_file() else ""
        if path.suffix == ".sources":
            for part in re.split(r"\n\s*\n", text):
                fields = dict(re.findall(r"^([\w-]+):[ \t]*(.*)$", part, re.M))
                for suite in fields.get("Suites", "").split():
                    found += [Mirror(uri, suite, fields.get("Signed-By", "")) for uri in fields.get("URIs", "").split()]
        else:
            for options, uri, suite in re.findall(r"^deb\s+(\[[^]]*\])?\s*(\S+)\s+(\S+)", text, re.M):
                keys = re.search(r"signed-by=(\S+?)[\s\]]", options)
                found.append(Mirror(uri, suite, keys[1] if keys else ""))
    found = [mirror for mirror in found if mirror.suite in (name, f"{name}-security")]
    if not found:
        raise Missing(f"apt has no mirror of {name}")
    return found


class Packages:
    """One release for one architecture. `suite` is `""` for the host's own, or as `bookworm-backports`."""

    def __init__(self, arch: str, suite: str = ""):
        self.arch, self.suite = arch, suite or release()
        self.place = cache() / f"{self.suite}-{arch}"

    def sources(self) -> str:
        """apt's list of sources: the same mirrors, for this release and what it is built on."""
        base = self.suite.removesuffix("-backports")
        lines = []
        for mirror in mirrors():
            suites = [mirror.suite.replace(release(), base)]
            if self.suite != base and not mirror.suite.endswith("-security"):
                suites.append(self.suite)
            keys = f" signed-by={mirror.keys}" if mirror.keys else ""
            lines += [f"deb [arch={self.arch}{keys}] {mirror.uri} {suite} main" for suite in suites]
        return "\n".join(lines) + "\n"

    def apt(self, *words: str) -> str:
        options = {
            "Dir::Etc::SourceList": self.place / "sources.list",
            "Dir::Etc::SourceParts": "/dev/null",
            "Dir::State": self.place / "state",
            "Dir::State::status": self.place / "status",
            "Dir::Cache": self.place / "cache",
            "APT::Architecture": self.arch,
            "APT::Architectures": self.arch,
            "APT::Install-Recommends": "false",
            # Backports come after the release unless they are named; security updates do not.
            **({"APT::Default-Release": self.suite} if self.suite.endswith("-backports") else {}),
            "APT::Sandbox::User": "root",
            "Acquire::Languages": "none",
            "Debug::NoLocking": "true",
        }
        flags = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
        return run(["nice", "-n", "15", *flags_first(words, flags)])

    def refresh(self) -> None:
        """Reads the mirrors' lists, once a day."""
        for folder in ("state/lists/partial", "cache"):
            (self.place / folder).mkdir(parents=True, exist_ok=True)
        (self.place / "status").touch()
        sources, mark = self.place / "sources.list", self.place / "refreshed"
        fresh = mark.exists() and mark.stat().st_mtime > time.time() - 86400
        if fresh and sources.exists() and sources.read_text() == self.sources():
            return
        sources.write_text(self.sources())
        self.apt("apt-get", "update", "-qq")
        mark.touch()

    def tree(self, names: list[str]) -> Path:
        """A folder with these packages and all that they depend on, unpacked."""
        key = hashlib.sha256(" ".join(sorted(names)).encode()).hexdigest()[:12]
        tree, done = self.place / "trees" / key, self.place / "trees" / f"{key}.done"
        if done.exists():
            return tree
        self.refresh()
        archives = self.place / "trees" / f"{key}.archives"
        (archives / "partial").mkdir(parents=True, exist_ok=True)
        tree.mkdir(parents=True, exist_ok=True)
        self.apt("apt-get", "-o", f"Dir::Cache::Archives={archives}/", "install", "-qq", "--yes", "--download-only", *names)
        for file in archives.glob("*.deb"):
            run(["dpkg-deb", "-x", file, tree])
        shutil.rmtree(archives)
        done.write_text(" ".join(sorted(names)) + "\n")
        return tree

    def kernel(self, package: str = "") -> "Kernel":
        """The newest kernel of the release: the signed one, which its metapackage names."""
        self_made = package or f"linux-image-{self.arch}"
        key = self.place / "kernels" / self_made
        if not (key / "done").exists():
            self.refresh()
            newest = self_made
            if not package:
                depends = self.apt("apt-cache", "depends", f"{self_made}")
                newest = re.search(r"Depends: (linux-image-\S+)", depends)[1]
            # Without its dependencies, which make an initramfs of the host's own.
            key.mkdir(parents=True, exist_ok=True)
            self.download(newest, key)
            (key / "done").touch()
        return Kernel.of(key)

    def download(self, package: str, place: Path) -> None:
        words = ["apt-get", "download", "-qq", package]
        before = os.getcwd()
        os.chdir(place)
        try:
            self.apt(*words)
            for file in place.glob("*.deb"):
                run(["dpkg-deb", "-x", file, place])
                file.unlink()
        finally:
            os.chdir(before)


def flags_first(words: tuple, flags: list) -> list:
    return [words[0], *flags, *words[1:]]


@dataclass(frozen=True)
class Kernel:
    image: Path
    modules: Path
    release: str

    @staticmethod
    def of(tree: Path) -> "Kernel":
        image = next((tree / "boot").glob("vmlinuz-*"))
        name = image.name.removeprefix("vmlinuz-")
        modules = next(path for path in (tree / "lib/modules" / name, tree / "usr/lib/modules" / name) if path.is_dir())
        return Kernel(image, modules, name)
