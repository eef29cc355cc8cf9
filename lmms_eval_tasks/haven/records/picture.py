"""One record as an HTML page: frames, shots, keyframes, key shots, sentences and their alignment.

A table with one column per shot: above its pictures with the importance of each, below one row per
sentence of summary and document, coloured under the shots it tells about. The page loads nothing,
needs no script, and follows the reader's light or dark setting.
"""

from __future__ import annotations

import io
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from lmms_eval_tasks.errors import MediaError
from lmms_eval_tasks.haven.options import SOURCES
from lmms_eval_tasks.haven.records.rating_sheet import Drawn
from lmms_eval_tasks.haven.records.record import Record, Sentence

if TYPE_CHECKING:
    from PIL.Image import Image


_GOLDEN = 137.508  # degrees of hue from one sentence to the next: neighbours never look alike

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2230; --soft: #5b6475; --line: #d5dae3; --page: #fff;
  --band: #e8ebf1; --key: #b3530a; --key-soft: #fdebd9; --bar: #5f7fb8; --light: 45%; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9f0; --soft: #9aa4b6; --line: #39404e;
  --page: #14171d; --band: #252b36; --key: #ffab5e; --key-soft: #4a3116; --bar: #86a7e6;
  --light: 62%; } }
* { box-sizing: border-box; }
body { margin: 0; padding: 1rem; background: var(--page); color: var(--ink);
  font: .875rem/1.4 system-ui, sans-serif; }
h1 { font-size: 1.25rem; margin: 0 0 .25rem; } h2 { font-size: 1rem; margin: 1.5rem 0 .5rem; }
p { margin: .25rem 0; } .soft { color: var(--soft); }
.legend span { white-space: nowrap; margin-right: 1.25rem; }
.swatch { display: inline-block; width: .8em; height: .8em; margin-right: .35em;
  vertical-align: -.05em; }
.swatch.keyframe { outline: 3px solid var(--key); outline-offset: -1px; }
.swatch.key { background: var(--key-soft); border-bottom: 3px solid var(--key); }
.swatch.bar { background: var(--bar); width: 1.4em; height: .3em; vertical-align: .2em; }
.scroll { overflow-x: auto; border: 1px solid var(--line); border-radius: .4rem; margin: .75rem 0;
  width: fit-content; max-width: 100%; }
table { border-collapse: separate; border-spacing: 0; }
th, td { vertical-align: top; padding: 0; border-bottom: 1px solid var(--line);
  border-left: 1px solid var(--line); }
tr:last-child > * { border-bottom: 0; }
th:first-child { position: sticky; left: 0; z-index: 1; width: 21rem; min-width: 21rem;
  max-width: 21rem; padding: .45rem .6rem; background: var(--page); text-align: left;
  font-weight: 400; border-left: 0; }
.heads th { background: var(--band); padding: .3rem .4rem; font-weight: 600; text-align: left;
  white-space: nowrap; }
.heads th.key { background: var(--key-soft); border-bottom: 3px solid var(--key); }
.heads small { font-weight: 400; color: var(--soft); }
.frames td { padding: .3rem; }
.shot { display: grid; gap: .3rem; }
figure { margin: 0; width: 4.4rem; }
figure img, .blank { display: block; width: 4.4rem; min-height: 2rem; border-radius: 2px;
  background: var(--band); }
figure.keyframe img, figure.keyframe .blank { outline: 3px solid var(--key); outline-offset: -1px; }
figcaption { display: flex; align-items: center; gap: .2rem; font-size: .625rem;
  line-height: 1.3; color: var(--soft); }
figcaption b { color: var(--key); }
.track { flex: 1; height: .3rem; background: var(--band); }
.track i { display: block; height: 100%; background: var(--bar); }
.group th { background: var(--band); font-weight: 600; border-bottom: 1px solid var(--line); }
.group td { background: var(--band); border-left: 0; }
.sentence th { border-left: .4rem solid hsl(var(--hue) 65% var(--light)); }
.sentence td { height: 100%; vertical-align: middle; }
.sentence td.told { background: linear-gradient(hsl(var(--hue) 65% var(--light)) 0 0)
  center / 100% 1.1rem no-repeat; }
ol { margin: 0; padding-left: 2.2rem; } li { margin: .15rem 0; }
li.key::marker { color: var(--key); font-weight: 700; }
@media print { .scroll { overflow: visible; border: 0; } th:first-child { position: static; } }
"""


def html(record: Record, images: Mapping[int, str]) -> str:
    """The page of a record.

    Args:
        record: any good one; what it lacks is said in the page.
        images: data URIs of the sampled frames by number, from 1; those that are missing are shown
            as empty boxes.
    """
    shots = "".join(_shot_head(record, number) for number in range(1, len(record.shots) + 1))
    frames = "".join(_frames(record, shot.frames, images) for shot in record.shots)
    descriptions = "".join(
        f"<li{' class=key' if shot.key else ''}>{_text(shot.description)}</li>"
        for shot in record.shots
    )
    title = f"{record.id}{f' · {record.name}' if record.name else ''}"
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title><style>{_STYLE}</style></head><body>
<h1>{escape(title)}</h1>
<p class="soft">{escape(_facts(record))}</p>
{_legend(record, images)}
<div class="scroll"><table>
<tr class="heads"><th>shots in order of time{_shots_note(record)}</th>{shots}</tr>
<tr class="frames"><th>{_frames_head(record)}</th>{frames}</tr>
{_sentences("Summary", record.summary, len(record.shots), 0)}
{_sentences("Document", record.document, len(record.shots), len(record.summary))}
</table></div>
<h2>Descriptions of the shots</h2>
<ol>{descriptions}</ol>
{_gaps(record)}
</body></html>
"""


def _facts(record: Record) -> str:
    source = SOURCES.get(record.source, record.source)
    key = sum(shot.key for shot in record.shots)
    original = f" of {record.n_frames:,}" if record.n_frames is not None else ""
    return (
        f"{source}: {len(record.frames)} sampled frames{original}, {len(record.keyframes)} "
        f"keyframes, {len(record.shots)} shots, {key} key shots"
    )


def _legend(record: Record, images: Mapping[int, str]) -> str:
    parts = [
        '<span><i class="swatch keyframe"></i>★ keyframe</span>',
        '<span><i class="swatch key"></i>key shot</span>',
    ]
    if _largest(record):
        parts.append('<span><i class="swatch bar"></i>importance of a frame</span>')
    parts.append("<span>a coloured band joins a sentence to the shots it tells about</span>")
    if not images:
        parts.append("<span>the video is not here, so there are no pictures</span>")
    return f'<p class="legend">{"".join(parts)}</p>'


def _shots_note(record: Record) -> str:
    if record.importance is None:
        return ""
    return "<br><small>with the mean importance of their frames</small>"


def _frames_head(record: Record) -> str:
    if not _largest(record):
        return "sampled frames"
    return (
        'sampled frames<br><small class="soft">bar: importance, relative to the largest in the '
        "video</small>"
    )


def _largest(record: Record) -> float:
    """The largest importance; 0 if there is none."""
    return max((frame.importance or 0.0 for frame in record.frames), default=0.0)


def _shot_head(record: Record, number: int) -> str:
    shot = record.shots[number - 1]
    span = f"{shot.frames[0]}-{shot.frames[-1]}" if len(shot.frames) > 1 else f"{shot.frames[0]}"
    importance = record.importance
    worth = f" · {importance[number - 1]:.2f}" if importance is not None else ""
    kind, mark = (' class="key"', " · key") if shot.key else ("", "")
    return (
        f'<th{kind} title="{escape(shot.description)}">{number}{mark}<br>'
        f"<small>frames {span}{worth}</small></th>"
    )


def _frames(record: Record, numbers: Sequence[int], images: Mapping[int, str]) -> str:
    across = 1 if len(numbers) < 4 else 2 if len(numbers) <= 12 else 3
    figures = "".join(_figure(record, number, images.get(number)) for number in numbers)
    return (
        f'<td><div class="shot" style="grid-template-columns: repeat({across}, 4.4rem)">'
        f"{figures}</div></td>"
    )


def _figure(record: Record, number: int, image: str | None) -> str:
    frame = record.frames[number - 1]
    kind, mark = (' class="keyframe"', "<b>★</b>") if frame.keyframe else ("", "")
    shown = f'<img src="{image}" alt="frame {number}">' if image else '<div class="blank"></div>'
    bar = ""
    if frame.importance is not None and (largest := _largest(record)):
        width = 100 * max(0.0, frame.importance) / largest
        bar = f'<span class="track"><i style="width:{width:.0f}%"></i></span>'
    hint = f"frame {number} (original {frame.pick})"
    if frame.importance is not None:
        hint += f", importance {frame.importance:.3g}"
    if frame.description:
        hint += f": {frame.description}"
    return (
        f'<figure{kind} title="{escape(hint)}">{shown}<figcaption>{number}{mark}{bar}'
        "</figcaption></figure>"
    )


def _sentences(title: str, sentences: Sequence[Sentence], shots: int, first: int) -> str:
    """A heading row and one row per sentence; `first` is its place among all colours."""
    rows = [f'<tr class="group"><th>{title}</th><td colspan="{shots}"></td></tr>']
    if not sentences:
        rows.append(f'<tr><th class="soft">none</th><td colspan="{shots}"></td></tr>')
    for place, sentence in enumerate(sentences):
        hue = (20 + (first + place) * _GOLDEN) % 360
        told = ", ".join(map(str, sentence.shots))
        named = f"shot{'s' * (len(sentence.shots) > 1)} {told}" if told else "no shot"
        cells = "".join(
            f'<td class="told" title="shot {number}"></td>' if number in sentence.shots
            else "<td></td>"
            for number in range(1, shots + 1)
        )  # fmt: skip
        rows.append(
            f'<tr class="sentence" style="--hue:{hue:.0f}"><th>{escape(sentence.text)} '
            f'<small class="soft">({named})</small></th>{cells}</tr>'
        )
    return "\n".join(rows)


def _text(description: str) -> str:
    return escape(description) if description else '<span class="soft">no description</span>'


def _gaps(record: Record) -> str:
    if not record.gaps:
        return ""
    items = "".join(f"<li>{escape(kind)}: {escape(why)}</li>" for kind, why in record.gaps.items())
    return f"<h2>What the record lacks, by task</h2><ul>{items}</ul>"


THUMBNAIL = 112  # longest side in pixels
LARGE, SMALL = 480, 200  # of a rated frame; of the frames of a shot or a video
OF_SHOT, OF_VIDEO = 8, 16  # pictures shown of each at most
_QUALITY = {THUMBNAIL: 72}


@dataclass(frozen=True)
class Evidence:
    """What a rater sees of a video: data URIs. `why` says why there are none.

    frames: of the rated frames; shot, video: uniform frames of the rated shot and of the video.
    """

    frames: Mapping[int, str]
    shot: Sequence[str]
    video: Sequence[str]
    why: str = ""


def thumbnails(record: Record) -> dict[int, str]:
    """Data URIs of all sampled frames, by number from 1; empty if the video is not there.

    Raises:
        MediaError: the video is there and cannot be decoded.
    """
    if record.path is None or not record.path.is_file():
        return {}
    return _taken(record, list(range(1, len(record.frames) + 1)), THUMBNAIL)


def evidence(drawn: Drawn) -> Evidence:
    """The pictures for rating one video; without any if its file is not there or is broken."""
    record = drawn.record
    if record.path is None or not record.path.is_file():
        return Evidence({}, (), (), f"{record.id}: its video file is not there")
    shot = uniform(record.shots[drawn.shot - 1].frames, OF_SHOT)
    whole = uniform(range(1, len(record.frames) + 1), OF_VIDEO)
    try:
        large = _taken(record, drawn.frames, LARGE)
        small = _taken(record, sorted({*shot, *whole}), SMALL)
    except MediaError as error:
        return Evidence({}, (), (), str(error))
    return Evidence(large, [small[n] for n in shot], [small[n] for n in whole])


def missing(found: Mapping[str, Evidence]) -> list[str]:
    """Videos without pictures, one line each."""
    return [
        f"{one.why}: rate it with a copy of your own beside the form"
        for one in found.values()
        if one.why
    ]


def uniform(numbers: Sequence[int], most: int) -> list[int]:
    """At most `most` of the numbers, evenly spread, the first and the last among them."""
    from lmms_eval_tasks.utils.media import uniform_indices

    return [numbers[place] for place in uniform_indices(len(numbers), most)]


def _taken(record: Record, numbers: Sequence[int], size: int) -> dict[int, str]:
    from lmms_eval_tasks.utils import indexed_frames

    if record.path is None:
        raise MediaError(f"{record.id}: its video file is not there")
    taken = indexed_frames.frames(record.path, [record.picks[n - 1] for n in numbers], size)
    made = {}
    for place, number in enumerate(numbers, 1):
        (image,) = taken.images([place])
        made[number] = data_uri(image, _QUALITY.get(size, 82))
    return made


def data_uri(image: Image, quality: int) -> str:
    """A picture as JPEG inside a URI."""
    file = io.BytesIO()
    image.convert("RGB").save(file, "JPEG", quality=quality)
    return f"data:image/jpeg;base64,{b64encode(file.getvalue()).decode('ascii')}"
