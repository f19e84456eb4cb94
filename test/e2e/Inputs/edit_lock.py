"""edit_lock.py FILE NAME=VALUE...: sets fields of all times of a lock file."""
import json
import sys

path, *settings = sys.argv[1:]
with open(path) as file:
    lock = json.load(file)
for time in lock["times"]:
    for setting in settings:
        name, value = setting.split("=")
        time[name] = value if name in ("kernel", "case", "device") else float(value)
with open(path, "w") as file:
    json.dump(lock, file)
