#!/usr/bin/env python3
"""scripts/release.py on a copy of the tree: what it writes, and what it refuses. The version stands in one place.

  release.py --build=BUILD

Wheels are made by test/python/wheel.py; here one stands in.
"""
import argparse
import hashlib
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

TREE = pathlib.Path(__file__).resolve().parents[2]
VERSION = re.search(r"VERSION ([0-9.]+)", re.search(r"project\(.*\)", (TREE / "CMakeLists.txt").read_text())[0])[1]


class Copy:
    """A repository with a few files of the tree."""

    def __init__(self, root):
        self.root = root
        for name in ("CMakeLists.txt", "CHANGELOG.md", "scripts/release.py", "LICENSE"):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(TREE / name, root / name)
        (root / ".gitignore").write_text("/build/\n")
        self.git("init", "-q")
        self.commit()

    def git(self, *arguments):
        subprocess.run(["git", "-c", "user.name=test", "-c", "user.email=test@localhost", *arguments], cwd=self.root, check=True)

    def commit(self):
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "State")

    def run(self, *arguments, code=0):
        done = subprocess.run([sys.executable, self.root / "scripts/release.py", f"--out={self.root / 'build/out'}", *arguments],
                              capture_output=True, text=True)
        assert done.returncode == code, (arguments, done)
        return done.stdout if code == 0 else done.stderr

    def files(self):
        folder = self.root / "build/out"
        return {file.name for file in folder.iterdir()} if folder.exists() else set()


def check_version():
    """It stands in CMakeLists.txt, and in the manifests of what editors load, whose forms have one, alone."""
    names = subprocess.run(["git", "ls-files", "-z"], cwd=TREE, check=True, capture_output=True, text=True).stdout.split("\0")
    files = [TREE / name for name in names if re.search(r"\.(py|cpp|h|hpp|toml|cmake|in|json)$|CMakeLists\.txt$|^dev$", name)
             and not name.startswith(("test/", "bench/"))]  # which tell of others' versions
    others = [file for file in files if file.is_file() and
              re.search(rf"(?i)version.*\b{re.escape(VERSION)}\b", file.read_text(errors="replace"))]
    manifests = [TREE / "editors/tree-sitter-tegula/tree-sitter.json", TREE / "editors/vscode/package.json"]
    assert others == [TREE / "CMakeLists.txt", *manifests], others


def check_refusals(copy):
    changelog = copy.root / "CHANGELOG.md"
    text = re.sub(rf"^## {re.escape(VERSION)}.*$", "## Something else", changelog.read_text(), flags=re.M)
    changelog.write_text(text)
    copy.commit()
    told = copy.run("--steps=check", code=1)
    assert told == f"error: CHANGELOG.md has no section '## {VERSION}': give 'Unreleased' that name and begin a new one\n", told
    assert told == copy.run("--steps=notes", code=1)
    changelog.write_text(text.replace("## Unreleased\n", f"## Unreleased\n\nNothing yet.\n\n## {VERSION} (2026-11-28)\n"))
    told = copy.run(code=1)
    assert told.startswith("error: the tree is not as committed: M CHANGELOG.md"), told
    copy.commit()
    assert copy.run("--steps=check") == ""
    assert "there is no step 'chek'; there are check, notes" in copy.run("--steps=chek", code=2)
    assert "is empty" in copy.run("--steps=checksums", code=1)
    assert copy.files() == set()


def check_files(copy, build):
    planned = copy.run("--dry-run", "--python=python3.10", "--python=python3.12")
    assert "wheels: a wheel of python3.10\nwheels: a wheel of python3.12\n" in planned and copy.files() == set(), planned
    copy.run("--steps=source,notes,check")
    notes = (copy.root / "build/out/notes.md").read_text()
    assert notes.startswith(f"# Tegula {VERSION}\n\n") and "### Added" in notes and "Nothing yet" not in notes, notes[:300]
    assert notes.rstrip() == notes[:-1] and not re.search(r"^## ", notes, re.M)
    source = copy.root / f"build/out/tegula-{VERSION}.tar.gz"
    first = source.read_bytes()
    with tarfile.open(source) as archive:
        names = set(archive.getnames())
    assert {f"tegula-{VERSION}/LICENSE", f"tegula-{VERSION}/scripts/release.py"} <= names, names
    assert not any("/build" in name or "/.git/" in name for name in names), names
    copy.run("--steps=source")
    assert source.read_bytes() == first, "the same commit makes the same archive"

    copy.run("--steps=binaries", f"--prebuilt={build}")
    name = f"tegula-{VERSION}-linux-x86_64"
    with tarfile.open(copy.root / f"build/out/{name}.tar.gz") as archive:
        names = set(archive.getnames())
    subprocess.run(["tar", "-C", copy.root / "build", "-xzf", copy.root / f"build/out/{name}.tar.gz"], check=True)
    assert {f"{name}/bin/tegula", f"{name}/lib/libtegula.so", f"{name}/include/tegula/tegula.hpp"} <= names, names
    told = subprocess.run([copy.root / "build" / name / "bin/tegula", "--version"], check=True, capture_output=True, text=True)
    assert told.stdout.startswith(f"tegula {VERSION} "), told

    (copy.root / f"build/out/tegula-{VERSION}-cp312-abi3-manylinux_2_27_x86_64.whl").write_bytes(b"a wheel")
    copy.run("--steps=checksums")
    copy.run("--steps=checksums")  # whose own sums are not among them
    sums = (copy.root / "build/out/SHA256SUMS").read_text().splitlines()
    assert {line.split("  ")[1] for line in sums} == copy.files() - {"SHA256SUMS"} and len(sums) == 4, sums
    assert f"{hashlib.sha256(b'a wheel').hexdigest()}  tegula-{VERSION}-cp312-abi3-manylinux_2_27_x86_64.whl" in sums
    subprocess.run(["sha256sum", "-c", "--quiet", "SHA256SUMS"], cwd=copy.root / "build/out", check=True)


def check_other_version(copy, build):
    lists = copy.root / "CMakeLists.txt"
    lists.write_text(lists.read_text().replace(f"VERSION {VERSION}", "VERSION 99.0.0"))
    told = copy.run("--steps=binaries", f"--prebuilt={build}", code=1)
    assert f"holds tegula {VERSION} " in told and "not 99.0.0: build it anew" in told, told


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    build = parser.parse_args().build
    check_version()
    with tempfile.TemporaryDirectory() as folder:
        copy = Copy(pathlib.Path(folder))
        check_refusals(copy)
        check_files(copy, build)
        check_other_version(copy, build)
    return 0


if __name__ == "__main__":
    sys.exit(main())
