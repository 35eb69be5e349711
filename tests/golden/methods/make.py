"""Writes the files beside it with PEFT and `adapters`, one step of training for each method.

pip install torch==2.13.0 adapters==1.3.0 peft==0.21.2, then `python tests/golden/methods/make.py`.
"""

import pathlib
import re

import adapters
import numpy as np
import peft
import torch
from transformers import BertForSequenceClassification

HERE = pathlib.Path(__file__).parent
BASE = HERE.parent / "adapterhub" / "base"
NAME = "x"
RATE = 0.3  # Of SGD.
LABELS = torch.tensor([0, 2, 1, 1])
FEED_FORWARD = r".*layer\.\d+\.output\.dense"
PREFIX = {"prefix_length": 3, "bottleneck_size": 5}
# Dict from the name of a file to the configuration of the library.
CONFIGS = {
    "lora": peft.LoraConfig(r=4, lora_alpha=6, task_type="SEQ_CLS"),
    "lora_patterns": peft.LoraConfig(
        r=4,
        lora_alpha=6,
        task_type="SEQ_CLS",
        target_modules=["query", "key", "value", "dense"],
        exclude_modules=["pooler.dense", "bert.pooler.dense"],
        use_rslora=True,
        rank_pattern={r"layer\.1\.intermediate\.dense": 2},
        alpha_pattern={r"layer\.0\.attention\.self\.query": 3},
    ),
    "ia3": peft.IA3Config(
        task_type="SEQ_CLS",
        target_modules=rf".*(key|value)|{FEED_FORWARD}",
        feedforward_modules=FEED_FORWARD,
    ),
    "lora_hub": adapters.LoRAConfig(r=4, alpha=6, intermediate_lora=True, output_lora=True),
    "ia3_hub": adapters.IA3Config(),
    "prefix": adapters.PrefixTuningConfig(**PREFIX),
    "prefix_flat": adapters.PrefixTuningConfig(flat=True, prefix_length=3, leave_out=[0]),
    "compacter": adapters.CompacterConfig(reduction_factor=4, phm_dim=2, phm_rank=2),
    "compacter++": adapters.CompacterPlusPlusConfig(reduction_factor=2, phm_dim=4),
    "mam": adapters.MAMConfig(
        adapters.PrefixTuningConfig(**PREFIX), adapters.ParBnConfig(reduction_factor=4)
    ),
    "unipelt": adapters.UniPELTConfig(
        adapters.PrefixTuningConfig(**PREFIX),
        adapters.SeqBnConfig(reduction_factor=4),
        adapters.LoRAConfig(r=4, alpha=6),
    ),
}
# Parts of the libraries' names, and ours for the projections and sublayers of a block.
PLACES = {
    "attention.self.query": "query",
    "attention.self.key": "key",
    "attention.self.value": "value",
    "attention.output.dense": "attention_output",
    "intermediate.dense": "intermediate",
    "output.dense": "output",
    "attention.output": "attention",
    "output": "feed_forward",
}
LAYER = re.compile(
    rf"encoder\.layer\.(\d)\.({'|'.join(map(re.escape, PLACES))})\."
    rf"(?:loras\.{NAME}\.|adapters\.{NAME}\.)?(.+)"
)
PARTS = {
    "adapter_down.0.W_left": "down_left",
    "adapter_down.0.W_right": "down_right",
    "adapter_down.0.b": "down_bias",
    "adapter_down.0.weight": "down_kernel",
    "adapter_down.0.bias": "down_bias",
    "adapter_up.W_left": "up_left",
    "adapter_up.W_right": "up_right",
    "adapter_up.b": "up_bias",
    "adapter_up.weight": "up_kernel",
    "adapter_up.bias": "up_bias",
    "gate.weight": "gate_kernel",
    "gate.bias": "gate_bias",
}


def main():
    """For each method: our names with the values before the step, and the logits around it."""
    for name, config in CONFIGS.items():
        torch.manual_seed(0)
        model = BertForSequenceClassification.from_pretrained(BASE, num_labels=3)
        if isinstance(config, peft.PeftConfig):
            model = peft.get_peft_model(model, config)
        else:
            adapters.init(model)
            model.add_adapter(NAME, config=config)
            model.train_adapter(NAME)
        model.eval()
        trained = {n: p for n, p in model.named_parameters() if p.requires_grad}
        for parameter in trained.values():
            torch.nn.init.normal_(parameter, std=0.3)
        np.savez(HERE / f"{name}.npz", **step(name, model, trained))


def step(name, model, trained):
    """The arrays of a method's file."""
    ids = torch.tensor([[2, 7, 9, 11, 3], [2, 11, 3, 0, 0], [2, 20, 8, 3, 0], [2, 5, 6, 3, 0]])
    if name == "unipelt":  # Its gates read padding; ours do not.
        ids = ids[:, :3]
    inputs = {"input_ids": ids, "attention_mask": (ids > 0).long()}
    arrays = {"ids": ids.numpy(), "labels": LABELS.numpy(), "rate": RATE}
    arrays |= {f"value/{n}": v for n, v in ours(name, trained).items()}
    optimizer = torch.optim.SGD(trained.values(), RATE)
    output = model(**inputs, labels=LABELS)
    output.loss.backward()
    arrays["before"] = output.logits.detach().numpy().copy()
    optimizer.step()
    with torch.no_grad():
        arrays["after"] = model(**inputs).logits.numpy()
    return arrays


def ours(name, trained):
    """Dict from our names to the values of the trained parameters."""
    values = {}
    for key, parameter in trained.items():
        value = parameter.detach().numpy().copy()
        place = LAYER.search(key)
        if "classifier" in key:
            head = key.rpartition(".")[2].replace("weight", "kernel")
            values[f"head/{head}"] = value.T
        elif "prefix_gates" in key:
            layer = key.split(".layer.")[1][0]
            values[f"adapters/layer_{layer}/prefix/{PARTS['gate.' + key.rpartition('.')[2]]}"] = (
                value.T
            )
        elif "prefix_tunings" in key:
            values |= prefix(key, value)
        elif "phm_rule" in key:
            values["adapters/rule"] = value
        else:
            layer, part = f"adapters/layer_{place[1]}", place[3]
            projection = PLACES[place[2]]
            if "lora_A" in part:
                values[f"{layer}/{projection}/lora_a"] = value.T
            elif "lora_B" in part and not name.startswith("ia3"):
                values[f"{layer}/{projection}/lora_b"] = value.T
            elif name.startswith("ia3"):
                projection = "activation" if projection == "output" else projection
                values[f"{layer}/{projection}/scale"] = value.reshape(-1)
            else:
                values[f"{layer}/{projection}/{PARTS[part]}"] = (
                    value.T if part.endswith("weight") else value
                )
    return values


def prefix(key, value):
    """The parameters of a prefix; the last dense layer has two parts for each layer."""
    shared = "adapters/prefix"
    if key.endswith("wte.weight"):
        return {f"{shared}/embedding": value}
    if "control_trans.0" in key:
        is_bias = key.endswith("bias")
        return {f"{shared}/down_{'bias' if is_bias else 'kernel'}": value.T}
    if "control_trans.2" in key:
        last, parts = ("up_bias", value) if key.endswith("bias") else ("up_kernel", value.T)
        names = [f"adapters/layer_{i}/{n}/{last}" for i in range(2) for n in ("key", "value")]
        return dict(zip(names, np.split(parts, 4, -1), strict=True))
    parts = value.reshape(3, 2, 16)  # Flat, of the upper layer alone.
    return {f"adapters/layer_1/{n}/prefix": parts[:, i] for i, n in enumerate(("key", "value"))}


if __name__ == "__main__":
    main()
