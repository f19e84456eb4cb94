#!/usr/bin/env python3
"""docs/dev/check_tidy.sh finds what it is there to find."""
import json
import pathlib
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "docs/dev/check_tidy.sh"


class Tidy(unittest.TestCase):
    def check(self, text):
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder) / "Source.cpp"
            source.write_text(text)
            command = {"directory": folder, "file": str(source), "command": f"clang++ -std=c++20 -c {source}"}
            (pathlib.Path(folder) / "compile_commands.json").write_text(json.dumps([command], indent=1))
            done = subprocess.run([SCRIPT, f"--build={folder}", source], capture_output=True, text=True)
            return done.returncode, done.stdout + done.stderr

    def test_a_source_that_is_clean(self):
        code, told = self.check("int main() { return 0; }\n")
        self.assertEqual((code, told.count("error:")), (0, 0), told)

    def test_names_and_copies(self):
        code, told = self.check("struct Big { Big(const Big &); int size; };\n"
                                "int sizeOf(Big Given) { return Given.size; }\n")
        self.assertNotEqual(code, 0)
        self.assertIn("readability-identifier-naming", told)
        self.assertIn("performance-unnecessary-value-param", told)

    def test_a_source_that_is_not_built(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "compile_commands.json").write_text("[]")
            done = subprocess.run([SCRIPT, f"--build={folder}", "driver/Passes.cpp"], capture_output=True, text=True)
        self.assertIn("driver/Passes.cpp: not part of", done.stderr)


if __name__ == "__main__":
    unittest.main()
