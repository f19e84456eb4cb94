#!/usr/bin/env python3
"""`cmake --install` gives a tree that programs in C and C++ can be built against, by CMake and by pkg-config.

  check_install.py --build=FOLDER --source=FOLDER --cc=COMPILER --cxx=COMPILER

Installs into a temporary folder, moves it elsewhere, builds and runs examples/c and examples/cpp against it. What is
installed is what docs/c-api.md lists, in all and by components.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile


def run(*command, **options):
    print("+", " ".join(command), flush=True)
    subprocess.run(command, check=True, **options)


def installed(*command):
    """What cmake installs, as paths below the prefix; the version's digits as V, and where a link leads to."""
    with tempfile.TemporaryDirectory() as prefix:
        run("cmake", "--install", *command, "--prefix", prefix, stdout=subprocess.DEVNULL)
        files = {re.sub(r"\d+\.\d+\.\d+", "V", str(path.relative_to(prefix)))
                 for path in pathlib.Path(prefix).rglob("*") if not path.is_dir()}
        return {re.sub(r"-[a-z]+\.cmake$", "-TYPE.cmake", name) for name in files}


def told(page):
    """The table of docs/c-api.md: component to paths."""
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", page, re.M)
    return {component: set(re.findall(r"`([^`]+)`", paths)) for component, paths in rows
            if component in ("runtime", "development")}


def main():
    parser = argparse.ArgumentParser()
    for name in ("build", "source", "cc", "cxx"):
        parser.add_argument("--" + name, required=True)
    args = parser.parse_args()
    components = told(pathlib.Path(args.source, "docs/c-api.md").read_text())
    assert set(components) == {"runtime", "development"}, components
    for component, files in components.items():
        found = installed(args.build, "--component", component)
        assert found == files, f"{component}: {sorted(found ^ files)} are either installed or in docs/c-api.md"
    found = installed(args.build)
    assert found == set().union(*components.values()), f"without a component {sorted(found)} are installed"

    with tempfile.TemporaryDirectory() as folder:
        first, prefix = os.path.join(folder, "first"), os.path.join(folder, "moved")
        run("cmake", "--install", args.build, "--prefix", first, stdout=subprocess.DEVNULL)
        shutil.move(first, prefix)
        run(os.path.join(prefix, "bin/tegula"), "--version")

        # The examples' own folders: nothing of Tegula's sources is near.
        for name in ("cpp", "c"):
            sources = shutil.copytree(os.path.join(args.source, "examples", name), os.path.join(folder, name))
            build = os.path.join(folder, "build-" + name)
            run("cmake", "-G", "Ninja", "-S", sources, "-B", build, "-DCMAKE_PREFIX_PATH=" + prefix,
                "-DCMAKE_C_COMPILER=" + args.cc, "-DCMAKE_CXX_COMPILER=" + args.cxx, stdout=subprocess.DEVNULL)
            run("cmake", "--build", build)
            run("ctest", "--test-dir", build, "--output-on-failure", "--no-tests=error")

        # The program that docs/c-api.md shows, with a compiler's own commands.
        shown, *_ = re.findall(r"```cpp\n(.*?)```", pathlib.Path(args.source, "docs/c-api.md").read_text(), re.S)
        includes, lines = shown.split("\n\n", 1)
        source = pathlib.Path(folder, "shown.cpp")
        source.write_text(f"{includes}\nint main() {{\n{lines}\nreturn y == std::vector<float>(8, 2.0f) ? 0 : 1;\n}}\n")
        run(args.cxx, "-std=c++20", "-Wall", "-Wextra", "-Werror", str(source), "-o", str(source.with_suffix("")),
            f"-I{prefix}/include", f"-L{prefix}/lib", "-ltegula", f"-Wl,-rpath,{prefix}/lib")
        run(str(source.with_suffix("")))

        if shutil.which("pkg-config"):
            flags = subprocess.run(["pkg-config", "--cflags", "--libs", "tegula"], check=True,
                                   capture_output=True, text=True,
                                   env={**os.environ, "PKG_CONFIG_PATH": prefix + "/lib/pkgconfig"}).stdout
            program = os.path.join(folder, "program")
            run(args.cc, "-std=c11", "-Wall", "-Wextra", "-pedantic", "-Werror",
                os.path.join(sources, "fused_linear.c"), "-o", program, *flags.split(), "-lm",
                "-Wl,-rpath," + prefix + "/lib")
            run(program, stdout=subprocess.DEVNULL)
        else:
            print("no pkg-config: tegula.pc is installed, not tried")
    return 0


if __name__ == "__main__":
    sys.exit(main())
