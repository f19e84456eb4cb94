import pytest
from conftest import SCALE, module

from tegula_eval.rule.tasks import TaskError
from tegula_eval.rule.variants import Search, Sizes, build, find_variants, from_json, measure, to_json


def test_sizes_are_found_where_they_are_written():
    text = "import torch\nrows = 1024 * 2\nH, W = 16, 32\nshape = (rows, 3)\nflag = True\nscale = 2.0\n" \
           "def get_inputs():\n    return [torch.rand(rows, 224)]\n"
    sizes = Sizes(text)
    assert sorted(sizes.values()) == [3, 16, 32, 224, 2048]
    assert "rows = 7" in sizes.text((7,) + sizes.values()[1:])
    assert "rows = 2048" in sizes.text(sizes.values())


def test_smaller_and_ragged():
    ragged, small = find_variants(SCALE, max_bytes=1 << 18, max_flops=1 << 24)
    assert (ragged.name, small.name) == ("ragged", "small")
    assert small.cost.bytes <= 1 << 18
    rows, features = build(ragged.source).inputs[0].shape
    assert rows % 2 == 1 and features % 2 == 1
    assert "4096 -> " in ragged.changed
    assert from_json(to_json([small]))[0].source == small.source


def test_divisibility_is_kept():
    text = module("return torch.nn.functional.group_norm(x, groups)", "torch.rand(rows, channels, 64)",
                  "rows = 512\nchannels = 96\ngroups = 8")
    for variant in find_variants(text, max_bytes=1 << 16, max_flops=1 << 20):
        assert build(variant.source).inputs[0].shape[1] % 8 == 0


def test_sizes_that_shrink_together():
    text = module("return x.reshape(left, right).sum(0)", "torch.rand(total)",
                  "total = 4096\nleft = 64\nright = 64")
    small = find_variants(text, max_bytes=1 << 12, max_flops=1)[-1]
    assert small.cost.bytes <= 1 << 12


def test_number_of_layers_stays():
    text = SCALE.replace("self.fc = nn.Linear(features, 2 * features)",
                         "self.fc = nn.Sequential(*[nn.Linear(features, features) for _ in range(layers)])")
    text = text.replace("rows = 1024 * 4", "rows = 4096\nlayers = 64")
    for variant in find_variants(text, max_bytes=1 << 20, max_flops=1 << 22):
        assert len(build(variant.source).model.state_dict()) == 128


def test_small_task_is_its_own_variant():
    assert [one.name for one in find_variants(module("return -x", "torch.rand(3, 2)", ""))] == ["own"]


def test_module_that_computes_with_values():
    text = module("return x*int((x > 2).sum().item() + 1)", "torch.rand(rows, 64)", "rows = 4096")
    assert find_variants(text, max_bytes=1 << 16, max_flops=1)


def test_module_that_never_runs():
    with pytest.raises(TaskError):
        find_variants(module("return x @ x", "torch.rand(3, 5)"))


def test_depth_counts_added_terms():
    assert measure(module("return x @ x.T", "torch.rand(9, 333)")).depth == pytest.approx(334)
    assert measure(module("return x.sum(1)", "torch.rand(9, 333)")).depth == pytest.approx(334)
    assert measure(module("return x + 1", "torch.rand(9, 333)")).depth == 1


def network(pixels="pixels = 224", layer="torch.nn.Conv2d(3, 8, 3)", first=""):
    """A module whose parameters, fixed in its text, are above any budget."""
    text = module("return self.fc(self.conv(x).mean((2, 3)))", "torch.rand(batch, 3, pixels, pixels)",
                  f"batch = 64\n{pixels}")
    return text.replace("def forward", f"""def __init__(self):
        super().__init__()
        {first}
        self.conv = {layer}
        self.fc = torch.nn.Linear(8, 1 << 16)

    def forward""")


def test_fixed_parameters_do_not_shrink_images_to_a_pixel():
    small = find_variants(network(), max_bytes=1 << 16, max_flops=1 << 16)[-1]
    assert build(small.source).inputs[0].shape[2] >= 28
    assert small.cost.bytes <= 1 << 26


def test_constructor_that_reads_numbers_out_of_tensors():
    text = network(first="assert [one.item() for one in torch.linspace(0, 1, 3)] == [0, 0.5, 1]")
    search = Search(text)
    assert search.how == "moved" and search.smaller(1 << 16, 1 << 16)


def test_long_loop_starts_from_small_sizes():
    text = module("for step in range(x.shape[0]):\n            x = x + x[step]\n        return x",
                  "torch.rand(steps, 64)", "steps = 30000")
    search = Search(text)
    assert search.is_slow
    values, cost = search.smaller(1 << 20, 1)
    assert values[0] < 2000 and len(search.tried) < 20


@pytest.mark.parametrize("max_bytes", [1 << 12, 1 << 14, 1 << 16, 1 << 20])
def test_images_stay_larger_than_windows(max_bytes):
    """On the meta device a window one larger than the image gives a result without elements, and no error."""
    text = module("return torch.nn.functional.conv2d(x, torch.ones(1, 1, 5, 9), dilation=(2, 3))",
                  "torch.rand(rows, 1, H, W)", "rows = 8\nH = 128\nW = 256")
    for variant in find_variants(text, max_bytes=max_bytes, max_flops=1 << 30):
        assert measure(variant.source, "cpu").bytes > 0
