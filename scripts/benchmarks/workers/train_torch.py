"""A training step of `torch.nn.Transformer` of the same sizes, all embeddings tied, with fused Adam."""

import math

import numpy as np
import torch
from protocol import serve, spec

given = spec()
torch.set_num_threads(given["threads"])
torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"


class Model(torch.nn.Module):
    """`nn.Transformer` between tied embeddings."""

    def __init__(self, vocabulary, layers, width, heads, inner, longest):
        super().__init__()
        self.embedding = torch.nn.Embedding(vocabulary, width)
        torch.nn.init.normal_(self.embedding.weight, std=width**-0.5)
        rates = torch.exp(torch.arange(0, width, 2) * (-math.log(10_000) / width))
        angles = torch.arange(longest)[:, None] * rates
        self.register_buffer("positions", torch.stack([angles.sin(), angles.cos()], -1).reshape(longest, width))
        self.dropout = torch.nn.Dropout(0.1)
        self.transformer = torch.nn.Transformer(width, heads, layers, layers, inner, 0.1, batch_first=True)
        self.scale = math.sqrt(width)

    def embed(self, ids):
        """[B, T] -> [B, T, D]."""
        return self.dropout(self.embedding(ids) * self.scale + self.positions[: ids.shape[1]])

    def forward(self, source, target):
        """Return the logits."""
        mask = self.transformer.generate_square_subsequent_mask(target.shape[1], device=device)
        x = self.transformer(self.embed(source), self.embed(target), tgt_mask=mask, tgt_is_causal=True)
        return x @ self.embedding.weight.T


vocabulary, batch = given["vocabulary"], given["batch"]
longest = max(given["source"], given["target"])
model = Model(vocabulary, given["num_layers"], given["d_model"], given["num_heads"], given["dff"], longest).to(device)
optimizer = torch.optim.Adam(model.parameters(), 1e-4, betas=(0.9, 0.98), eps=1e-9, fused=True)
loss_of = torch.nn.CrossEntropyLoss(label_smoothing=0.1)
rng = np.random.default_rng(0)
x = torch.from_numpy(rng.integers(4, vocabulary, (batch, given["source"]))).to(device)
y = torch.from_numpy(rng.integers(4, vocabulary, (batch, given["target"] + 1))).to(device)
is_half = given["dtype"] == "bfloat16"


def steps(count: int) -> None:
    """Train for so many steps."""
    for _ in range(count):
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device, torch.bfloat16, enabled=is_half):
            logits = model(x, y[:, :-1])
            loss = loss_of(logits.flatten(0, 1), y[:, 1:].flatten())
        loss.backward()
        optimizer.step()
    if device == "cuda":
        torch.cuda.synchronize()


serve(steps, parameters=sum(p.numel() for p in model.parameters()))
