#!/usr/bin/env python3
"""docs/dev/check_environment.py finds what it is there to find."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "docs/dev/check_environment.py"
SOURCES = {
    "a.cpp": 'static const char *name = "IN_A_CONSTANT";\nauto x = sys::Process::GetEnv(name);\nauto y = getenv("IN_C");\n',
    "a.py": 'import os\nx = os.environ["IN_PYTHON"], os.environ.get("OR_NOT"), "AT_ALL" in os.environ\nos.environ[x] = "1"\n',
    "a.sh": "#!/bin/sh\nTEGULA_OWN=1\necho $TEGULA_OWN ${TEGULA_SHELL:-none} $other\n",
    "a.toml": 'X = {env = "IN_TOML"}\n',
}
NAMES = ["IN_A_CONSTANT", "IN_C", "IN_PYTHON", "OR_NOT", "AT_ALL", "TEGULA_SHELL", "IN_TOML"]


class Variables(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for name, text in SOURCES.items():
            self.write(name, text)
        self.write("test/b.py", 'import os\nos.environ["TEGULA_TEST"], os.environ["HOME"]\n')
        self.write("docs/testing.md", "`TEGULA_TEST` is read.\n")
        self.list(NAMES)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def list(self, names):
        self.write("docs/environment.md", "| variable | meaning |\n|---|---|\n" + "".join(f"| `{one}` | |\n" for one in names))

    def told(self):
        subprocess.run(["git", "init", "-q"], cwd=self.root, check=True)
        subprocess.run(["git", "add", "-A"], cwd=self.root, check=True)
        done = subprocess.run([sys.executable, SCRIPT, f"--root={self.root}"], capture_output=True, text=True)
        self.assertEqual(done.stderr, "")
        self.assertEqual(done.returncode, 0 if "variables" in done.stdout else 1)
        return done.stdout

    def test_all_are_listed(self):
        self.assertEqual(self.told(), "7 variables, 1 of tests\n")

    def test_each_that_is_not(self):
        for name in NAMES:
            self.list([one for one in NAMES if one != name])
            self.assertRegex(self.told(), rf"^a\.\w+ reads {name}, which docs/environment.md does not list\n$")

    def test_one_that_nothing_reads(self):
        self.list([*NAMES, "FORMER"])
        self.assertEqual(self.told(), "docs/environment.md lists FORMER, which nothing reads\n")

    def test_name_that_is_not_known(self):
        self.write("c.cpp", "const char *f(const char *which) { return getenv(which); }\n")
        self.assertIn("c.cpp reads which (no literal)", self.told())

    def test_variable_of_a_test(self):
        self.write("docs/testing.md", "")
        self.assertIn("test/b.py reads TEGULA_TEST, which neither", self.told())


if __name__ == "__main__":
    unittest.main()
