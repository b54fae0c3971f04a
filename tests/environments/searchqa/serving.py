"""Servers in processes of their own, and small passages to serve."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROWS = [
    {"id": "a", "contents": '"Mira Kestrel"\nMira Kestrel was a painter, born in Torvale.'},
    {"id": "b", "contents": '"Torvale"\nTorvale lies on the river Esk.'},
    {"id": "c", "contents": '"Odo Harn"\nOdo Harn painted boats in Torvale with Mira Kestrel.'},
    {"id": "d", "contents": '"The Silent Harbour"\nThe Silent Harbour is a novel by Odo Harn.'},
]


def write_passages(folder: Path) -> Path:
    path = folder / "corpus.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    return path


@contextmanager
def running(*command: str) -> Iterator[str]:
    """The address that a server's process prints first; the process is stopped at the end."""
    process = subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout and process.stderr
    try:
        line = process.stdout.readline()
        match = re.search(r"http://[\d.]+:\d+", line)
        assert match, line + process.stderr.read()
        yield match[0]
    finally:
        process.kill()
        process.communicate()


def serving(path: Path) -> tuple[str, ...]:
    return ("-m", "seed_opd.cli", "serve-retriever", "--passages", str(path), "--port", "0")


def misbehaving(mode: str) -> tuple[str, ...]:
    return (str(Path(__file__).with_name("bad_server.py")), mode)
