"""why_all.py < RECORDS: says of how many launches `tegula check --json --target` tells a strategy, and of each general one why
no faster strategy computes it. Exit code 1 where it does not."""
import json
import sys

launches, general, wrong, without = 0, 0, [], 0
for line in sys.stdin:
    record = json.loads(line)
    if record["schema"] != "tegula.performance":
        continue
    without += "reason" in record
    for launch in record.get("launches", ()):
        launches += 1
        told = {mismatch["strategy"] for mismatch in launch["mismatches"] if mismatch["reason"]}
        if launch["strategy"] == "general":
            general += 1
            if not {"contraction", "tile-loop", "recurrence"} <= told:
                wrong.append(f"{launch['place']}: '{launch['name']}' tells of {sorted(told)} alone")
print("\n".join(wrong[:20]))
print(f"{launches} launches, {general} general, {len(wrong)} of them lack a reason; {without} kernels do not compile as they stand")
sys.exit(1 if wrong or not general else 0)
