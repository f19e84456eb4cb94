"""Runs pytest so that a test which is skipped for want of anything but a device is seen."""
import pytest

# In the reason of a test that needs a device, or a checkout of another project.
EXPECTED = ("CUDA device", "GPU", "one device", "cupy", "TEGULA_KERNELBENCH")


class Skips:
    def __init__(self):
        self.others = []

    def pytest_runtest_logreport(self, report):
        if report.skipped:
            self._note(report.nodeid, report.longrepr)

    def pytest_collectreport(self, report):
        if report.skipped:
            self._note(report.nodeid, report.longrepr)

    def _note(self, name, place):
        reason = str(place[2] if isinstance(place, tuple) else place)
        if not any(word in reason for word in EXPECTED):
            self.others.append(f"{name}: {reason}")


def main(arguments):
    """The exit code of pytest; 77 where all is well but a test was skipped that a machine without a device can run."""
    skips = Skips()
    code = int(pytest.main(arguments, plugins=[skips]))
    if code == 0 and skips.others:
        print("skipped although no device is needed:", *skips.others, sep="\n  ")
        return 77
    return code
