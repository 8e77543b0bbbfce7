"""A process gives memory back that it has freed between blocks that it uses."""

import subprocess
import sys

from tests.conftest import ROOT

PROGRAM = """
import sys, time
from pathlib import Path
from common.server.freed_memory import give_back_freed_memory

def read_megabytes():
    return int(Path("/proc/self/status").read_text().partition("VmRSS:")[2].split()[0]) // 1024

if "give back" in sys.argv:
    give_back_freed_memory(every_seconds=0.1)
blocks = [bytes(1000) for _ in range(100_000)]
used = [block for number, block in enumerate(blocks) if number % 50 == 0]
before = read_megabytes()
blocks.clear()
time.sleep(1)
print(before - read_megabytes())
"""


def test_freed_memory_is_given_back() -> None:
    given_back = [
        int(subprocess.run([sys.executable, "-c", PROGRAM, *more], cwd=ROOT, capture_output=True, check=True).stdout)
        for more in ([], ["give back"])
    ]
    assert given_back[0] < 20, "glibc keeps it"
    assert given_back[1] > 60
