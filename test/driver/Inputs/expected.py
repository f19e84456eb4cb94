"""expected.py KERNEL LEAST MOST [MICROSECONDS]: of the records of `tegula check --json --target` on standard input, holds the
share of the bound that the kernel's launches are expected to reach to be from LEAST to MOST, remarks to stand where it is below
a half, and the time to be at least MICROSECONDS. Exit code 1 where that is not so."""
import json
import sys

kernel, least, most, *microseconds = sys.argv[1:]
records = [json.loads(line) for line in sys.stdin]
launches, = (one["launches"] for one in records if one["schema"] == "tegula.performance" and one["kernel"] == kernel)
bound, expected = (sum(one[name] for one in launches) for name in ("boundMicroseconds", "expectedMicroseconds"))
wrong = []
if not float(least) <= bound/expected <= float(most):
    wrong.append(f"{bound:.1f} us of {expected:.1f} us are not from {least} to {most}")
if microseconds and expected < float(microseconds[0]):
    wrong.append(f"{expected:.1f} us")
for one in launches:
    if abs(one["boundMicroseconds"]/one["expectedMicroseconds"] - one["ofBound"]) > 1e-3:
        wrong.append(f"ofBound is {one['ofBound']}")
    if ("remark" in one) != (one["ofBound"] < 0.5 and one["expectedMicroseconds"] >= 0.05*expected):
        wrong.append(f"{one['name']}: {one['ofBound']:.2f} of the bound, remark: {one.get('remark')}")
print("\n".join(wrong))
sys.exit(1 if wrong else 0)
