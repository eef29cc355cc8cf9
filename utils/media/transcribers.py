"""What hears speech: Whisper by faster-whisper, or by transformers; both loaded when first used."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import Any, Protocol

from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.utils.media import sound_files
from lmms_eval_tasks.utils.media.sound_files import RATE
from lmms_eval_tasks.utils.media.subtitles import Cue

Identity = Mapping[str, str | None]


class TranscriberError(TasksError):
    """A transcriber cannot work on any file: its package or its model is not at hand."""


class Transcriber(Protocol):
    """Speech to cues."""

    @property
    def identity(self) -> Identity:
        """What the text depends on (name, version, model, language); written into every file."""

    def transcribe(self, sound: Path) -> list[Cue]:
        """Cues of an audio file (16 kHz mono wav), in seconds from its beginning.

        Raises:
            TranscriberError: no file can be transcribed; anything else concerns this file only.
        """


@dataclass(frozen=True)
class FasterWhisper:
    """Whisper by CTranslate2, with its default decoding: the optional extra `subtitles`.

    Where the model is unsure it draws words at random: two runs on one file may differ.

    model: a size (`large-v3`), a hub id or a folder of a converted model. Sizes and ids are
        downloaded once, when the first file is transcribed.
    device: `auto`, `cpu` or `cuda`.
    compute_type: `default` (as the model was saved), `float16`, `int8`, ...
    language: a code such as `en`; None lets the model tell from the first 30 s of each file.
    """

    model: str = "large-v3"
    device: str = "auto"
    compute_type: str = "default"
    language: str | None = None

    @property
    def identity(self) -> Identity:
        """As `Transcriber.identity`. Raises TranscriberError without the package."""
        return {
            "name": "faster-whisper",
            "version": _version("faster-whisper"),
            "model": self.model,
            "language": self.language,
            "compute_type": self.compute_type,
        }

    def transcribe(self, sound: Path) -> list[Cue]:
        """As `Transcriber.transcribe`."""
        segments, info = self._whisper.transcribe(str(sound), language=self.language)
        return _cues(((s.start, s.end, s.text) for s in segments), info.duration)

    @cached_property
    def _whisper(self) -> Any:
        _version("faster-whisper")
        try:
            from faster_whisper import WhisperModel

            return WhisperModel(self.model, device=self.device, compute_type=self.compute_type)
        except Exception as error:  # no network, no such model, no CUDA: no file can be transcribed
            raise TranscriberError(
                f"the Whisper model {self.model!r} cannot be loaded ({one_line(error)}). Sizes and "
                "ids come from the Hugging Face hub when first used: run this once with a network, "
                "or give the folder of a converted model"
            ) from error


@dataclass(frozen=True)
class TransformersWhisper:
    """Whisper by transformers, for machines without faster-whisper; much slower on a CPU.

    path: a folder with a Whisper checkpoint and its processor, or a hub id.
    device: a torch device, or `auto`: cuda if there is any.
    language: a code such as `en`; None lets the model tell.
    """

    path: str
    device: str = "cpu"
    language: str | None = None

    @property
    def identity(self) -> Identity:
        """As `Transcriber.identity`."""
        return {
            "name": "transformers",
            "version": _version("transformers"),
            "model": self.path,
            "language": self.language,
        }

    def transcribe(self, sound: Path) -> list[Cue]:
        """As `Transcriber.transcribe`; more than 30 s go window by window, as in Whisper's paper.

        Raises:
            MediaError: not a 16 kHz mono wav file of 16 bits.
        """
        import torch

        processor, model = self._whisper
        samples = sound_files.samples(sound)
        long = len(samples) > 30 * RATE
        inputs = processor.feature_extractor(
            samples,
            sampling_rate=RATE,
            return_tensors="pt",
            return_attention_mask=True,
            **({"truncation": False, "padding": "longest"} if long else {}),
        ).to(model.device)
        with torch.inference_mode():
            found = model.generate(
                **inputs,
                return_timestamps=True,
                return_segments=True,
                language=self.language,
                task="transcribe",
            )
        decode = processor.tokenizer.decode
        return _cues(
            (
                (float(s["start"]), float(s["end"]), decode(s["tokens"], skip_special_tokens=True))
                for s in found["segments"][0]
            ),
            len(samples) / RATE,
        )

    @cached_property
    def _whisper(self) -> tuple[Any, Any]:
        _version("transformers")
        import torch
        from transformers import WhisperForConditionalGeneration, WhisperProcessor

        device = self.device
        if device == "auto":
            device = "cuda" if torch.cuda.is_available() else "cpu"
        try:
            processor = WhisperProcessor.from_pretrained(self.path)
            model: Any = WhisperForConditionalGeneration.from_pretrained(self.path)
            return processor, model.eval().to(device)
        except Exception as error:  # as above
            raise TranscriberError(
                f"the Whisper checkpoint {self.path!r} cannot be loaded ({one_line(error)})"
            ) from error


HUB = "hf:"  # before a name: a checkpoint of transformers


def make(name: str, device: str = "auto", language: str | None = None) -> Transcriber:
    """The transcriber of a name, as `lmms-eval-tasks data subtitles --model` takes it.

    Args:
        name: a size, hub id or folder of faster-whisper's, or `hf:` and a hub id or folder of a
            Whisper checkpoint of transformers.
        device: `auto`, `cpu` or `cuda`.
        language: a code such as `en`; None lets the model tell.

    Raises:
        TranscriberError: no name.
    """
    path = name.removeprefix(HUB)
    if not path:
        raise TranscriberError(
            f"{name!r} names no Whisper model: give a size such as large-v3, a folder, or "
            f"{HUB}NAME for a checkpoint of transformers"
        )
    if name.startswith(HUB):
        return TransformersWhisper(path, device=device, language=language)
    return FasterWhisper(name, device=device, language=language)


def _cues(segments: Iterable[tuple[float, float, str]], duration: float) -> list[Cue]:
    """A model's segments by time, cut to the sound: Whisper's last window is 30 s in any case.

    Whatever begins where there is no sound any more is invented, and left out.
    """
    cues = []
    for start, end, text in segments:
        words = " ".join(text.split())
        if words and start < duration:
            first = max(start, 0.0)
            cues.append(Cue(round(first, 3), round(min(max(end, first), duration), 3), words))
    return sorted(cues, key=lambda cue: (cue.start, cue.end))


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError as error:
        what = "'lmms-eval-tasks[subtitles]'" if package == "faster-whisper" else package
        raise TranscriberError(f"{package} is not installed: pip install {what}") from error


def one_line(error: Exception) -> str:
    """An error's message; its class as well where the message was not written for the user."""
    words = " ".join(str(error).split())
    return words if isinstance(error, TasksError) else f"{type(error).__name__}: {words}"
