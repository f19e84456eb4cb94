#!/usr/bin/env python3
"""Holds what '--json' prints against the tables of docs/diagnostics.md, for every wrong example.

Fields, their types, spans (bytes against lines and columns), and edits, which must change their text.
"""
import json
import re
import subprocess
import sys

document, scratch = sys.argv[1], sys.argv[2]
SPAN = {"file": str, "begin": int, "end": int, "line": int, "column": int, "end_line": int, "end_column": int}


def tables():
    """The fields of each schema: name to (type, whether it may be absent)."""
    found = {}
    with open(document, encoding="utf-8") as file:
        sections = re.split(r"^## ", file.read(), flags=re.M)
    for section in sections:
        title = re.match(r"Schema `([a-z.]+)`, version (\d+)", section)
        if not title:
            continue
        rows = re.findall(r"^\| `(\w+)` \| (\w+) \| (.*) \|$", section, flags=re.M)
        found[title[1]] = (int(title[2]), {name: (kind, "absent" in text) for name, kind, text in rows})
    return found


KINDS = {"string": str, "integer": int, "array": list, "span": dict, "object": dict}


def main():
    wrong = []
    documented = tables()
    assert set(documented) == {"tegula.diagnostic", "tegula.guard", "tegula.performance"}, documented

    def check_span(span, texts, where):
        if set(span) != set(SPAN) or any(type(span[name]) is not kind for name, kind in SPAN.items()):
            wrong.append(f"{where}: span {span}")
            return
        text = texts.get(span["file"])
        if text is None:
            return  # of the library
        for at, line, column in (("begin", "line", "column"), ("end", "end_line", "end_column")):
            before = text[: span[at]].decode("utf-8", errors="replace")
            expected = (before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1)
            # Bytes that are no text count one by one.
            if "\ufffd" not in before and (span[line], span[column]) != expected:
                wrong.append(f"{where}: {at} {span[at]} is {expected}, not {(span[line], span[column])}")

    listed = subprocess.run(["tegula", "explain"], capture_output=True, text=True).stdout
    codes = [line.split()[0] for line in listed.splitlines()]
    records = 0
    for code in codes:
        explained = subprocess.run(["tegula", "explain", code], capture_output=True).stdout
        program = explained.split(b"\nWrong:\n\n")[1].split(b"\nRight:\n\n")[0]
        program = b"\n".join(line[4:] for line in program.split(b"\n"))
        path = f"{scratch}/{code}.tgl"
        with open(path, "wb") as file:
            file.write(program)
        run = subprocess.run(["tegula", "check", "--json", "--guards", "--target=sm_90a", path], capture_output=True)
        if run.stderr:
            wrong.append(f"{code}: text on standard error beside JSON")
        for line in run.stdout.splitlines():
            record = json.loads(line)
            records += 1
            version, fields = documented[record["schema"]]
            if record["version"] != version:
                wrong.append(f"{code}: version {record['version']}")
            for name, (kind, optional) in fields.items():
                if name not in record:
                    if not optional:
                        wrong.append(f"{code}: no {name}")
                elif type(record[name]) is not KINDS[kind]:
                    wrong.append(f"{code}: {name} is no {kind}")
            for name in set(record) - set(fields):
                wrong.append(f"{code}: {name} is not documented")
            if record["schema"] != "tegula.diagnostic":
                continue
            texts = {path: program}
            if "span" in record:
                check_span(record["span"], texts, code)
            if record["severity"] not in ("error", "warning", "remark"):
                wrong.append(f"{code}: severity {record['severity']}")
            for note in record["notes"]:
                if not {"message"} <= set(note) <= {"message", "span"}:
                    wrong.append(f"{code}: note {note}")
                if "span" in note:
                    check_span(note["span"], texts, code)
            for fix in record["fixes"]:
                if set(fix) != {"message", "applicability", "edits"} or fix["applicability"] not in ("safe", "maybe"):
                    wrong.append(f"{code}: fix {fix}")
                if not fix["edits"]:
                    wrong.append(f"{code}: a fix without edits")
                for edit in fix["edits"]:
                    if set(edit) != {"span", "text"}:
                        wrong.append(f"{code}: edit {edit}")
                    check_span(edit["span"], texts, code)
                    replaced = program[edit["span"]["begin"] : edit["span"]["end"]]
                    if replaced.decode(errors="replace") == edit["text"]:
                        wrong.append(f"{code}: an edit that changes nothing")
    print("\n".join(wrong) if wrong else f"{records} records follow their schema")
    return 1 if wrong or records < len(codes) - 10 else 0


sys.exit(main())
