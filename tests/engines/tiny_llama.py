"""Writes a Llama of two layers that knows some words: a config and a tokenizer, without weights.

Runs in the environment of the engines; vLLM fills in weights at random (`--load-format dummy`), and
so does Transformers for a model made of its config.
"""

from __future__ import annotations

import json
import string
import sys
from pathlib import Path

from tokenizers import (  # type: ignore[import-not-found]
    Tokenizer,
    decoders,
    models,
    pre_tokenizers,
    trainers,
)

_VOCABULARY = 512
_BEGIN, _END = "<s>", "</s>"
_CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "bos_token_id": 0,
    "eos_token_id": 1,
    "hidden_act": "silu",
    "hidden_size": 64,
    "initializer_range": 0.02,
    "intermediate_size": 128,
    "max_position_embeddings": 2048,
    "num_attention_heads": 2,
    "num_hidden_layers": 2,
    "num_key_value_heads": 1,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10_000.0,
    "tie_word_embeddings": False,
    "torch_dtype": "float32",
    "vocab_size": _VOCABULARY,
}
_CHAT = (
    "{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}"
)


def write(folder: Path) -> None:
    """Write the files of the model into a folder."""
    tokenizer = _tokenizer()
    assert tokenizer.get_vocab_size() == _VOCABULARY
    tokenizer.save(str(folder / "tokenizer.json"))
    _write(folder / "config.json", _CONFIG)
    _write(
        folder / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "bos_token": _BEGIN,
            "eos_token": _END,
            "model_max_length": _CONFIG["max_position_embeddings"],
            "chat_template": _CHAT,
        },
    )


def _tokenizer() -> Tokenizer:
    """Of ASCII alone: whatever a model picks at random is text, and never half a letter."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    letters = [_as_byte_level(letter) for letter in string.printable]
    trainer = trainers.BpeTrainer(
        vocab_size=_VOCABULARY,
        special_tokens=[_BEGIN, _END],
        initial_alphabet=letters,
        show_progress=False,
    )
    tokenizer.train_from_iterator(_words(), trainer)
    return tokenizer


def _as_byte_level(letter: str) -> str:
    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    ((piece, _),) = level.pre_tokenize_str(letter)
    return str(piece)


def _words() -> list[str]:
    """Made of syllables, so that there is something to merge."""
    syllables = [one + two for one in "bdfgklmnprst" for two in "aeiou"]
    return [f" {first}{second}" for first in syllables for second in syllables]


def _write(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
