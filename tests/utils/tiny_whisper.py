"""A Whisper with random weights, built here: its windows are real, its times and text are noise."""

from __future__ import annotations

import wave
from pathlib import Path
from string import ascii_letters

import numpy as np

RATE = 16_000
N_TIMESTAMPS = 1501  # <|0.00|> to <|30.00|>, every 0.02 s


def build(folder: Path) -> Path:
    """Write a multilingual checkpoint (two languages) with its processor; returns the folder."""
    import torch
    import transformers

    tokenizer = _tokenizer()
    number = tokenizer.convert_tokens_to_ids
    end, begin = number("<|endoftext|>"), number("<|startoftranscript|>")
    # Letters, times and the end only: what is no text would leave windows empty by chance.
    allowed = {*range(number("<|0.00|>"), len(tokenizer)), end, *map(number, ascii_letters)}
    no_text = [i for i in range(len(tokenizer)) if i not in allowed]
    ids = dict.fromkeys(("pad_token_id", "bos_token_id", "eos_token_id"), end)
    ids["decoder_start_token_id"] = begin
    config = transformers.WhisperConfig(
        vocab_size=len(tokenizer),
        num_mel_bins=80,
        d_model=16,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=32,
        decoder_ffn_dim=32,
        suppress_tokens=None,
        begin_suppress_tokens=None,
        **ids,
    )
    torch.manual_seed(0)
    model = transformers.WhisperForConditionalGeneration(config)
    model.generation_config = transformers.GenerationConfig(
        is_multilingual=True,
        lang_to_id={token: number(token) for token in ("<|en|>", "<|it|>")},
        task_to_id={task: number(f"<|{task}|>") for task in ("transcribe", "translate")},
        no_timestamps_token_id=number("<|notimestamps|>"),
        prev_sot_token_id=number("<|startofprev|>"),
        max_initial_timestamp_index=50,
        max_length=24,  # tokens for a window of 30 s
        suppress_tokens=no_text,
        begin_suppress_tokens=[],
        **ids,
    )
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    transformers.WhisperProcessor(
        feature_extractor=transformers.WhisperFeatureExtractor(feature_size=80), tokenizer=tokenizer
    ).save_pretrained(folder)
    return folder


def write_tones(file: Path, seconds: float, rate: int = RATE) -> Path:
    """A mono wav file of 16 bits with another tone every second."""
    times = np.arange(round(seconds * rate)) / rate
    samples = 8000 * np.sin(2 * np.pi * (300 + 50 * np.floor(times)) * times)
    with wave.open(str(file), "wb") as out:
        out.setparams((1, 2, rate, 0, "NONE", ""))
        out.writeframes(samples.astype("<i2").tobytes())
    return file


def _tokenizer():
    """Byte-level, without merges; special tokens in Whisper's order, timestamps last."""
    from tokenizers import AddedToken
    from tokenizers.pre_tokenizers import ByteLevel
    from transformers import WhisperTokenizerFast

    special = ["<|endoftext|>", "<|startoftranscript|>", "<|en|>", "<|it|>", "<|translate|>"]
    special += ["<|transcribe|>", "<|startoflm|>", "<|startofprev|>", "<|nospeech|>"]
    special += ["<|notimestamps|>"]
    vocabulary = {piece: i for i, piece in enumerate(sorted(ByteLevel.alphabet()))}
    tokenizer = WhisperTokenizerFast(vocab=vocabulary, merges=[])
    tokenizer.add_tokens([AddedToken(token, special=True) for token in special])
    times = [f"<|{i * 0.02:.2f}|>" for i in range(N_TIMESTAMPS)]
    tokenizer.add_tokens([AddedToken(token, special=False) for token in times])
    return tokenizer
