"""Subtitles made beforehand with Whisper (paper, Baselines: Whisper-v3, which is large-v3).

    >>> make(videos, folder, Whisper(), sound_of=wav_of)
    subtitles: 3 made, 1 without sound, 696 there before, 0 failed

Writes one VIDEO.json per video, in Whisper's form, with what it was made by:

    {"transcriber": {"name": "faster-whisper", "version": "1.2.1", "model": "large-v3",
                     "language": null, "compute_type": "default", "date": "2026-01-31"},
     "segments": [{"start": 0.0, "end": 2.4, "text": "..."}]}

A video without sound gets no segments and a "note". Whisper's text is a model's guess: in music and
noise it repeats itself or invents speech, in the paper's own examples too.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import Any

from lmms_eval_tasks import console
from lmms_eval_tasks.errors import DataError, TasksError
from lmms_eval_tasks.utils.media import subtitles
from lmms_eval_tasks.utils.media.subtitles import Cue

NO_SOUND = "the video has no sound"


class TranscriberError(TasksError):
    """No file can be transcribed: the package or the model is not at hand."""


@dataclass(frozen=True)
class Whisper:
    """Whisper by faster-whisper (CTranslate2), with its default decoding: the extra `subtitles`.

    Loaded when first used. Where the model is unsure it draws words at random: two runs on one file
    may differ.

    model: a size (`large-v3`), a hub id or a folder of a converted model. Sizes and ids are
        downloaded once, when the first file is transcribed.
    device: `auto`, `cpu` or `cuda`.
    language: a code such as `en`; None lets the model tell from the first 30 s of each file.
    """

    model: str = "large-v3"
    device: str = "auto"
    language: str | None = None

    @property
    def identity(self) -> dict[str, str | None]:
        """What the text depends on; written into every file.

        Raises:
            TranscriberError: the package is not installed.
        """
        try:
            version = metadata.version("faster-whisper")
        except metadata.PackageNotFoundError as error:
            raise TranscriberError(
                "faster-whisper is not installed: pip install 'lmms-eval-tasks[subtitles]'"
            ) from error
        named = {"name": "faster-whisper", "version": version, "model": self.model}
        return {**named, "language": self.language, "compute_type": "default"}

    def transcribe(self, sound: Path) -> list[Cue]:
        """Cues of an audio file (16 kHz mono wav), in seconds from its beginning.

        Cut to the sound: Whisper's last window is 30 s in any case, and whatever begins where there
        is no sound any more is invented.

        Raises:
            TranscriberError: the model cannot be loaded; anything else concerns this file only.
        """
        segments, info = self._model.transcribe(str(sound), language=self.language)
        cues = []
        for one in segments:
            words = " ".join(one.text.split())
            if words and one.start < info.duration:
                first = max(one.start, 0.0)
                last = min(max(one.end, first), info.duration)
                cues.append(Cue(round(first, 3), round(last, 3), words))
        return sorted(cues, key=lambda cue: (cue.start, cue.end))

    @cached_property
    def _model(self) -> Any:
        try:
            from faster_whisper import WhisperModel

            return WhisperModel(self.model, device=self.device, compute_type="default")
        except Exception as error:  # no network, no such model, no CUDA: no file can be transcribed
            raise TranscriberError(
                f"the Whisper model {self.model!r} cannot be loaded ({_one_line(error)}). Sizes "
                "and ids come from the Hugging Face hub when first used: run this once with a "
                "network, or give the folder of a converted model"
            ) from error


def make(
    videos: Mapping[str, Path],
    folder: Path,
    whisper: Whisper,
    *,
    sound_of: Callable[[Path], Path | None],
) -> int:
    """Write FOLDER/VIDEO.json for every video that has no subtitles there; how many failed.

    Can be stopped and started again at any time: a file is there as a whole or not at all, and what
    is there, released or made, is kept. A failure on one video is said and the others go on.

    Args:
        videos: video files by id.
        folder: made if it is not there.
        whisper: what hears them.
        sound_of: the sound of a video as a 16 kHz mono wav file; None for a video without any.

    Raises:
        TranscriberError: no video can be transcribed.
        DataError: the folder cannot be written to.
    """
    counts: Counter[str] = Counter()
    identity = whisper.identity
    for number, (video, path) in enumerate(videos.items(), 1):
        try:
            if subtitles.find(folder, video):
                counts["kept"] += 1
                continue
            sound = sound_of(path)
            cues = [] if sound is None else whisper.transcribe(sound)
        except TranscriberError:
            raise
        except Exception as error:  # a decoder or a model may raise anything
            counts["failed"] += 1
            said = f"no subtitles made: {_one_line(error)}"
        else:
            counts["made" if sound else "silent"] += 1
            said = f"{len(cues)} cues" if sound else NO_SOUND
            _write(folder / f"{video}.json", cues, identity, None if sound else NO_SOUND)
        console.say(f"{number}/{len(videos)} {video}: {said}")
    console.say(
        f"subtitles: {counts['made']} made, {counts['silent']} without sound, {counts['kept']} "
        f"there before, {counts['failed']} failed"
    )
    return counts["failed"]


def _write(file: Path, cues: list[Cue], identity: Mapping[str, Any], note: str | None) -> None:
    """The file of one video, as a whole or not at all."""
    date = datetime.now(timezone.utc).date().isoformat()
    content: dict[str, object] = {
        "transcriber": {**identity, "date": date},
        **({} if note is None else {"note": note}),
        "segments": [{"start": cue.start, "end": cue.end, "text": cue.text} for cue in cues],
    }
    part = file.with_name(f".{file.name}.part")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
        part.replace(file)
    except OSError as error:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise DataError(f"{file}: cannot be written ({error.strerror or error})") from error


def _one_line(error: Exception) -> str:
    """An error's message; its class as well where the message was not written for the user."""
    words = " ".join(str(error).split())
    return words if isinstance(error, TasksError) else f"{type(error).__name__}: {words}"
