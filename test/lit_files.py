#!/usr/bin/env python3
"""CTest has a test for each file that lit finds: lit_files.py LIT FOLDER, which holds CMake's list of them."""
import pathlib
import subprocess
import sys

lit, folder = sys.argv[1:]
shown = subprocess.run([lit, "--show-tests", folder], stdout=subprocess.PIPE, text=True, check=True).stdout
found = {line.partition(" :: ")[2] for line in shown.splitlines() if " :: " in line}
listed = set((pathlib.Path(folder) / "lit-tests.txt").read_text().split())
for name in sorted(found ^ listed):
    print(name, "is not one of CTest's tests" if name in found else "is not found by lit")
sys.exit(not found or found != listed)
