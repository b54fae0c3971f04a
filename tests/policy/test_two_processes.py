"""The engines in pieces once more, on two processes, against the same conformance suite."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_two_processes_do_what_one_does():
    suite = Path(__file__).parent / "test_torch_engine.py"
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "-m"]
    pytest = ["pytest", "-x", "-p", "no:cacheprovider", str(suite), "-k", "InPieces"]
    done = subprocess.run([*launcher, *pytest], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(" passed") == 2
