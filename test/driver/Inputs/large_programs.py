"""Writes programs whose compilation once took minutes, or all memory, into a folder."""
import pathlib
import sys


def nested(function, levels):
    value = "x[i, j]"
    for _ in range(levels):
        value = f"{function}({value}{', over=j' if 'softmax' in function else ''})"
    return f"kernel k(x: f32[M, N]) -> (y: f32[M, N]) {{\n  y[i, j] = {value}\n}}\n"


def sums(count):
    """Equations that differ by a constant, added up by forties."""
    lines = [f"  t{n}[i] = x[i] * {n}.0" for n in range(count)]
    level, new = [f"t{n}" for n in range(count)], 0
    while len(level) > 1:
        parts = [level[at:at + 40] for at in range(0, len(level), 40)]
        level = [f"s{new + number}" for number in range(len(parts))]
        lines += [f"  {name}[i] = {' + '.join(f'{one}[i]' for one in part)}" for name, part in zip(level, parts)]
        new += len(parts)
    return "\n".join(["kernel k(x: f32[N]) -> (y: f32[N]) {", *lines, f"  y[i] = {level[0]}[i]", "}\n"])


def chain(count):
    lines = [f"  t{n}[i] = t{n - 1}[i] * 1.5 + 0.5" for n in range(1, count)]
    return "\n".join(["kernel k(x: f32[N]) -> (y: f32[N]) {", "  t0[i] = x[i]", *lines, f"  y[i] = t{count - 1}[i]", "}\n"])


def cat(count):
    parameters = ", ".join(f"x{n}: f32[N{n}]" for n in range(count))
    sizes, names = " + ".join(f"N{n}" for n in range(count)), ", ".join(f"x{n}" for n in range(count))
    return f"kernel k({parameters}) -> (y: f32[{sizes}]) {{\n  y = cat({names})\n}}\n"


def apart(count):
    """Sums of tensors that have no size in common."""
    parameters = ", ".join(f"x{n}: f32[N{n}]" for n in range(count))
    lines = [f"  s{n} = sum(x{n}[j] for j)" for n in range(count)]
    total = " + ".join(f"s{n}" for n in range(count))
    return "\n".join([f"kernel k({parameters}) -> (y: f32[N0]) {{", *lines, f"  y[i] = x0[i] + {total}", "}\n"])


PROGRAMS = {"softmax": nested("softmax", 20), "log_softmax": nested("log_softmax", 20), "square": nested("square", 32),
            "sums": sums(1000), "chain": chain(3000), "cat": cat(200), "apart": apart(300),
            "huge": "kernel k(x: f32[576460752303423488]) -> (y: f32) {\n  y = sum(x[i] for i)\n}\n"}
for name, text in PROGRAMS.items():
    (pathlib.Path(sys.argv[1]) / f"{name}.tgl").write_text(text)
