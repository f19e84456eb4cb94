#!/usr/bin/env python3
"""Runs the tests of the Python package.

  run.py --package=FOLDER [PYTEST_OPTION...]

FOLDER holds the folder `tegula`: build/dev/python, or wherever an installed package was carried to. On a machine
with a GPU `-m gpu` runs the tests that need one alone. Exit code 77 where something cannot be imported.
"""
import argparse
import importlib
import os
import sys


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--package", required=True)
    parser.add_argument("--command", default="")
    args, options = parser.parse_known_args()
    for name in ("numpy", "torch", "pytest"):
        try:
            importlib.import_module(name)
        except (ImportError, OSError) as error:
            print(f"skipped: no {name}: {error}")
            return 77
    sys.path.insert(0, os.path.abspath(args.package))
    os.environ["TEGULA_COMMAND"] = os.path.abspath(args.command) if args.command else ""
    import skips

    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "package")
    return skips.main(["-q", "-rs", "-p", "no:cacheprovider", "--rootdir", folder, folder, *options])


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    sys.exit(main())
