#!/usr/bin/env python3
"""docs/dev/check_house.py finds what it is there to find."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "docs/dev/check_house.py"


class House(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.write("docs/dev/retired.txt", "# old, new\nTileRest\tEpilogue\n")
        self.write("low/README.md", "# Low\n\nIncludes: no other folder.\n")
        self.write("low/Low.h", "")
        self.write("high/README.md", "# High\n\nIncludes: `low`.\n")
        self.write("high/High.cpp", '#include "low/Low.h"\n')

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def told(self):
        subprocess.run(["git", "init", "-q"], cwd=self.root, check=True)
        subprocess.run(["git", "add", "-A"], cwd=self.root, check=True)
        done = subprocess.run([sys.executable, SCRIPT, f"--root={self.root}"], capture_output=True, text=True)
        self.assertEqual(done.stderr, "")
        self.assertEqual(done.returncode, 0 if "keep the rules" in done.stdout else 1)
        return done.stdout

    def test_a_tree_that_keeps_them(self):
        self.assertIn("5 files keep the rules", self.told())

    def test_include_that_is_not_listed(self):
        self.write("low/Other.h", '#include "high/High.h"\n')
        self.write("high/High.h", "")
        told = self.told()
        self.assertIn("low/Other.h: includes a header of high, which low/README.md does not list", told)
        self.assertIn("folders include each other: high -> low -> high", told)

    def test_folder_that_is_listed_for_nothing(self):
        self.write("high/High.cpp", "")
        self.assertIn("high/README.md: lists low, of which no file includes a header", self.told())

    def test_folder_without_a_page(self):
        self.write("new/New.h", "")
        self.assertIn("new: no README.md", self.told())

    def test_folder_of_many_files(self):
        for number in range(50):
            self.write(f"low/Part{number}.cpp", "")
        self.assertIn("low: 52 files, more than 45", self.told())

    def test_retired_word(self):
        self.write("low/Low.h", "\n// The TileRest of it, not of MyTileRest.\n")
        self.assertEqual(self.told().count("TileRest"), 1)

    def test_long_function(self):
        body = "  work();\n"
        self.write("low/Low.cpp", "void Low::fits(int a,\n              int b) {\n" + body * 117 + "}\n\nvoid Low::grows() {\n" + body * 119 + "}\n")
        self.write("low/Inner.cpp", "namespace {\nstruct Pass {\n  int a;\n  void run() {\n" + "  " + ("  " + body) * 120 + "  }\n};\n} // namespace\n")
        told = self.told()
        self.assertIn("low/Low.cpp:122: Low::grows has 121 lines, more than 120", told)
        self.assertIn("low/Inner.cpp:4: run has 122 lines", told)
        self.assertNotIn("fits", told)

    def test_class_over_many_files(self):
        self.write("low/Low.h", "class Wide {\n};\nclass Fits {\n};\nnamespace free {\n}\n")
        for number in range(5):
            fits = "void Fits::step() {}\n" if number else ""
            self.write(f"low/Part{number}.cpp", f"{fits}int Wide::part{number}() {{}}\nint free::part{number}() {{}}\n")
        told = self.told()
        self.assertIn("low: methods of Wide stand in 5 files, more than 4", told)
        self.assertNotIn("Fits", told)
        self.assertNotIn("free", told)


if __name__ == "__main__":
    unittest.main()
