"""bench/eval_load.py in short: real workers, kills, and clients that mean it harm."""
import os
import subprocess
import sys

import pytest
from conftest import TREE

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")
from tegula_eval.program import runner  # noqa: E402

try:
    runner.library_path()
except FileNotFoundError as missing:
    pytest.skip(str(missing), allow_module_level=True)


def test_all_are_answered_once(tmp_path):
    done = subprocess.run([sys.executable, str(TREE / "bench" / "eval_load.py"), f"--out={tmp_path / 'queue'}", "--count=24", "--tasks=4",
                           "--clients=6", "--jobs=1", "--kill-workers=14"], capture_output=True, text=True, env=os.environ, timeout=900)
    assert done.returncode == 0 and "all is as it should be" in done.stdout, done.stdout + done.stderr
    assert "Traceback" not in done.stderr, done.stderr
