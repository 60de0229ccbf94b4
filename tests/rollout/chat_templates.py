"""Chat templates in the styles of six families, each with its quirks, over a byte-level tokenizer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

CHATML = (  # SmolLM2: a system message of its own where there is none
    "{% for m in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
    "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n{% endif %}"
    "<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
LLAMA = (  # trims every content
    "{% for m in messages %}{% if loop.first %}<|begin_of_text|>{% endif %}"
    "<|start_header_id|>{{ m['role'] }}<|end_header_id|>\n\n{{ m['content'] | trim }}<|eot_id|>{% endfor %}"
    "{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}"
)
QWEN = (  # forgets the thoughts of earlier turns, puts tool results in a row into one turn of the user
    "{% set ns = namespace(last=-1) %}"
    "{% for m in messages %}{% if m.role == 'user' %}{% set ns.last = loop.index0 %}{% endif %}{% endfor %}"
    "{% for m in messages %}{% if m.role == 'tool' %}"
    "{% if loop.first or messages[loop.index0 - 1].role != 'tool' %}<|im_start|>user{% endif %}"
    "\n<tool_response>\n{{ m.content }}\n</tool_response>"
    "{% if loop.last or messages[loop.index0 + 1].role != 'tool' %}<|im_end|>\n{% endif %}"
    "{% elif m.role == 'assistant' %}<|im_start|>assistant\n"
    "{% if loop.index0 < ns.last and '</think>' in m.content %}{{ m.content.split('</think>')[-1].lstrip('\n') }}"
    "{% else %}{{ m.content }}{% endif %}<|im_end|>\n"
    "{% else %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
MISTRAL = (  # turns must alternate; the system message goes into the last turn of the user
    "{% if messages[0]['role'] == 'system' %}{% set system = messages[0]['content'] %}{% set rest = messages[1:] %}"
    "{% else %}{% set rest = messages %}{% endif %}<s>"
    "{% for m in rest %}{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('conversation roles must alternate user/assistant') }}{% endif %}"
    "{% if m['role'] == 'user' %}[INST] {% if loop.last and system is defined %}{{ system }}\n\n{% endif %}"
    "{{ m['content'] }}[/INST]{% elif m['role'] == 'assistant' %} {{ m['content'] | trim }}</s>"
    "{% else %}{{ raise_exception('only user and assistant roles') }}{% endif %}{% endfor %}"
)
GEMMA = (  # no system role, the assistant is `model`, turns must alternate
    "{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}<bos>"
    "{% for m in messages %}{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}"
    "<start_of_turn>{% if m['role'] == 'assistant' %}model{% else %}{{ m['role'] }}{% endif %}{{ '\n' }}"
    "{{ m['content'] | trim }}<end_of_turn>\n{% endfor %}"
    "{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}"
)
PHI = (  # swallows roles that it does not know; ends a whole conversation with another token than a turn
    "{% for m in messages %}{% if m['role'] == 'system' %}<|system|>\n{{ m['content'] }}<|end|>\n"
    "{% elif m['role'] == 'user' %}<|user|>\n{{ m['content'] }}<|end|>\n"
    "{% elif m['role'] == 'assistant' %}<|assistant|>\n{{ m['content'] }}<|end|>\n{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>\n{% else %}<|endoftext|>{% endif %}"
)


@dataclass(frozen=True)
class Style:
    template: str
    special: tuple[str, ...]
    ends: tuple[str, ...]
    start: str = ""
    """What a well-read assistant writes before its text."""


STYLES = {
    "chatml": Style(CHATML, ("<|im_start|>", "<|im_end|>", "<|endoftext|>"), ("<|im_end|>", "<|endoftext|>")),
    "llama": Style(
        LLAMA, ("<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"), ("<|eot_id|>",)
    ),
    "qwen": Style(QWEN, ("<|im_start|>", "<|im_end|>", "<|endoftext|>"), ("<|im_end|>", "<|endoftext|>")),
    "mistral": Style(MISTRAL, ("<s>", "</s>", "[INST]", "[/INST]"), ("</s>",), " "),
    "gemma": Style(GEMMA, ("<bos>", "<eos>", "<start_of_turn>", "<end_of_turn>"), ("<end_of_turn>", "<eos>")),
    "phi": Style(
        PHI, ("<|system|>", "<|user|>", "<|assistant|>", "<|end|>", "<|endoftext|>"), ("<|end|>", "<|endoftext|>")
    ),
}


def make_tokenizer(style: Style) -> tuple[Any, tuple[int, ...]]:
    """A byte-level tokenizer with some merges and the family's special tokens, and the ids of its ends."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [("t", "h"), ("th", "e"), ("i", "n"), ("Ġ", "a"), ("e", "r"), ("<", "|"), ("o", "n")]
    words = [*letters, *(a + b for a, b in merges)]
    tokenizer = Tokenizer(models.BPE(vocab={word: i for i, word in enumerate(words)}, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(list(style.special))
    wrapped = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=style.ends[-1])
    wrapped.chat_template = style.template
    return wrapped, tuple(wrapped.convert_tokens_to_ids(list(style.ends)))
