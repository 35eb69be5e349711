"""Averages, sums, TIES and DARE of adapters: what they add to the base, and PEFT's results."""

import numpy as np
import pytest

from adapter_bert_tf.adapters.config import AdapterConfig
from adapter_bert_tf.adapters.languages.stack import StackConfig
from adapter_bert_tf.adapters.methods.gated import GatedConfig
from adapter_bert_tf.adapters.methods.ia3 import Ia3Config
from adapter_bert_tf.adapters.methods.lora import LoraConfig
from adapter_bert_tf.adapters.methods.per_task import PerTaskConfig
from adapter_bert_tf.adapters.methods.union import UnionConfig
from adapter_bert_tf.adapters.presets import PRESETS
from adapter_bert_tf.store import SavedAdapter, contents
from adapter_bert_tf.store.combining.combine import average
from tests import support
from tests.interop.adapterhub_parity_test import BASE
from tests.refusals import raises_code

PLACED = {"ranks": {"layer_0/query": 3}, "alphas": {"layer_1/value": 5.0}}
LORAS = {
    "plain": LoraConfig(2, 6.0),
    "stabilized": LoraConfig(4, 6.0, rank_stabilized=True),
    "other ranks": LoraConfig(2, 6.0, **PLACED),
    "other ranks, stabilized": LoraConfig(2, 6.0, rank_stabilized=True, **PLACED),
}


@pytest.fixture(scope="module")
def base():
    from adapter_bert_tf.base import load_base

    return load_base(BASE)


def made(base, adapter, count=2):
    """Adapters with random weights, those that start at one near it."""
    config = support.adapter_config(base, None) | {"adapter": adapter.to_dict()}
    random, saved = np.random.default_rng(0), []
    for _ in range(count):
        values = {
            name: (spec.start == "ones") + random.normal(size=spec.shape).astype("f4") / 10
            for name, spec in adapter.specs(config["base"]).items()
            if spec.group not in adapter.borrowed_groups
        }
        head = {f"head/{name}": random.normal(size=3).astype("f4") for name in ("kernel", "bias")}
        saved.append(SavedAdapter(config, values | head))
    return saved


def changes(saved):
    """What an adapter adds to the kernels of the base, by the kernel's name."""
    adapter = contents.adapter_of(saved.config)
    sizes = saved.config["base"]
    values = {name: saved.weights[name] for name in adapter.specs(sizes)}
    hidden = sizes["hidden_size"]
    zeros = {
        f"bert/encoder/layer_{i}/attention/self/{name}/kernel": np.zeros((hidden, hidden))
        for i in range(sizes["num_layers"])
        for name in ("query", "value")
    }
    return adapter.merged(values, zeros)


@pytest.mark.parametrize("case", LORAS)
@pytest.mark.parametrize("shares", [(), (0.7, -0.3), (2.0, 1.0)])
def test_the_sum_of_loras_adds_the_sum_of_what_they_add(case, shares, base):
    saved = made(base, LORAS[case])
    first, second = map(changes, saved)
    one, two = shares or (0.5, 0.5)
    for name, change in changes(average(saved, "sum", shares)).items():
        np.testing.assert_allclose(change, one * first[name] + two * second[name], atol=1e-6)


LORA = LoraConfig(2, 6.0)
COMPOSITES = {
    "a stack": StackConfig(AdapterConfig(4), LORA, "en"),
    "gates": GatedConfig(LORA),
    "a union": UnionConfig((AdapterConfig(3), LORA, LoraConfig(3, 5.0, projections=("key",)))),
    "a union with gates": UnionConfig((GatedConfig(AdapterConfig(3)), GatedConfig(LORA))),
    "a stack on a union": StackConfig(AdapterConfig(4), UnionConfig((LORA, Ia3Config())), "en"),
    "tasks": PerTaskConfig(LORA, ("a", "b")),
}


def loras_of(adapter):
    """The configurations of LoRA in a composite one."""
    if isinstance(adapter, LoraConfig):
        return [adapter]
    inner = getattr(adapter, "members", ())
    inner += tuple(getattr(adapter, name, None) for name in ("member", "above", "adapter"))
    return [lora for part in inner for lora in loras_of(part)] if any(inner) else []


def products(saved):
    """What each LoRA adds, before its gates, by the beginning of its variables' names."""
    loras = loras_of(contents.adapter_of(saved.config))
    found = {}
    for name in (name for name in saved.weights if name.endswith("/lora_a")):
        path = name.removesuffix("/lora_a")
        *_, layer, projection = path.split("/")
        (lora,) = (lora for lora in loras if projection in lora.projections)
        a, b = (saved.weights[f"{path}/lora_{part}"].astype("f8") for part in "ab")
        found[path] = lora.factor_of(int(layer.removeprefix("layer_")), projection) * (a @ b)
    return found


@pytest.mark.parametrize("method", ["sum", "ties", "dare"])
@pytest.mark.parametrize("case", COMPOSITES)
def test_a_share_counts_once_for_the_product_of_factors(case, method, base):
    """Of two adapters of which one has no share, or of which the other is equal."""
    first, second = made(base, COMPOSITES[case])
    shares = (2.0, 0.0) if method == "sum" else (1.5, 0.5)
    combined = average([first, second if method == "sum" else first], method, shares, density=1.0)
    # TIES takes the mean: of the roots of the shares, for factors.
    expected = {"sum": 2.0, "dare": (1.5**0.5 + 0.5**0.5) ** 2}
    expected["ties"] = expected["dare"] / 4
    added = products(combined)
    assert added and added.keys() == products(first).keys()
    for path, product in products(first).items():
        np.testing.assert_allclose(added[path], expected[method] * product, atol=1e-6)
    shapes = {
        n: s.shape
        for n, s in contents.adapter_of(combined.config).specs(combined.config["base"]).items()
        if not n.startswith("below/")
    }
    assert {n: v.shape for n, v in combined.weights.items() if n in shapes} == shapes


@pytest.mark.parametrize("shares", [(), (0.7, -0.3)])
@pytest.mark.parametrize("case", COMPOSITES)
def test_the_sum_of_loras_in_other_methods(case, shares, base):
    """Their products add up; other variables add up each by itself, gates get the mean."""
    first, second = made(base, COMPOSITES[case])
    one, two = shares or (0.5, 0.5)
    combined = average([first, second], "sum", shares)
    for path, product in products(combined).items():
        expected = one * products(first)[path] + two * products(second)[path]
        np.testing.assert_allclose(product, expected, atol=1e-6, err_msg=path)
    for name in (name for name in combined.weights if "lora_" not in name):
        one_of, two_of = (saved.weights[name].astype("f8") for saved in (first, second))
        is_mean = "/gate_" in name or name.startswith("head/")
        total = one + two if is_mean else 1.0
        start = 1.0 if name.endswith("/scale") else 0.0
        expected = (one * (one_of - start) + two * (two_of - start)) / total + start
        np.testing.assert_allclose(combined.weights[name], expected, atol=1e-5, err_msg=name)


def test_ties_keeps_variables_of_one_element(base):
    """Half of one value is none."""
    first, second = made(base, AdapterConfig(1))
    biases = [name for name in first.weights if name.endswith("/down_bias")]
    combined = average([first, second], "ties").weights
    assert biases and all(combined[name].any() for name in biases)


@pytest.mark.parametrize("method", ["mean", "sum", "ties", "dare"])
@pytest.mark.parametrize(
    "adapter",
    [LoraConfig(2), Ia3Config(), AdapterConfig(3), PRESETS["pfeiffer+inv"], PRESETS["unipelt"]],
)
def test_equal_adapters_stay_as_they_are(method, adapter, base):
    (saved,) = made(base, adapter, 1)
    combined = average([saved, saved], method, density=1.0)
    for path, product in products(saved).items():
        np.testing.assert_allclose(products(combined)[path], product, atol=1e-6, err_msg=path)
    is_exact = method == "sum"  # Then the ranks of LoRA add up.
    for name, value in saved.weights.items():
        if is_exact and "/lora_" in name:
            continue
        np.testing.assert_allclose(combined.weights[name], value, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("method", ["sum", "ties", "dare"])
def test_what_starts_at_one_stays_near_it(method, base):
    """Vectors of (IA)^3 multiply: of what is left out, or counts little, one stays."""
    saved = made(base, Ia3Config())
    combined = average(saved, method, (0.1, 0.1), density=0.25)
    scales = [value for name, value in combined.weights.items() if name.endswith("/scale")]
    assert scales and all(np.abs(scale - 1).max() < 0.3 for scale in scales)
    summed = average(saved, "sum", (0.1, 0.1)).weights
    for name in (name for name in summed if name.endswith("/scale")):
        expected = 1 + sum(0.1 * (each.weights[name] - 1) for each in saved)
        np.testing.assert_allclose(summed[name], expected, atol=1e-6)


def test_a_share_counts_for_the_product_of_factors_in_a_union(base):
    """Of equal factors `ties` takes the mean of the shares' roots; gates stay as they are."""
    (saved,) = made(base, PRESETS["unipelt"].stored_config(), 1)
    combined = average([saved, saved], "ties", (0.25, 0.75), density=1.0).weights
    factors = {name for name in saved.weights if name.endswith("/lora_a")}
    root = (0.25**0.5 + 0.75**0.5) / 2
    for name in factors:
        np.testing.assert_allclose(combined[name], root * saved.weights[name], atol=1e-6)
    gates = {name for name in saved.weights if name.endswith("gate_kernel")}
    for name in gates:
        np.testing.assert_allclose(combined[name], saved.weights[name], atol=1e-6)
    assert factors and gates


# Our method, PEFT's, and the shares.
PEFTS = {
    "sum": ("sum", "cat", (0.7, 0.3)),
    "a negative share": ("sum", "cat", (1.5, -0.5)),
    "ties": ("ties", "ties", (0.7, 0.3)),
    "ties, a negative share": ("ties", "ties", (1.5, -0.5)),
    "dare that keeps all": ("dare", "dare_linear", (0.7, 0.3)),
}


@pytest.mark.parity
@pytest.mark.parametrize("case", PEFTS)
def test_as_pefts_weighted_adapters(case, base):
    import peft
    import torch
    from transformers import BertModel

    method, theirs, shares = PEFTS[case]
    density = 0.5 if method == "ties" else 1.0
    saved = made(base, LORAS["plain"])
    config = peft.LoraConfig(r=2, lora_alpha=6, target_modules=["query", "value"])
    model = peft.get_peft_model(BertModel.from_pretrained(BASE), config, "0")
    model.add_adapter("1", config)
    layers = model.base_model.model.encoder.layer
    modules = {
        f"{i}/{name}": getattr(layer.attention.self, name)
        for i, layer in enumerate(layers)
        for name in ("query", "value")
    }
    for number, each in enumerate(saved):
        for place, module in modules.items():
            for part, factors in (("a", module.lora_A), ("b", module.lora_B)):
                value = each.weights[f"adapters/layer_{place}/lora_{part}"].T
                factors[str(number)].weight.data = torch.tensor(value.copy())
    options = {"combination_type": theirs, "density": density if theirs != "cat" else None}
    model.add_weighted_adapter(["0", "1"], list(shares), "both", **options)
    combined = changes(average(saved, method, shares, density))
    for place, module in modules.items():
        layer, _, name = place.partition("/")
        kernel = combined[f"bert/encoder/layer_{layer}/attention/self/{name}/kernel"]
        expected = module.get_delta_weight("both").detach().numpy().T
        np.testing.assert_allclose(kernel, expected, atol=1e-6, err_msg=place)


def test_fields_that_an_earlier_version_did_not_record(base):
    now, before = made(base, PRESETS["houlsby"])
    config = {
        key: {**value} if isinstance(value, dict) else value for key, value in now.config.items()
    }
    config["tuning"] |= {"top_k": 2}
    del config["adapter"]["depth"], config["base"]["layer_norms_sha256"]
    before = SavedAdapter(config, before.weights)
    for pair in ([now, before], [before, now]):
        assert average(pair).weights.keys() == now.weights.keys()
    config["base"]["layer_norms_sha256"] = "0" * 64
    with raises_code("mismatch", "['base']"):
        average([now, before])
