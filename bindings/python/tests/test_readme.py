"""What the README shows runs."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import ROOT, Server

README = (ROOT / "bindings/python/README.md").read_text()
SNIPPETS = re.findall(r"^```python\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


def test_there_are_snippets() -> None:
    assert len(SNIPPETS) >= 5


@pytest.mark.parametrize("snippet", SNIPPETS, ids=range(len(SNIPPETS)))
def test_a_snippet_runs(snippet: str, server: Server, tmp_path: Path) -> None:
    program = snippet.replace("grpc://127.0.0.1:7380", server.address)
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ran.returncode == 0, ran.stderr
