"""Files of `tegula-eval export`, run as KernelBench runs an answer: the task's text first, the answer after it in the
same namespace, both modules made and called from the same seeds.

With TEGULA_KERNELBENCH=CHECKOUT by that repository's own unmodified eval.py, as far as it goes without a GPU; and
always by a few lines that do the same with tasks of our own.
"""
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import RIGHT, SCALE, TREE, module

from tegula_eval import cli
from tegula_eval.commands import exit_codes
from tegula_eval.commands.program_files import file_name
from tegula_eval.program import runner
from tegula_eval.rule.tasks import Task, find_tasks

package = runner.package_path()
if package is None:
    pytest.skip("there is no libtegula with the package tegula beside it", allow_module_level=True)

OURS = '''
import sys
import torch

def run(task, answer, trials):
    context = {}
    exec(task, context)
    given, draw = context["get_init_inputs"](), context["get_inputs"]
    torch.manual_seed(42)
    first = context["Model"](*given)
    exec(answer, context)
    torch.manual_seed(42)
    second = context["ModelNew"](*given)
    assert [name for name, _ in first.named_parameters()] == [name for name, _ in second.named_parameters()]
    with torch.no_grad():
        for trial in range(trials):
            torch.manual_seed(trial)
            inputs = draw()
            a, b = first(*inputs), second(*[one.clone() for one in inputs])
            if a.shape != b.shape or not torch.allclose(a, b, atol=1e-4, rtol=1e-4):
                return False
    return True

print("correct", run(*(open(path).read() for path in sys.argv[1:3]), 3))
'''

# What eval.py imports to ask models is not needed to judge an answer; without a GPU there is nothing to wait for.
THEIRS = '''
import importlib.util, sys, types
import torch

class Absent(types.ModuleType):
    def __getattr__(self, name):
        return lambda *arguments, **named: None

for name in ("dotenv", "tqdm", "openai", "litellm", "requests"):
    if importlib.util.find_spec(name) is None:
        sys.modules[name] = Absent(name)
if not torch.cuda.is_available():
    torch.cuda.synchronize = lambda device=None: None
sys.path.insert(0, sys.argv[3] + "/src")
from kernelbench import eval as judge

context = {}
Model, get_init_inputs, get_inputs = judge.load_original_model_and_inputs(open(sys.argv[1]).read(), context)
judge.set_seed(42)
given = get_init_inputs()
judge.set_seed(42)
original = Model(*given)
ModelNew = judge.load_custom_model(open(sys.argv[2]).read(), context)
judge.set_seed(42)
answer = ModelNew(*given)
result = judge.run_and_check_correctness(original, answer, get_inputs, metadata={}, num_correct_trials=3,
                                         device=torch.device("cpu"))
print("correct", result.correctness, result.metadata)
'''


def verdict(script, *arguments):
    done = subprocess.run([sys.executable, "-c", script, *map(str, arguments)], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(package)})
    assert done.returncode == 0, done.stderr[-3000:]
    return [line for line in done.stdout.splitlines() if line.startswith("correct")][-1].split()[1] == "True"


def exported(root, programs, out, *more):
    return cli.main(["export", f"--root={root}", f"--programs={programs}", f"--out={out}", "--bytes=64K",
                     "--flops=1e6", *more])


BUFFERS = SCALE.replace("        self.factor = factor", "        self.factor = factor\n"
                        "        self.bn = nn.BatchNorm1d(2 * features)\n"
                        "        self.register_buffer('shift', torch.rand(2 * features), persistent=False)").replace(
    "return torch.relu(self.fc(x)) * self.factor", "return (self.bn(self.fc(x)) + self.shift) * self.factor")

OF_BUFFERS = '''
kernel k(x: f32[M, K], fc_weight: f32[N, K], fc_bias: f32[N], bn_weight: f32[N], bn_bias: f32[N], shift: f32[N],
         window: float = 1.0, factor: f32) -> (y: f32[M, N]) {
  h[i, j] = sum(x[i, k]*fc_weight[j, k] for k) + fc_bias[j]
  m[j] = mean(h[i, j] for i)
  v[j] = mean((h[i, j] - m[j])**2 for i)
  y[i, j] = ((h[i, j] - m[j])*rsqrt(v[j] + 1e-5)*bn_weight[j] + bn_bias[j] + shift[j])*factor
}
'''

IN_PLACE = "kernel bump(x: inout f32[N, M]) { x[i, j] = x[i, j] + 1 }"


@pytest.mark.parametrize("task, program, is_right", [
    (SCALE, RIGHT, True),
    (SCALE, RIGHT.replace("fc_bias[j]", "1.01*fc_bias[j]"), False),
    (SCALE, "# 'quotes' ''' and \\ in a comment\n" + RIGHT, True),
    (BUFFERS, OF_BUFFERS, True),
    (module("return x + 1"), IN_PLACE, True),
])
def test_own_tasks(tmp_path, task, program, is_right):
    small = task.replace("1024 * 4", "12").replace("512", "10")
    (tmp_path / "level1").mkdir()
    (tmp_path / "level1" / "7_task.py").write_text(small)
    (tmp_path / "7_task.tgl").write_text(program)
    assert exported(tmp_path, tmp_path, tmp_path / "out") == 0
    written, = (tmp_path / "out").iterdir()
    assert written.name == "level_1_problem_7_sample_0_kernel.py"
    assert verdict(OURS, tmp_path / "level1" / "7_task.py", written) == is_right


def test_masks_and_labels_come_as_floats(tmp_path):
    """KernelBench's script brings every input to the type of the run."""
    (tmp_path / "7_task.py").write_text(module("return x * mask + label[:, None]",
                                               "torch.randn(rows, 8), torch.rand(rows, 8) > 0.5, torch.randint(9, (rows,))")
                                        .replace("forward(self, x)", "forward(self, x, mask, label)"))
    (tmp_path / "7_task.tgl").write_text("kernel k(x: f32[M, N], mask: bool[M, N], label: i64[M]) -> (y: f32[M, N]) "
                                         "{ y[i, j] = where(mask[i, j], x[i, j], 0.0) + f32(label[i]) }")
    assert exported(tmp_path, tmp_path, tmp_path / "out") == 0
    written, = (tmp_path / "out").iterdir()
    for script in (OURS, OURS.replace("inputs = draw()", "inputs = [one.float() for one in draw()]")):
        assert verdict(script, tmp_path / "7_task.py", written)


@pytest.mark.parametrize("task, program, is_right", [
    (SCALE, RIGHT, True),
    (SCALE, RIGHT.replace("fc_bias[j]", "1.01*fc_bias[j]"), False),
    (BUFFERS, OF_BUFFERS, True),
    (module("return x.add_(1)"), IN_PLACE.replace("bump", "not_in_place"), True),
])
def test_as_a_candidate(tmp_path, capsys, task, program, is_right):
    """A program is honest: the harness for files of strangers says so too."""
    (tmp_path / "7_task.py").write_text(task)
    (tmp_path / "7_task.tgl").write_text(program)
    assert exported(tmp_path, tmp_path, tmp_path / "out") == 0
    code = cli.main(["kernelbench", f"--root={tmp_path}", f"--candidates={tmp_path / 'out'}", "--plain", "--time",
                     "--timed-turns=3", f"--out={tmp_path / 'run'}", "--bytes=64K", "--flops=1e6"])
    told = capsys.readouterr().out
    assert code == (exit_codes.RIGHT if is_right else exit_codes.NOT_RIGHT) and ("7_task: wrong (value)" in told) != is_right, told


def test_what_cannot_be_written_is_told(root, tmp_path, capsys):
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "3_Scale.tgl").write_text(RIGHT.replace("fc_bias", "bias"))
    (programs / "11_Negate.tgl").write_text("kernel negate(x: f32[N, M]) -> (y: f32[N, M]) { y[i, j] = -x[i, j] }")
    assert exported(root, programs, tmp_path / "out") == 1
    assert "level1/3_Scale: binding (no-tensor)" in capsys.readouterr().err
    assert [one.name for one in (tmp_path / "out").iterdir()] == ["level_2_problem_11_sample_0_kernel.py"]


def test_of_a_run(root, tmp_path):
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "3_Scale.tgl").write_text(RIGHT)
    (programs / "11_Negate.tgl").write_text("kernel negate(x: f32[N, M]) -> (y: f32[N, M]) { y[i, j] = x[i, j] }")
    run = ["kernelbench", f"--root={root}", f"--programs={programs}", f"--out={tmp_path / 'run'}", "--plain"]
    assert cli.main([*run, "--bytes=64K", "--flops=1e6"]) == 1
    command = ["export", f"--root={root}", f"--run={tmp_path / 'run'}", f"--out={tmp_path / 'out'}"]
    assert cli.main(command) == 0
    assert [one.name for one in (tmp_path / "out").iterdir()] == ["level_1_problem_3_sample_0_kernel.py"]  # the right one
    (programs / "3_Scale.tgl").unlink()
    assert cli.main(command) == exit_codes.WRONG_CALL


def test_names():
    assert file_name(Task(2, "017_a", Path())) == "level_2_problem_17_sample_0_kernel.py"
    assert file_name(Task(0, "17_a", Path())) == "17_a.py" and file_name(Task(1, "a", Path()), 2) == "a_sample_2.py"


@pytest.mark.skipif("TEGULA_KERNELBENCH" not in os.environ, reason="TEGULA_KERNELBENCH names no checkout of KernelBench")
@pytest.mark.parametrize("number", os.environ.get("TEGULA_KERNELBENCH_TASKS",
                                                  "1/1,1/36,1/90,1/93,2/73,2/34,3/4,3/36").split(","))
def test_with_kernelbench(number, tmp_path):
    """At smaller sizes, which a CPU can do: the task's text with other integers in it."""
    from tegula_eval.rule.variants import find_variants
    checkout = Path(os.environ["TEGULA_KERNELBENCH"])
    task, = find_tasks(checkout, None, [number])
    small = tmp_path / f"level{task.level}" / f"{task.name}.py"
    small.parent.mkdir()
    small.write_text(find_variants(task.source(), 1 << 20, 1 << 24)[0].source)
    assert exported(tmp_path, TREE / "bench" / "kernelbench" / "programs", tmp_path / "out") == 0
    written, = (tmp_path / "out").iterdir()
    assert verdict(THEIRS, small, written, checkout)
    written.write_text(written.read_text().replace("return KERNEL(", "return 1.1 * KERNEL("))
    assert not verdict(THEIRS, small, written, checkout)
