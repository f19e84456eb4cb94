"""why_sizes.py FILE...: what `tegula check --json --target=sm_90a` says of each kernel, for the sizes that the comment before it
names (`# sizes: M=64,N=128`)."""
import re
import subprocess
import sys

for path in sys.argv[1:]:
    with open(path) as file:
        kernels = re.findall(r"^# sizes: (\S+)\nkernel (\w+)", file.read(), re.M)
    for sizes, kernel in kernels:
        print(subprocess.run(["tegula", "check", "--json", "--target=sm_90a", f"--kernel={kernel}", "-d", sizes, path], check=True,
                             capture_output=True, text=True).stdout, end="")
