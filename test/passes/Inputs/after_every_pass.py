"""after_every_pass.py ROOT FOLDER: puts a new pass behind each one of Passes.td, in a copy under FOLDER, and looks at
the pipeline: one call is added, in the block of the pass that it follows, and no branch of an `if` changes."""

import pathlib
import re
import shutil
import subprocess
import sys

root, folder = map(pathlib.Path, sys.argv[1:])
flags = re.findall(r'^def \w+Pass : Pass<"([^"]+)"', (root / "passes" / "Passes.td").read_text(), re.MULTILINE)
flags.remove("tgl-verify-phase")  # stands between phases, not in the pipeline
before = (root / "passes" / "Pipeline.cpp").read_text().splitlines()
CALL = "pipeline.add(createDoNothingPass());"


def is_branch(line):
    """Whether the next statement is the only one of an `if` or `else`."""
    return re.fullmatch(r"(\} )?(else )?if \(.*\)|(\} )?else", line.strip()) is not None


def depth(lines):
    return sum(line.count("{") - line.count("}") for line in lines)


for flag in flags:
    shutil.rmtree(folder, ignore_errors=True)
    for part in ("passes", "test/passes"):
        (folder / part).mkdir(parents=True)
    for name in ("Passes.td", "CMakeLists.txt", "Pipeline.cpp"):
        shutil.copy(root / "passes" / name, folder / "passes")
    subprocess.run([sys.executable, root / "docs" / "dev" / "new_pass.py", "DoNothing", "--after", flag, "--root",
                    folder], check=True, stdout=subprocess.DEVNULL)
    after = (folder / "passes" / "Pipeline.cpp").read_text().splitlines()
    added = [line for line in after if "DoNothing" in line or line.strip() == "// Do nothing."]
    assert len(added) == 2 + (added[0].strip() == "// Do nothing."), (flag, added)
    assert [line for line in after if line not in added] == [line for line in before if line not in added], flag
    at = next(index for index, line in enumerate(after) if line.strip() == CALL)
    previous = next(line for line in reversed(after[:at]) if not line.strip().startswith("//"))
    following = next(line for line in after[at + 1:] if line.strip())
    assert not is_branch(previous), (flag, previous)
    assert not following.strip().startswith("else"), (flag, following)
    indent = len(after[at]) - len(after[at].lstrip())
    start = next(index for index, line in enumerate(after) if re.match(r"static void add\w*Passes\(", line))
    assert indent == 2 * depth(after[start:at]), (flag, after[at])
tile_flags = re.findall(r'^def \w+Pass : Pass<"([^"]+)"', (root / "passes" / "tile" / "TilePasses.td").read_text(), re.MULTILINE)
before = (root / "passes" / "tile" / "TilePipeline.cpp").read_text().splitlines()
for flag in tile_flags:
    shutil.rmtree(folder, ignore_errors=True)
    for part in ("passes/tile", "test/passes"):
        (folder / part).mkdir(parents=True)
    for name in ("tile/TilePasses.td", "CMakeLists.txt", "tile/TilePipeline.cpp"):
        shutil.copy(root / "passes" / name, folder / "passes" / name)
    subprocess.run([sys.executable, root / "docs" / "dev" / "new_pass.py", "--tile", "DoNothing", "--after", flag,
                    "--root", folder], check=True, stdout=subprocess.DEVNULL)
    after = (folder / "passes" / "tile" / "TilePipeline.cpp").read_text().splitlines()
    added = [line for line in after if "DoNothing" in line]
    assert len(added) == 2, (flag, added)
    assert [line for line in after if line not in added] == before, flag
print(f"behind each of {len(flags)} passes, and of {len(tile_flags)} over tiles")
