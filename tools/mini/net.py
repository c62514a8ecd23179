"""The model in torch, for training: a Llama-style decoder. Its weights have the names that the export reads."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from dragoman.local_engine.export.spec import ModelSpec

__all__ = ["Net"]


class Net(nn.Module):
    """Turns token ids (batch, length) into the last layer's normed states; `logits` turns states into logits."""

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(spec.vocab, spec.hidden)
        self.layers = nn.ModuleList(_Layer(spec) for _ in range(spec.layers))
        self.norm = nn.RMSNorm(spec.hidden, eps=spec.epsilon)
        nn.init.normal_(self.embed_tokens.weight, std=0.05)
        angles = torch.outer(torch.arange(spec.max_positions).float(), _frequencies(spec))
        self.register_buffer("cos", angles.cos().repeat(1, 2), persistent=False)
        self.register_buffer("sin", angles.sin().repeat(1, 2), persistent=False)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        stream = self.embed_tokens(ids)
        cos, sin = self.cos[: ids.shape[1]], self.sin[: ids.shape[1]]
        for layer in self.layers:
            stream = layer(stream, cos, sin)
        states: torch.Tensor = self.norm(stream)
        return states

    def logits(self, states: torch.Tensor) -> torch.Tensor:
        return functional.linear(states, self.embed_tokens.weight)

    def matrices(self) -> list[nn.Parameter]:
        return [parameter for parameter in self.layers.parameters() if parameter.dim() == 2]

    def others(self) -> list[nn.Parameter]:
        return [parameter for name, parameter in self.named_parameters() if parameter.dim() != 2 or "embed" in name]


def _frequencies(spec: ModelSpec) -> torch.Tensor:
    return 1.0 / spec.rope_theta ** (torch.arange(0, spec.head_dim, 2).float() / spec.head_dim)


class _Layer(nn.Module):
    def __init__(self, spec: ModelSpec) -> None:
        super().__init__()
        self.input_layernorm = nn.RMSNorm(spec.hidden, eps=spec.epsilon)
        self.post_attention_layernorm = nn.RMSNorm(spec.hidden, eps=spec.epsilon)
        self.self_attn = _Attention(spec)
        self.mlp = _FeedForward(spec)

    def forward(self, stream: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        stream = stream + self.self_attn(self.input_layernorm(stream), cos, sin)
        added: torch.Tensor = stream + self.mlp(self.post_attention_layernorm(stream))
        return added


class _Attention(nn.Module):
    def __init__(self, spec: ModelSpec) -> None:
        super().__init__()
        self.width = spec.head_dim
        queries, keys = spec.heads * spec.head_dim, spec.kv_heads * spec.head_dim
        self.q_proj = nn.Linear(spec.hidden, queries, bias=False)
        self.k_proj = nn.Linear(spec.hidden, keys, bias=False)
        self.v_proj = nn.Linear(spec.hidden, keys, bias=False)
        self.o_proj = nn.Linear(queries, spec.hidden, bias=False)

    def forward(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        q, k, v = (self._heads(projection(x)) for projection in (self.q_proj, self.k_proj, self.v_proj))
        q, k = _rotate(q, cos, sin), _rotate(k, cos, sin)
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        out: torch.Tensor = self.o_proj(mixed.transpose(1, 2).flatten(2))
        return out

    def _heads(self, x: torch.Tensor) -> torch.Tensor:
        return x.unflatten(-1, (-1, self.width)).transpose(1, 2)


class _FeedForward(nn.Module):
    def __init__(self, spec: ModelSpec) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(spec.hidden, spec.intermediate, bias=False)
        self.up_proj = nn.Linear(spec.hidden, spec.intermediate, bias=False)
        self.down_proj = nn.Linear(spec.intermediate, spec.hidden, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.down_proj(functional.silu(self.gate_proj(x)) * self.up_proj(x))
        return out


def _rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat((-second, first), -1) * sin
