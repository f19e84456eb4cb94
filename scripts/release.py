#!/usr/bin/env python3
"""Makes everything that a release needs, in one folder. It uploads nothing.

  release.py [--out=build/release-VERSION] [--prebuilt=BUILD] [--python=PYTHON ...] [--steps=STEP,...] [--dry-run]

The steps, in order; each only reads what the ones before it wrote:

  check      the version has a section in CHANGELOG.md, and the tree is as committed
  notes      notes.md: that section
  source     tegula-VERSION.tar.gz: the committed files
  binaries   tegula-VERSION-linux-x86_64.tar.gz: what `cmake --install` writes of runtime and development
  wheels     a wheel for each --python, by scripts/wheel.py: 3.10, 3.11 and 3.12 are for all from 3.10 on
  checksums  SHA256SUMS of all files there, for `sha256sum -c`

BUILD: a finished Release build, build/release by default. PYTHON: an interpreter that has what scripts/wheel.py needs;
the one that runs this by default. --dry-run does the check and prints what the other steps would write.
"""
import argparse
import gzip
import hashlib
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
STEPS = ("check", "notes", "source", "binaries", "wheels", "checksums")
SUMS = "SHA256SUMS"


class Wrong(Exception):
    """What stands in the way of a release, in a line."""


def version(root=ROOT):
    return re.search(r"^project\(Tegula VERSION ([0-9.]+)", (root / "CMakeLists.txt").read_text(), re.M)[1]


def section(changelog, wanted):
    """The text below `## VERSION`, perhaps with a date behind it; None where there is none."""
    found = re.search(rf"^## {re.escape(wanted)}(?: [^\n]*)?\n(.*?)(?=^## |\Z)", changelog, re.M | re.S)
    return found and found[1].strip()


def git(*arguments):
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True).stdout


class Release:
    def __init__(self, out, prebuilt, pythons):
        self.version = version()
        self.out = out or ROOT / "build" / f"release-{self.version}"
        self.prebuilt = prebuilt
        self.pythons = pythons

    def write(self, name, data):
        self.out.mkdir(parents=True, exist_ok=True)
        (self.out / name).write_bytes(data)
        print(self.out / name)

    def notes_text(self):
        text = section((ROOT / "CHANGELOG.md").read_text(), self.version)
        if not text:
            raise Wrong(f"CHANGELOG.md has no section '## {self.version}': give 'Unreleased' that name and begin a new one")
        return f"# Tegula {self.version}\n\n{text}\n"

    def check(self):
        self.notes_text()
        changed = git("status", "--porcelain").decode()
        if changed:
            raise Wrong(f"the tree is not as committed: {changed.splitlines()[0].strip()} ...")

    def notes(self):
        self.write("notes.md", self.notes_text().encode())

    def source(self):
        name = f"tegula-{self.version}"
        archive = git("archive", "--format=tar", f"--prefix={name}/", "HEAD")
        self.write(f"{name}.tar.gz", gzip.compress(archive, mtime=0))

    def binaries(self):
        name = f"tegula-{self.version}-linux-x86_64"
        with tempfile.TemporaryDirectory() as folder:
            prefix = pathlib.Path(folder, name)
            for component in ("runtime", "development"):
                subprocess.run(["cmake", "--install", self.prebuilt, "--component", component, "--prefix", prefix, "--strip"],
                               check=True, stdout=subprocess.DEVNULL)
            built = subprocess.run([prefix / "bin" / "tegula", "--version"], check=True, capture_output=True, text=True).stdout
            if f"tegula {self.version} " not in built:
                raise Wrong(f"{self.prebuilt} holds {built.strip()}, not {self.version}: build it anew")
            self.out.mkdir(parents=True, exist_ok=True)
            with tarfile.open(self.out / f"{name}.tar.gz", "w:gz", compresslevel=6) as archive:
                archive.add(prefix, name)
        print(self.out / f"{name}.tar.gz")

    def wheels(self):
        for python in self.pythons:
            subprocess.run([python, ROOT / "scripts" / "wheel.py", f"--prebuilt={self.prebuilt}", f"--out={self.out}"],
                           check=True, stdout=sys.stderr)
        for wheel in sorted(self.out.glob("*.whl")):
            if f"tegula-{self.version}-" not in wheel.name:
                raise Wrong(f"{wheel} is of another version")
            print(wheel)

    def checksums(self):
        files = sorted(file for file in self.out.glob("*") if file.is_file() and file.name != SUMS)
        if not files:
            raise Wrong(f"{self.out} is empty")
        lines = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files]
        self.write(SUMS, "".join(lines).encode())

    def plan(self):
        """What the steps but the check write."""
        name = f"tegula-{self.version}"
        return {"notes": ["notes.md"], "source": [f"{name}.tar.gz"], "binaries": [f"{name}-linux-x86_64.tar.gz"],
                "wheels": [f"a wheel of {python}" for python in self.pythons], "checksums": [SUMS]}


def steps_of(text):
    wanted = [step for step in text.split(",") if step]
    for step in wanted:
        if step not in STEPS:
            raise argparse.ArgumentTypeError(f"there is no step '{step}'; there are {', '.join(STEPS)}")
    return sorted(wanted, key=STEPS.index)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--prebuilt", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--python", action="append", dest="pythons")
    parser.add_argument("--steps", type=steps_of, default=list(STEPS))
    parser.add_argument("--dry-run", action="store_true")
    args = parser.parse_args()
    release = Release(args.out, args.prebuilt, args.pythons or [sys.executable])
    try:
        for step in args.steps:
            if args.dry_run and step != "check":
                for name in release.plan()[step]:
                    print(f"{step}: {release.out}{os.sep}{name}" if " " not in name else f"{step}: {name}")
            else:
                getattr(release, step)()
    except Wrong as wrong:
        sys.exit(f"error: {wrong}")
    except subprocess.CalledProcessError as failed:
        sys.exit(f"error: '{' '.join(map(str, failed.cmd))}' ended with {failed.returncode}")


if __name__ == "__main__":
    main()
