#!/bin/bash
# NNCF: strip leaves out what LoRA has learned, in the format that is the default.
#
# Run on 2026-11-30, Python 3.11, Linux x86-64:
#   nncf 3.4.0, torch 2.13.0; differences of the answers
#   int8_sym, LoRA of zeros: NATIVE 0.01, DQ 0.00, IN_PLACE 0.00
#   int8_sym, LoRA trained: NATIVE 1.63, DQ 0.00, IN_PLACE 0.00
#     trained, NATIVE, and LoRA of zeros before strip: 0.01
#   int8_asym, LoRA of zeros: NATIVE 0.00, DQ 0.00, IN_PLACE 0.00
#   int8_asym, LoRA trained: NATIVE 2.04, DQ 0.00, IN_PLACE 0.00
#     trained, NATIVE, and LoRA of zeros before strip: 0.00
# Expected: "The functionality of the model object is still preserved as a compressed model", as the description of
#   strip says, or an error. For 4 bits the default format is refused with an error.
# Seen: `replace_quantizer_to_torch_native_module` (torch/function_hook/strip.py) puts a FakeQuantize of PyTorch in the
#   place of each quantizer, with its range alone. The weights stay those of the base; a quantizer of the format FQ_LORA
#   or FQ_LORA_NLS would have added B @ A to them. So the stripped model is the quantized base, without a message.
# Affects models that were trained with CompressionFormat.FQ_LORA and 8 bits, and stripped by nncf.strip with an
#   example input and no strip_format. DQ and IN_PLACE keep the adapters.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile torch==2.13.0 torchao==0.18.0 nncf==3.4.0 2> /dev/null
cat > "$folder/find.py" <<'PYTHON'
import contextlib
import logging
import sys
from importlib.metadata import version

import nncf
import torch

nncf.set_log_level(logging.ERROR)
torch.manual_seed(0)
TOKENS = torch.arange(12)[None]
FORMATS = [nncf.StripFormat.NATIVE, nncf.StripFormat.DQ, nncf.StripFormat.IN_PLACE]


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.one, self.two = torch.nn.Embedding(32, 64), torch.nn.Linear(64, 64), torch.nn.Linear(64, 64)

    def forward(self, tokens):
        return self.two(self.one(self.tokens(tokens)))


def answers(model):
    with torch.no_grad():
        return model(TOKENS)


def difference(one, other):
    return float((one - other).abs().max())


print(f"nncf {version('nncf')}, torch {torch.__version__.split('+')[0]}; differences of the answers")
failed = False
for mode in nncf.CompressWeightsMode.INT8_SYM, nncf.CompressWeightsMode.INT8_ASYM:
    with contextlib.redirect_stdout(sys.stderr):
        model = nncf.compress_weights(
            Model().eval(),
            mode=mode,
            compression_format=nncf.CompressionFormat.FQ_LORA,
            dataset=nncf.Dataset([TOKENS]),
            advanced_parameters=nncf.AdvancedCompressionParameters(lora_adapter_rank=4),
        )
    trained = []
    for learned in False, True:
        with torch.no_grad():
            for name, weight in model.named_parameters():
                if name.endswith(("lora_A", "lora_B")):
                    torch.nn.init.normal_(weight, std=0.2 * learned)
        wanted = answers(model)
        trained.append(wanted)
        found = [answers(nncf.strip(model, strip_format=one, example_input=TOKENS)) for one in FORMATS]
        print(f"{mode.value}, LoRA {'trained' if learned else 'of zeros'}:", end=" ")
        print(", ".join(f"{one.name} {difference(got, wanted):.2f}" for one, got in zip(FORMATS, found)))
        failed |= [difference(got, wanted) > 0.1 for got in found] != [learned, False, False]
    known = difference(found[0], trained[0])
    print(f"  trained, NATIVE, and LoRA of zeros before strip: {known:.2f}")
    failed |= known > 0.1
sys.exit(failed)
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
