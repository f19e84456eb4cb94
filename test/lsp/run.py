#!/usr/bin/env python3
"""Runs pytest on the given files; exit code 77 where it or the client cannot be imported."""
import sys

try:
    import pygls
    import pytest
except ImportError as error:
    print("skipped:", error)
    sys.exit(77)

sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", *sys.argv[1:]]))
