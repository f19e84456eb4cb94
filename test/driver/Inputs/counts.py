"""counts.py CONDITION FILE...: whether a condition holds for what the model of expected times has counted. Each file is of
`tegula compile --why=json`; a condition is Python, in which a, b, ... are the sums of the counts of the files' statements and of the
parts of their expected times, by name: 'a.instructions < b.instructions'. Exit code 1 where it does not hold."""
import json
import sys
import types

sums = {}
for name, path in zip("abcdefgh", sys.argv[2:]):
    with open(path) as file:
        launches = json.load(file)
    rows = [row for one in launches for row in (*one["work"], one["expectedParts"])]
    keys = {key for row in rows for key, value in row.items() if not isinstance(value, str)}
    sums[name] = types.SimpleNamespace(**{key: sum(row.get(key, 0) for row in rows) for key in keys})
if not eval(sys.argv[1], {}, sums):
    print(f"{sys.argv[1]} does not hold", *sums.items(), sep="\n")
    sys.exit(1)
