#!/usr/bin/env python3
"""`cmake --install` gives a tree that a C program can be built against, by CMake and by pkg-config.

  check_install.py --build=FOLDER --source=FOLDER --cc=COMPILER

Installs into a temporary folder, moves it elsewhere, builds and runs examples/c against it.
"""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile


def run(*command, **options):
    print("+", " ".join(command), flush=True)
    subprocess.run(command, check=True, **options)


def main():
    parser = argparse.ArgumentParser()
    for name in ("build", "source", "cc"):
        parser.add_argument("--" + name, required=True)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        first, prefix = os.path.join(folder, "first"), os.path.join(folder, "moved")
        run("cmake", "--install", args.build, "--prefix", first, stdout=subprocess.DEVNULL)
        shutil.move(first, prefix)
        for file in ("bin/tegula", "lib/libtegula.so", "include/tegula/tegula.h",
                     "lib/cmake/Tegula/TegulaConfig.cmake", "lib/pkgconfig/tegula.pc"):
            assert os.path.exists(os.path.join(prefix, file)), f"{file} is not installed"
        run(os.path.join(prefix, "bin/tegula"), "--version")

        # The example's own folder: nothing of Tegula's sources is near.
        sources = shutil.copytree(os.path.join(args.source, "examples/c"), os.path.join(folder, "c"))
        build = os.path.join(folder, "build")
        run("cmake", "-G", "Ninja", "-S", sources, "-B", build, "-DCMAKE_PREFIX_PATH=" + prefix,
            "-DCMAKE_C_COMPILER=" + args.cc, stdout=subprocess.DEVNULL)
        run("cmake", "--build", build)
        run(os.path.join(build, "fused_linear"), stdout=subprocess.DEVNULL)

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
