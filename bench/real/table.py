"""Prints rows as they come, and tables of all."""
import collections
import statistics


def best_other(row):
    """The name and the time of the fastest of the others."""
    others = {name: taken for name, taken in row["times"].items() if name != "tegula"}
    name = min(others, key=others.get)
    return name, others[name]


def has_others(row):
    return len(row["times"]) > 1


def ratio(row):
    return best_other(row)[1]/row["times"]["tegula"]


def line(row):
    """One row, as it is printed while others still run."""
    if "device" in row:
        rates = row["rates"]
        return (f"{row['device']}, torch {row['torch']}: copy {rates['copy']/1e12:.2f} TB/s, bf16 {rates['bf16']/1e12:.0f} TFLOP/s, "
                f"f32 {rates['f32']/1e12:.1f} TFLOP/s")
    if "about" in row:
        return f"{row['group']:12} {row['case']:32} {row['about'].splitlines()[0] if row['about'] else ''}"
    said = [f"{row['case']}:", "FAILED" if "error" in row else "right" if row["right"] else "WRONG"]
    if "error" in row:
        said.append(row["error"])
    if "errors" in row:
        said.append(", ".join(f"{name} {error:.1e}" for name, error in row["errors"].items()))
    if "times" in row:
        said.append("; " + ", ".join(f"{name} {taken:.1f} us" for name, taken in row["times"].items()))
        said.append(f"; bound {row['bound']:.1f}")
        if has_others(row):
            said.append(f"; best other / tegula {ratio(row):.3g}")
    said += [f"; no {name}: {why}" for name, why in row.get("missing", {}).items()]
    launches = [f"\n    {name[:60]:60} {taken:8.1f} us" for name, taken in row.get("launch_times", [])]
    return " ".join(said).replace(" ;", ";") + "".join(launches)


def checks(rows):
    cases = [row for row in rows if "case" in row]
    wrong = [row["case"] for row in cases if not row["right"]]
    return f"{len(cases)} kernels, {len(wrong)} wrong" + (f": {', '.join(wrong)}" if wrong else "")


def cells_of(line):
    """Of a row of a printed table, by `times`; None where it is none."""
    cells = [cell.strip() for cell in line.split("|")]
    return cells if len(cells) == 11 and cells[9].endswith("%") else None


def with_shorter(rows, page):
    """The rows with others' times from a printed table, the text `page`, where those are shorter or were not taken again."""
    number = lambda text: float(text.replace(",", ""))  # noqa: E731
    before = {}
    for cells in filter(None, map(cells_of, page.splitlines())):
        times = before[cells[1].removesuffix(", wrong")] = {}
        for name, text in (("eager", cells[4]), ("torch.compile", cells[5])):
            if text != "-":
                times[name] = number(text)
        for peer in cells[6].split("; ") if cells[6] != "-" else []:
            name, text = peer.rsplit(" ", 1)
            times[name] = number(text)
    def merged(row):
        others = before.get(row["case"], {})
        taken = {name: time if name == "tegula" else min(time, others.get(name, time)) for name, time in row["times"].items()}
        return {**row, "times": {**taken, **{name: time for name, time in others.items() if name not in taken}}}
    return [merged(row) if "times" in row else row for row in rows]


def geometric(rows):
    return statistics.geometric_mean([ratio(row) for row in rows])


def times(rows):
    """The table, worst first, and its means; below it, what was timed alone, what is not right, and reasons of what is slower
    than twice its bound."""
    alone = [row for row in rows if "times" in row and not has_others(row)]
    timed = sorted((row for row in rows if "times" in row and has_others(row)), key=ratio)
    lines = ["| case | class | tegula | eager | torch.compile | peers | best other / tegula | bound | of the bound |",
             "|---|---|---|---|---|---|---|---|---|"]
    for row in timed:
        taken = row["times"]
        peers = [f"{name} {microseconds(taken[name])}" for name in taken if name not in ("tegula", "eager", "torch.compile")]
        lines.append(f"| {row['case']}{'' if row['right'] else ', wrong'} | {row['group']} | {microseconds(taken['tegula'])} | "
                     f"{microseconds(taken['eager'])} | {microseconds(taken.get('torch.compile'))} | {'; '.join(peers) or '-'} | "
                     f"{ratio(row):.3g} | {microseconds(row['bound'])} | {row['bound']/taken['tegula']*100:.0f} % |")
    lines += ["", *summary(timed)] if timed else [] if alone else ["nothing was timed"]
    lines += [f"- {row['case']} alone: {microseconds(row['times']['tegula'])} us, bound {microseconds(row['bound'])}" for row in alone]
    lines += [f"- {row['case']} is not right: {row.get('error') or row.get('errors')}" for row in rows if not row.get("right", True)]
    missing = collections.Counter(f"{row['case']}: no {name} ({why})" for row in rows for name,
                                  why in row.get("missing", {}).items())
    lines += ["", "Not compared:", *(f"- {one}" for one in missing)] if missing else []
    return "\n".join(lines + reasons(timed + alone))


def microseconds(taken):
    return "-" if taken is None else f"{taken:,.0f}" if taken >= 1000 else f"{taken:.3g}"


def summary(timed):
    yield (f"{len(timed)} kernels: geometric mean of *best other / tegula* {geometric(timed):.3g}; "
           f"{sum(ratio(row) >= 1 for row in timed)} at 1 or more, {sum(ratio(row) < 0.8 for row in timed)} below 0.8; "
           f"beside eager mode {statistics.geometric_mean([row['times']['eager']/row['times']['tegula'] for row in timed]):.3g}; "
           f"of the bound {statistics.geometric_mean([row['bound']/row['times']['tegula'] for row in timed]):.2g}.")
    groups = collections.defaultdict(list)
    for row in timed:
        groups[row["group"]].append(row)
    yield "By class: " + ", ".join(f"{name} {geometric(some):.3g}" for name, some in groups.items()) + "."


def reasons(timed):
    """What the compiler says of each launch of those kernels that take more than twice their bound."""
    slow = [row for row in timed if row["times"]["tegula"] > 2*row["bound"]]
    if not slow:
        return []
    lines = ["", "Slower than twice the bound:"]
    for row in slow:
        lines.append(f"- {row['case']}, {microseconds(row['times']['tegula'])} us, bound {microseconds(row['bound'])}"
                     + ("" if row.get("launches") else "; `--tegula` names no program that could say why"))
        for one in row.get("launches", []):
            if "error" in one:
                lines.append(f"  - no reasons: {one['error']}")
                continue
            bound = f", {microseconds(one['bound'])} us at least" if one["bound"] is not None else ""
            lines.append(f"  - {one['name']} by {one['strategy']}{bound}" + "".join(f"; not {why}" for why in one["reasons"]))
    return lines
