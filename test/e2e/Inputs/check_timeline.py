"""A trace of `tegula bench --timeline`: spans of warps lie in those of their functions, and one process is a multiprocessor."""
import json
import sys

trace = json.load(open(sys.argv[1]))
events = trace["traceEvents"]
assert trace["otherData"]["marks_without_room"] == 0 == trace["otherData"]["warps_without_room"], trace["otherData"]
names = {(one["name"], one["pid"]): one["args"]["name"] for one in events if one["ph"] == "M" and one["name"] == "process_name"}
assert names and all(name == f"multiprocessor {pid}" for (_, pid), name in names.items()), names
threads = {(one["pid"], one["tid"]): one["args"]["name"] for one in events if one["ph"] == "M" and one["name"] == "thread_name"}
assert len(threads) == trace["otherData"]["warps"], threads
whole = {}
for one in events:
    if one["ph"] == "X" and one["name"].startswith("tegula_"):
        whole.setdefault((one["pid"], one["tid"]), []).append((one["ts"], one["ts"] + one["dur"]))
assert whole.keys() == threads.keys()
assert min(begin for spans in whole.values() for begin, _ in spans) == 0
seen = set()
for one in events:
    if one["ph"] == "M" or one["name"].startswith("tegula_"):
        continue
    seen.add(one["name"])
    end = one["ts"] + one.get("dur", 0)
    assert any(begin - 1e-6 <= one["ts"] <= end <= last + 1e-6 for begin, last in whole[one["pid"], one["tid"]]), one
print(sorted(seen), sorted(set(name.split("warp")[1] for name in threads.values())))
assert {"wait for a full stage", "wait for products"} <= seen, seen
assert any(name.endswith("(producer)") for name in threads.values()), threads
assert any(name.endswith("(consumer)") for name in threads.values()), threads
