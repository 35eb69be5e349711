"""Writes the files beside it with the real library: pip install torch==2.13.0 adapters==1.3.0."""

import pathlib

import numpy as np
import torch
from adapters import AutoAdapterModel, DoubleSeqBnConfig, ParBnConfig, SeqBnConfig
from safetensors.torch import save_file
from transformers import BertConfig

HERE = pathlib.Path(__file__).parent
CONFIGS = {
    "houlsby": DoubleSeqBnConfig(reduction_factor=4),
    "pfeiffer": SeqBnConfig(reduction_factor=4, leave_out=[0]),
    "parallel": ParBnConfig(reduction_factor=4),
}


def main():
    """A random base, three adapters with random weights and heads, and their logits."""
    torch.manual_seed(0)
    model = AutoAdapterModel.from_config(
        BertConfig(
            vocab_size=48,
            hidden_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=32,
            max_position_embeddings=24,
        )
    )
    for name, config in CONFIGS.items():
        model.add_adapter(name, config=config)
        model.add_classification_head(name, num_labels=3, id2label={0: "no", 1: "maybe", 2: "yes"})
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    (HERE / "base").mkdir(exist_ok=True)
    model.base_model.config.save_pretrained(HERE / "base")
    weights = {
        name: value
        for name, value in model.bert.state_dict().items()
        if name.startswith(("embeddings", "encoder", "pooler")) and "adapters" not in name
    }
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{i}" for i in range(5, 48))]
    (HERE / "base" / "vocab.txt").write_text("\n".join(pieces) + "\n")
    save_file(weights, HERE / "base" / "model.safetensors")
    model.eval()
    ids = torch.randint(5, 48, (4, 9))
    mask = torch.tensor([[1] * n + [0] * (9 - n) for n in (9, 7, 4, 2)])
    figures = {"ids": ids.numpy(), "mask": mask.numpy()}
    for name in CONFIGS:
        (HERE / name).mkdir(exist_ok=True)
        model.save_adapter(str(HERE / name), name, use_safetensors=True)
        model.set_active_adapters(name)
        model.active_head = name
        with torch.no_grad():
            figures[name] = model(ids, attention_mask=mask).logits.numpy()
    np.savez(HERE / "logits.npz", **figures)


if __name__ == "__main__":
    main()
