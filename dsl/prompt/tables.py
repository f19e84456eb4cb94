#!/usr/bin/env python3
"""Writes the tables of dsl/prompt/page.md: what the compiler and the library know, from their own sources.

    dsl/prompt/tables.py [--check [--tegula=build/dev/bin/tegula]]

Between `<!-- functions -->` and `<!-- end -->`: the functions of dsl/Builtins.def and the `fn`s of dsl/std.
Between `<!-- kernels -->` and `<!-- end -->`: signatures of the kernels of dsl/std; a tensor that may be left out
stands as `bias?`, and names with one signature share a line. With --check nothing is written: exit code 1 where
the page is not what this would write, has more than 1,800 words, or has a program that `tegula check` remarks on.
"""
import pathlib
import re
import subprocess
import sys
import textwrap

DSL = pathlib.Path(__file__).resolve().parents[1]
PAGE = DSL / "prompt" / "page.md"


def builtins():
    """(name, signature, class) in the order of the table."""
    text = (DSL / "Builtins.def").read_text()
    return re.findall(r'^TEGULA_BUILTIN\((\w+), "([^"]*)", (\w+),', text, re.M)


# PyTorch's names of what an operator or another function says as briefly: the page has no words for them.
SHORTER = {"expit", "isposinf", "isneginf", "deg2rad", "rad2deg", "addcmul", "addcdiv", "remainder"}

# What the library asks the compiler for, of no use on the page.
LIBRARY = {"finfo_max"}


def functions():
    """Signatures of the library's `fn`s; `name` alone where the only argument is the element."""
    found = []
    for file in sorted((DSL / "std").glob("*.tgl")):
        for name, arguments in re.findall(r"^fn ([a-z]\w*)\(([^)]*)\)", file.read_text(), re.M):
            if not name.startswith("bitwise_") and name not in SHORTER:
                found.append(name if arguments == "x" else f"{name}({arguments})")
    return found


def split_arguments(text):
    """Arguments at the top level of brackets."""
    parts, depth, start = [], 0, 0
    for at, letter in enumerate(text):
        depth += letter in "([" and 1 or letter in ")]" and -1 or 0
        if letter == "," and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    return [part.strip() for part in parts + [text[start:]] if part.strip()]


def argument(text):
    """`bias: T[O] = 0` as `bias?`, `stride: int[2] = 1` as `stride=1`."""
    name, rest = (part.strip() for part in text.split(":", 1))
    default = re.search(r"=\s*(.*)$", rest)
    is_tensor = rest[0].isupper()
    if not default:
        return name
    return f"{name}?" if is_tensor else f"{name}={default[1].strip()}"


def kernels():
    """Signatures; families of 1d, 2d and 3d forms, and names with one signature, together."""
    families = {}
    for file in sorted((DSL / "std").glob("*.tgl")):
        text = re.sub(r"#.*", "", file.read_text())
        for found in re.finditer(r"^kernel ([a-z]\w*)\(", text, re.M):
            depth, end = 1, found.end()
            while depth:
                depth += {"(": 1, ")": -1}.get(text[end], 0)
                end += 1
            outputs = re.match(r"\s*->\s*\(([^)]*)\)", text[end:])
            count = len(split_arguments(outputs[1])) if outputs else 0
            signature = ", ".join(argument(part) for part in split_arguments(text[found.end():end - 1]))
            base, dims = re.fullmatch(r"(\w*?)([123]d)?", found[1]).groups()
            families.setdefault((base, signature, count), []).append(dims or "")
    same = {}
    for (base, signature, count), dims in families.items():
        same.setdefault((signature, count), []).append(base + "/".join(dims))
    return [f"`{', '.join(names)}({signature})`" + (f" gives {count} tensors" if count > 1 else "")
            for (signature, count), names in same.items()]


def tables():
    plain = [name for name, _, kind in builtins()
             if kind in ("Unary", "UnaryKeep", "UnaryTest") and name not in LIBRARY]
    of = lambda kind: [name for name, _, each in builtins() if each == kind]
    special = [signature for name, signature, kind in builtins()
               if kind in ("Binary", "Special") and name not in ("cat", "topk")]
    paragraph = lambda title, names: textwrap.fill(f"{title}: {', '.join(names)}.", 118)
    return {
        "functions": "\n\n".join([
            paragraph("Reductions", of("Reduction")),
            paragraph("Scans", of("Scan")),
            paragraph("Functions of elements", plain + special + functions()),
        ]),
        "kernels": "\n".join(f"{line};" for line in kernels()) + "\n`cat(a, b, ..., dim=0)`.",
    }


def check(old, new):
    """What is wrong with the page, or None."""
    if old != new:
        return f"{PAGE} is not what the sources say: run dsl/prompt/tables.py"
    if len(new.split()) > 1800:
        return f"{PAGE} has {len(new.split())} words"
    tegula = [one.removeprefix("--tegula=") for one in sys.argv[1:] if one.startswith("--tegula=")]
    programs = re.findall(r"^```\n(.*?)^```$", new, re.M | re.S)
    assert programs, "the page has programs"
    for program in programs if tegula else []:
        done = subprocess.run([tegula[0], "check", "-"], input=program, capture_output=True, text=True)
        if done.returncode or done.stdout or done.stderr:
            return program + done.stdout + done.stderr
    return None


def main():
    old = new = PAGE.read_text()
    for name, table in tables().items():
        new, count = re.subn(rf"(<!-- {name} -->\n).*?(<!-- end -->)",
                             lambda found: f"{found[1]}{table}\n{found[2]}", new, count=1, flags=re.S)
        if not count:
            sys.exit(f"{PAGE} has no place for '{name}'")
    if "--check" in sys.argv[1:]:
        sys.exit(check(old, new))
    PAGE.write_text(new)


if __name__ == "__main__":
    main()
