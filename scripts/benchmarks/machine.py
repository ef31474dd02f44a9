"""The machine that the figures were measured on."""

import os
import platform
from pathlib import Path
from typing import NamedTuple


class Machine(NamedTuple):
    """The CPU."""

    model: str
    cores: int
    threads: int
    flags: frozenset[str]
    """its features, by their names in Linux; none on other systems"""

    @property
    def has_avx512(self) -> bool:
        """Whether the CPU has vectors of 512 bits."""
        return "avx512f" in self.flags

    @property
    def has_vnni(self) -> bool:
        """Whether the CPU has instructions for int8 products."""
        return not self.flags.isdisjoint({"avx512_vnni", "avx_vnni"})

    def __str__(self) -> str:
        yes_or_no = {True: "yes", False: "no"}
        return (
            f"{self.model}; cores: {self.cores}, threads: {self.threads}; "
            f"AVX-512: {yes_or_no[self.has_avx512]}, VNNI: {yes_or_no[self.has_vnni]}"
        )


def machine(cpuinfo: Path = Path("/proc/cpuinfo")) -> Machine:
    """Return the CPU of this machine, as described in a file of Linux."""
    # A paragraph a thread.
    paragraphs = cpuinfo.read_text().strip().split("\n\n") if cpuinfo.exists() else []
    threads = [
        {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in paragraph.splitlines())}
        for paragraph in paragraphs
    ]
    known = threads[0] if threads else {}
    # Where the file does not say which core a thread is of, each counts as one.
    cores = {(thread.get("physical id"), thread.get("core id", i)) for i, thread in enumerate(threads)}
    count = os.cpu_count() or 1
    return Machine(
        model=known.get("model name") or platform.processor() or platform.machine(),
        cores=len(cores) or count,
        threads=len(threads) or count,
        flags=frozenset(known.get("flags", "").split()),
    )
