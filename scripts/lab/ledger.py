"""What a guest's store acknowledged, reported to the host before the guest goes on."""

from dataclasses import dataclass, field


@dataclass
class Ledger:
    acknowledged: int = 0
    synced: int = 0
    # Acknowledged, and not found after a loss of power.
    gone: int = 0
    errors: list[str] = field(default_factory=list)
    losses: list[str] = field(default_factory=list)

    def read(self, text: str) -> None:
        """Lines of `spill/tests/sim/power_loss.rs`. The last one may be cut off."""
        for line in text.splitlines(keepends=True):
            word, _, rest = line.partition(" ")
            if not line.endswith("\n"):
                continue
            if word == "acknowledged":
                self.acknowledged = int(rest)
            elif word == "synced":
                self.synced = max(int(rest), 0)
            elif word == "found":
                self.gone += max(0, self.acknowledged - int(rest))
                self.acknowledged = int(rest)
            elif word == "error:":
                self.errors.append(rest.strip())
            elif word == "lost:":
                self.losses.append(rest.strip())

    def words(self, mode: int) -> str:
        """What must and may be there after this, for the next guest."""
        floor = self.acknowledged if mode == 2 else self.synced
        return f"lab_floor={floor} lab_started={self.acknowledged + 1}"
