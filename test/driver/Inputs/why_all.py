"""why_all.py < RECORDS: says of how many launches `tegula check --json --target` tells a strategy, of each general one why no
faster strategy computes it, and whether reasons are in words of programs. Exit code 1 where they are not."""
import json
import re
import sys

# What the compiler calls something, and programs do not: operations of IR, names of C++, words of the code alone.
INTERNAL = re.compile(r"the operation '|tgl\.|arith\.|::|_block\b|\b[a-z]+[A-Z]\w*|(?!PyTorch)[A-Z][a-z]+[A-Z]\w*"
                      r"|\b(nest|rest|mend\w*|doubts?|accumulators?|lanes?|hoist\w*|temp|rewrit\w+|lower\w+)\b")

kernels, launches, general, wrong, without = 0, 0, 0, [], 0
for line in sys.stdin:
    record = json.loads(line)
    if record["schema"] != "tegula.performance":
        continue
    kernels += 1
    without += "reason" in record
    for launch in record.get("launches", ()):
        launches += 1
        told = {mismatch["strategy"] for mismatch in launch["mismatches"] if mismatch["reason"]}
        if launch["strategy"] == "general":
            general += 1
            if not {"contraction", "tile-loop", "recurrence"} <= told:
                wrong.append(f"{launch['place']}: '{launch['name']}' tells of {sorted(told)} alone")
        for mismatch in launch["mismatches"]:
            # Names of the program stand in quotes, and are its author's.
            text = re.sub(r"(?<!operation )'\w+'", "", mismatch["reason"] + " " + mismatch.get("edit", ""))
            if found := INTERNAL.search(text):
                wrong.append(f"{launch['place']}: '{found[0]}' in '{text}'")
print("\n".join(wrong[:20]))
print(f"{launches} launches, {general} general, {len(wrong)} of them lack a reason; {without} of {kernels} kernels do not compile as they stand")
sys.exit(1 if wrong or not general else 0)
