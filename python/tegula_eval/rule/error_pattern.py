"""Where wrong elements lie, in words: over tiles, edges, rows."""
from __future__ import annotations

import torch

TILES = (512, 256, 128, 64, 32, 16, 8, 4, 2)


def describe(wrong: torch.Tensor) -> str:
    """`wrong`: bool, one for each element. A clause for each dim along which not every index is concerned."""
    if wrong.dim() == 0 or bool(wrong.all()):
        return "every element"
    clauses = []
    for dim, size in enumerate(wrong.shape):
        others = [other for other in range(wrong.dim()) if other != dim]
        concerned = wrong.any(dim=others) if others else wrong
        places = torch.nonzero(concerned).flatten().tolist()
        if len(places) < size:
            clauses.append(f"in dim {dim} {_places(places, size)}")
    return "; ".join(clauses) if clauses else f"{int(wrong.sum())} elements all over"


def _places(places: list[int], size: int) -> str:
    first, last, count = places[0], places[-1], len(places)
    if count == 1:
        return f"only {first} of {size}" + (", the last" if first == size - 1 else "")
    if count == last - first + 1:
        if last == size - 1:
            tile = next((one for one in TILES if first % one == 0 and first), None)
            inside = f", all past the last whole tile of {tile}" if tile and size - first < tile else ""
            return f"only {first} and above of {size}{inside}"
        return f"only {first} to {last} of {size}"
    steps = {b - a for a, b in zip(places, places[1:])}
    if len(steps) == 1:
        return f"every {steps.pop()}th from {first}, of {size}"
    for tile in reversed(TILES):
        inside = {place % tile for place in places}
        if len(inside) <= tile // 4 and count == sum(place % tile in inside for place in range(size)):
            return f"only {', '.join(map(str, sorted(inside)[:4]))}{' ...' if len(inside) > 4 else ''} within " \
                   f"each {tile}, of {size}"
    return f"{count} of {size} places"
