"""Adapter modules must not take names, groups or layers of the base, or another kind's name."""

import dataclasses
from typing import Any, ClassVar

import pytest

from adapter_bert_tf.adapters.config import AdapterConfig
from adapter_bert_tf.adapters.modules import AdapterModule
from adapter_bert_tf.adapters.registry import MODULE_KINDS, ModuleConfig, module_for, register
from adapter_bert_tf.adapters.task_encoder import new_encoder
from adapter_bert_tf.adapters.variable_specs import VariableSpec
from adapter_bert_tf.heads.classifier import Classifier
from adapter_bert_tf.training.tuning import Tuning, select_trained
from tests.adapters.encoder_test import SIZES
from tests.refusals import raises_code

GAMMA = "bert/encoder/layer_0/output/LayerNorm/gamma"
WRONG = {
    "a name of the base": (GAMMA, VariableSpec((16,), "adapters", 0)),
    "a name below the base": ("bert/mine", VariableSpec((16,), "adapters", 0)),
    "a name of the head": ("head/kernel", VariableSpec((16,), "adapters")),
    "a layer that is not there": ("adapters/mine", VariableSpec((16,), "adapters", 99)),
    "a group of the base": ("adapters/mine", VariableSpec((16,), "LayerNorm", 0)),
}


@register("of_one_variable")
@dataclasses.dataclass(frozen=True)
class OfOneVariable(ModuleConfig):
    """Has the variable that a test gives it, and does nothing with it."""

    layers: tuple[int, ...] = (0, 1)

    groups: ClassVar[tuple[str, ...]] = ("on its own",)
    variable: ClassVar[Any] = ("own/mine", VariableSpec((3,), "layers"))

    def specs(self, sizes):
        return dict([self.variable])


module_for(OfOneVariable)(AdapterModule)


@pytest.fixture
def model(monkeypatch):
    """Function of a variable that returns a classifier with it."""

    def make(variable):
        monkeypatch.setattr(OfOneVariable, "variable", variable)
        return Classifier(new_encoder(SIZES, OfOneVariable()), 2)

    return make


@pytest.mark.parametrize("case", WRONG)
def test_variables_beside_the_base_are_its_own(case, model):
    with raises_code("invalid", "LayerNorm"):
        model(WRONG[case])


def test_a_tuning_that_finds_nothing_to_train_says_what_is_there(model):
    made = model(("own/mine", VariableSpec((3,), "on its own", 0)))
    with raises_code("invalid", "'on its own'"):
        select_trained(made, Tuning())


def test_a_name_stands_for_one_kind():
    with pytest.raises(ValueError, match=r"The kind 'bottleneck' is .*AdapterConfig"):
        register("bottleneck")(OfOneVariable)
    assert MODULE_KINDS["bottleneck"] is AdapterConfig
    assert register("of_one_variable")(OfOneVariable) is OfOneVariable  # A module read again.


def test_a_config_read_back_is_equal():
    config = OfOneVariable((1,))
    read = ModuleConfig.from_json(config.to_json())
    assert read == config and hash(read) == hash(config)


def test_an_unknown_kind_says_how_to_make_it_known():
    with raises_code("invalid"):
        ModuleConfig.from_dict({"kind": "never heard of"})
