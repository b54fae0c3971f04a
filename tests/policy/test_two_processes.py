"""The engines in pieces once more, on two processes: against the same conformance suite, and with pictures."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    ("suite", "tests"), [("test_torch_engine.py", "InPieces"), ("test_pictures.py", "in_pieces and qwen3_vl")]
)
def test_two_processes_do_what_one_does(suite, tests):
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "-m"]
    command = ["pytest", "-x", "-p", "no:cacheprovider", str(Path(__file__).parent / suite), "-k", tests]
    done = subprocess.run([*launcher, *command], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(" passed") == 2
