"""PyTorch's `adapters` for `benchmarks.gpu_rows`, with random weights; imports no TensorFlow."""

import contextlib
import time


def _model(sizes, length=512):
    import adapters
    import torch
    import transformers

    hidden, layers, heads, inner = sizes
    config = transformers.BertConfig(
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=inner,
    )
    model = adapters.BertAdapterModel(config)
    factor = max(1, hidden / 64)
    model.add_adapter("task", config=adapters.DoubleSeqBnConfig(reduction_factor=factor))
    model.add_classification_head("task", num_labels=2)
    model.train_adapter("task")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.backends.cuda.matmul.allow_tf32 = True
    return model.to(device), device


def _autocast(device, use):
    import torch

    return torch.autocast(device, dtype=torch.bfloat16) if use else contextlib.nullcontext()


def step(sizes, length, mode, steps, batch=32):
    """Milliseconds of a training step; `mode` is `eager` (TF32), `bf16`, or `compile` with both."""
    import torch

    model, device = _model(sizes)
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-4)
    run = torch.compile(model) if mode == "compile" else model
    inputs = {
        "input_ids": torch.randint(5, 30000, (batch, length), device=device),
        "attention_mask": torch.ones((batch, length), dtype=torch.long, device=device),
        "labels": torch.zeros(batch, dtype=torch.long, device=device),
    }
    model.train()
    ends = [time.perf_counter()]
    for _ in range(steps + 5):
        optimizer.zero_grad()
        with _autocast(device, mode != "eager"):
            loss = run(**inputs).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        loss.item()  # Waits, as a training loop does that reports the loss.
        ends.append(time.perf_counter())
    peak = torch.cuda.max_memory_allocated() / 2**20 if device == "cuda" else None
    return {
        "device": torch.cuda.get_device_name() if device == "cuda" else "CPU",
        "ms": 1000 * (ends[-1] - ends[5]) / steps,
        "first_step_seconds": ends[1] - ends[0],
        "peak_mb": peak,
    }


def score(sizes, rows, batch=32):
    """Rows/s of batches that are sorted by length and padded to their longest, in bfloat16."""
    import torch

    model, device = _model(sizes)
    lengths = sorted(6 + i % 40 for i in range(rows))
    batches = [lengths[i : i + batch] for i in range(0, rows, batch)]
    model.eval()

    def run(part):
        ids = torch.full((len(part), part[-1]), 9, device=device)
        mask = (torch.arange(part[-1])[None] < torch.tensor(part)[:, None]).long().to(device)
        with torch.no_grad(), _autocast(device, True):
            return model(input_ids=ids, attention_mask=mask).logits.float().softmax(-1).cpu()

    for part in batches[:10]:
        run(part)
    start = time.perf_counter()
    for part in batches:
        run(part)
    return {"device": device, "rows_per_second": rows / (time.perf_counter() - start)}
