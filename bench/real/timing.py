"""Times on a CUDA device: medians of calls in turns, the second-level cache emptied before each, and the device's own rates."""
import statistics

import torch


class Clock:
    def __init__(self):
        self.flush = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")

    def microseconds(self, call) -> float:
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        call()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end)*1e3

    def medians(self, calls: dict, seconds=2.0, turns=9) -> dict[str, float]:
        """Microseconds of each call. Two turns warm up; three or more count, up to `turns` within the seconds."""
        taken = {name: [] for name in calls}
        turn = 0
        while turn < 2 + turns:
            for name, call in calls.items():
                self.flush.fill_(turn)
                taken[name].append(self.microseconds(call))
            turn += 1
            if turn == 2:
                turns = min(turns, max(3, int(seconds*1e6/sum(times[1] for times in taken.values()))))
        return {name: statistics.median(times[2:]) for name, times in taken.items()}

    def rates(self) -> dict[str, float]:
        """Bytes a second of a copy, and operations a second of products by cuBLAS: bf16, f32, and 8 bits as twice bf16's."""
        source = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
        target = torch.empty_like(source)
        copy = self.medians({"copy": lambda: target.copy_(source)})["copy"]
        del source, target
        taken = {}
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False  # for all that is measured
        for name, dtype, size in (("bf16", torch.bfloat16, 8192), ("f32", torch.float32, 4096)):
            x = torch.randn(size, size, device="cuda", dtype=dtype)
            taken[name] = 2*size**3/self.medians({name: lambda: x @ x})[name]*1e6
        return {"copy": (2 << 30)/copy*1e6, **taken, "f8": 2*taken["bf16"], "i8": 2*taken["bf16"]}


def bound(case, rates) -> float:
    """Microseconds that the device takes at least: all bytes at a copy's rate, or all operations at their products' rates."""
    products = sum(count/rates[unit] for unit, count in case.operations.items())
    return max(case.bytes/rates["copy"], products)*1e6
