"""The tokenizer: byte-level BPE learned from the corpus, so that any UTF-8 text has tokens."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from .corpus import Corpus
from .dialogue import Dialogue, call_text, json_answer, render

if TYPE_CHECKING:
    from tokenizers import Tokenizer

__all__ = ["END", "END_ID", "SIZE", "encode", "learn_tokenizer", "tokenizer_config"]

SIZE = 1536
END = "<|end|>"
END_ID = 0
SPECIALS = (END, "<|user|>", "<|assistant|>", "<|system|>", "<|tool|>", "<|tools|>")
VISIBLE = ("<tool_call>", "</tool_call>")
"""Single tokens that stay in the text for parsers of tool calls."""

WORDS = r'["{}\[\]]|\p{Ll}+ ?|\p{Lu}\p{L}*|\p{Lo}+|\p{N}|[^\s\p{L}\p{N}"{}\[\]]+ ?'
"""A space belongs to the word before it, but not if that word begins with a capital. So a name has the same tokens in a
question, between quotation marks and at the end of a text, and the model can copy it token by token. Quotation marks,
braces and brackets are single tokens, a comma or a colon includes its space, so that a token ends at each place that a
grammar lets JSON end or continue."""

JSON_WORDS = ("true", "false", "null") * 100
"""Repeated often enough to become tokens."""


def learn_tokenizer(corpus: Corpus) -> Tokenizer:
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    words = pre_tokenizers.Split(Regex(WORDS), "isolated")
    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([words, level])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=SIZE - len(VISIBLE),
        special_tokens=[AddedToken(word, special=True, normalized=False) for word in SPECIALS],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    texts = [form for text in corpus.texts() for form in (text, text.lower())]
    calls = [call_text(name, {word: ""}) for kind in corpus.tools for name in kind.names for word in kind.parameters]
    tokenizer.train_from_iterator([*texts, *calls, json_answer(""), *JSON_WORDS], trainer)
    tokenizer.add_tokens([AddedToken(word, special=False, normalized=False) for word in VISIBLE])
    if tokenizer.get_vocab_size() != SIZE:
        raise ValueError(f"the corpus gives {tokenizer.get_vocab_size()} tokens, {SIZE} are needed")
    return tokenizer


def tokenizer_config() -> str:
    return (
        json.dumps({"eos_token": END, "pad_token": END, "tokenizer_class": "PreTrainedTokenizerFast"}, indent=1) + "\n"
    )


def encode(tokenizer: Tokenizer, dialogue: Dialogue) -> tuple[list[int], list[bool]]:
    """Return the tokens of a conversation, and for each whether the model learns it."""
    ids: list[int] = []
    trained: list[bool] = []
    for text, is_trained in render(dialogue):
        piece = tokenizer.encode(text, add_special_tokens=False).ids
        ids += piece
        trained += [is_trained] * len(piece)
    return ids, trained
