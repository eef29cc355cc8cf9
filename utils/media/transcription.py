"""Subtitles made beforehand with Whisper (paper, Baselines: Whisper-v3, which is large-v3).

    >>> report = make(videos, folder, FasterWhisper(), sound_of=wav_of)
    >>> report.line
    'subtitles: 3 made, 1 without sound, 696 there before, 0 failed'

Writes one VIDEO.json per video, in Whisper's form, with what it was made by:

    {"transcriber": {"name": "faster-whisper", "version": "1.2.1", "model": "large-v3",
                     "language": null, "compute_type": "default", "date": "2026-01-31"},
     "segments": [{"start": 0.0, "end": 2.4, "text": "..."}]}

A video without sound gets no segments and a "note". Whisper's text is a model's guess: in music and
noise it repeats itself or invents speech, in the paper's own examples too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path

from lmms_eval_tasks import console
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.utils.media import media_cache, subtitles
from lmms_eval_tasks.utils.media.subtitles import Cue
from lmms_eval_tasks.utils.media.transcribers import (
    Identity,
    Transcriber,
    TranscriberError,
    one_line,
)

NO_SOUND = "the video has no sound"


@dataclass
class Report:
    """What `make` did; the four add up to the number of videos.

    made: videos transcribed in this run (with or without speech in them).
    silent: videos without sound, whose file says so.
    kept: videos that had subtitles before.
    failed: reason by video.
    others: of those kept, files that name another model, version or language than this run's.
    """

    made: int = 0
    silent: int = 0
    kept: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    others: int = 0

    @property
    def line(self) -> str:
        """The counts in one line."""
        text = (
            f"subtitles: {self.made} made, {self.silent} without sound, {self.kept} there before, "
            f"{len(self.failed)} failed"
        )
        if self.others:
            text += (
                f'; {self.others} of those there before were made otherwise (see "transcriber" '
                "in the files): delete them to have them made again"
            )
        return text


def make(
    videos: Mapping[str, Path],
    folder: Path,
    transcriber: Transcriber,
    *,
    sound_of: Callable[[Path], Path | None],
) -> Report:
    """Write FOLDER/VIDEO.json for every video that has no subtitles there.

    Can be stopped and started again at any time: a file is there as a whole or not at all, and what
    is there, released or made, is kept. A failure on one video is said and the others go on.

    Args:
        videos: video files by id.
        folder: made if it is not there.
        transcriber: what hears them.
        sound_of: the sound of a video as a 16 kHz mono wav file; None for a video without any.

    Raises:
        TranscriberError: no video can be transcribed.
        DataError: the folder cannot be written to.
    """
    report = Report()
    identity = dict(transcriber.identity)
    _make_folder(folder)  # before an hour of transcribing
    for number, (video, path) in enumerate(videos.items(), 1):
        try:
            if there := subtitles.find(folder, video):
                report.kept += 1
                report.others += _made_otherwise(there, identity)
                continue
            sound = sound_of(path)
            cues = [] if sound is None else transcriber.transcribe(sound)
        except TranscriberError:
            raise
        except Exception as error:  # a decoder or a model may raise anything
            report.failed[video] = one_line(error)
            console.say(
                f"{number}/{len(videos)} {video}: no subtitles made: {report.failed[video]}"
            )
            continue
        _write(folder / f"{video}.json", cues, identity, None if sound else NO_SOUND)
        report.silent += sound is None
        report.made += sound is not None
        console.say(f"{number}/{len(videos)} {video}: {f'{len(cues)} cues' if sound else NO_SOUND}")
    console.say(report.line)
    return report


def _write(file: Path, cues: list[Cue], identity: Identity, note: str | None) -> None:
    """The file of one video, as a whole or not at all."""
    date = datetime.now(timezone.utc).date().isoformat()
    content: dict[str, object] = {
        "transcriber": {**identity, "date": date},
        **({} if note is None else {"note": note}),
        "segments": [{"start": cue.start, "end": cue.end, "text": cue.text} for cue in cues],
    }
    text = json.dumps(content, ensure_ascii=False, indent=1) + "\n"
    part = media_cache.temporary(file.parent, file.name, ".part")
    _make_folder(file.parent)
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(file)
    except OSError as error:
        raise DataError(f"{file}: cannot be written ({error.strerror or error})") from error
    finally:
        part.unlink(missing_ok=True)


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{folder}: cannot be made ({error.strerror or error})") from error


def _made_otherwise(file: Path, identity: Identity) -> bool:
    """True for a file that names another identity; released files name none."""
    if file.suffix != ".json":
        return False
    try:
        made_by = json.loads(file.read_text(encoding="utf-8"))["transcriber"]
        return {k: v for k, v in made_by.items() if k != "date"} != dict(identity)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False  # not ours; whoever reads it says what is wrong with it
