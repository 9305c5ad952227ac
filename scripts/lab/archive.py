"""The initramfs of a guest: a cpio archive of programs with their libraries, modules and files."""

import lzma
import re
import stat
import subprocess
from pathlib import Path

from elf import needed
from packages import Kernel, Missing

LIBRARY_FOLDERS = ("lib", "usr/lib", "lib64", "usr/lib64", "usr/lib/systemd")


class Archive:
    """Paths in the guest, with what lies there."""

    def __init__(self, triplet: str):
        self.entries: dict[str, tuple[int, bytes]] = {}
        self.folders = [f"{folder}/{triplet}" for folder in LIBRARY_FOLDERS[:2]] + list(LIBRARY_FOLDERS)
        for folder in ("proc", "sys", "dev", "tmp", "run", "etc", "lib64", "root", "disk", "var/lib"):
            self.folder(folder)

    def folder(self, name: str) -> None:
        parts = name.split("/")
        for end in range(1, len(parts) + 1):
            self.entries.setdefault("/".join(parts[:end]), (stat.S_IFDIR | 0o755, b""))

    def file(self, name: str, content: bytes, mode: int = 0o755) -> None:
        if "/" in name:
            self.folder(name.rsplit("/", 1)[0])
        self.entries[name] = (stat.S_IFREG | mode, content)

    def program(self, name: str, path: Path, roots: list[Path]) -> None:
        """A program and its libraries, which are looked for in the roots in this order."""
        self.file(name, path.read_bytes())
        todo = [path]
        while todo:
            loader, libraries = needed(todo.pop())
            if loader and loader.lstrip("/") not in self.entries:
                self.file(loader.lstrip("/"), self.find(loader.lstrip("/"), roots).read_bytes())
            for library in libraries:
                if f"lib/{library}" not in self.entries:
                    found = self.find(library, roots)
                    self.file(f"lib/{library}", found.read_bytes())
                    todo.append(found)

    def find(self, name: str, roots: list[Path]) -> Path:
        for root in roots:
            for folder in ("", *self.folders):
                path = root / folder / name
                if path.is_file():
                    return path
        raise FileNotFoundError(f"{name} is in none of {', '.join(map(str, roots))}")

    def modules(self, kernel: Kernel, names: list[str]) -> None:
        """Modules with what they depend on, and `order` with their names in loading order."""
        files = {plain(path.name): path for path in kernel.modules.rglob("*.ko*")}
        built_in = {plain(line) for line in (kernel.modules / "modules.builtin").read_text().split()}
        order: list[str] = []

        def load(name: str) -> None:
            if name in built_in or name in order:
                return
            if name not in files:
                raise Missing(f"the kernel {kernel.release} has no module {name}")
            content = unpacked(files[name])
            for other in depends(content):
                load(other)
            self.file(f"lib/modules/{name}.ko", content, 0o644)
            order.append(name)

        for name in names:
            load(plain(name))
        self.file("lib/modules/order", "".join(f"{name}\n" for name in order).encode(), 0o644)

    def write(self, path: Path) -> None:
        """Not compressed, since a guest that is emulated takes long to unpack."""
        with path.open("wb") as out:
            for number, (name, (mode, content)) in enumerate([*self.entries.items(), ("TRAILER!!!", (0, b""))], 1):
                fields = (number, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name) + 1, 0)
                head = b"070701" + "".join(f"{field:08x}" for field in fields).encode() + name.encode() + b"\0"
                out.write(head + bytes(-len(head) % 4) + content + bytes(-len(content) % 4))


def plain(path: str) -> str:
    """A module's name: its file's without folder and ending, as the kernel writes it."""
    return re.sub(r"\.ko(\.\w+)?:?$", "", path.rsplit("/", 1)[-1]).replace("-", "_")


def depends(module: bytes) -> list[str]:
    """The modules that one needs, from its own notes: an unpacked package has no index of them."""
    noted = re.search(rb"\0depends=([^\0]*)\0", module)
    return [plain(name) for name in noted[1].decode().split(",") if name] if noted else []


def unpacked(path: Path) -> bytes:
    content = path.read_bytes()
    if path.suffix == ".xz":
        return lzma.decompress(content)
    if path.suffix == ".zst":
        return subprocess.run(["zstd", "-dc", path], check=True, capture_output=True).stdout
    return content
