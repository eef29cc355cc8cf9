"""The rating sheet as one HTML page: pictures, texts, the rubric, and a button for the CSV.

Nothing is loaded from elsewhere and nothing is sent anywhere. The browser keeps ratings while the
page is open, also when it is loaded again, and forgets them with it: the second rater at the same
computer must not see the first one's.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from html import escape

from lmms_eval_tasks.haven.records.picture import Evidence
from lmms_eval_tasks.haven.records.rating_sheet import (
    COLUMNS,
    DIMENSIONS,
    RUBRIC,
    RULES,
    SCALE,
    Drawn,
    Sheet,
    csv_text,
    shown,
)

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2230; --soft: #5b6475; --line: #d5dae3; --page: #f5f6f9;
  --card: #fff; --mark: #2458c5; --on: #fff; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9f0; --soft: #9aa4b6; --line: #363d4b;
  --page: #14171d; --card: #1d222b; --mark: #7ea6ff; --on: #10141b; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 62rem; padding: 1rem 1rem 6rem; background: var(--page);
  color: var(--ink); font: 1rem/1.5 system-ui, sans-serif; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.15rem; margin-top: 2.5rem; }
h3 { font-size: 1rem; margin: 0 0 .5rem; }
section { background: var(--card); border: 1px solid var(--line); border-radius: .5rem;
  padding: 1rem; margin: 1rem 0; }
.pictures { display: flex; flex-wrap: wrap; gap: .4rem; margin: .5rem 0; }
.pictures img { max-width: 100%; border-radius: .25rem; }
blockquote { margin: .5rem 0 1rem; padding-left: .8rem; border-left: 3px solid var(--mark); }
fieldset { border: 0; padding: .5rem 0; margin: 0; border-top: 1px solid var(--line); }
legend { float: left; width: 100%; padding: 0; font-weight: 600; }
legend + * { clear: both; }
.ask { color: var(--soft); margin: 0 0 .3rem; }
.scale label { display: inline-block; margin: 0 1.2rem .2rem 0; padding: .2rem 0; }
details { color: var(--soft); } .none { color: var(--soft); font-style: italic; }
footer { position: fixed; inset: auto 0 0 0; padding: .7rem 1rem; background: var(--card);
  border-top: 1px solid var(--line); text-align: center; }
button { font: inherit; padding: .4rem 1rem; border: 0; border-radius: .3rem; cursor: pointer;
  background: var(--mark); color: var(--on); margin-left: 1rem; }
"""

# `sheet` is the JSON of the page. A rating is kept under the sheet's own name.
_SCRIPT = """
const sheet = JSON.parse(document.getElementById('sheet').textContent);
const given = new Map();
let store = null;
let changed = false;
try { store = window.sessionStorage; } catch (error) { store = null; }
function cell(value) {
  const text = String(value);
  return /[",\\r\\n]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text;
}
function count() {
  document.getElementById('count').textContent = given.size + ' of ' + sheet.rows.length + ' rated';
}
function csv() {
  const rows = sheet.rows.map((row, n) => [...row, given.get(n) ?? '']);
  return [sheet.columns, ...rows].map(row => row.map(cell).join(',')).join('\\n') + '\\n';
}
function keep() {
  try { store?.setItem(sheet.name, JSON.stringify([...given])); } catch (error) { store = null; }
}
document.querySelectorAll('input[type=radio]').forEach(input => {
  input.addEventListener('change', () => {
    given.set(Number(input.name.slice(1)), Number(input.value)); changed = true; count(); keep();
  });
});
try {
  for (const [n, value] of JSON.parse(store?.getItem(sheet.name) ?? '[]')) {
    const input = document.querySelector(`input[name=r${n}][value="${value}"]`);
    if (input) { input.checked = true; given.set(n, value); }
  }
} catch (error) { given.clear(); }
count();
changed = given.size > 0;
window.addEventListener('beforeunload', event => { if (changed) event.preventDefault(); });
document.getElementById('save').addEventListener('click', () => {
  const left = sheet.rows.findIndex((row, n) => !given.has(n));
  if (left >= 0) {
    document.getElementById('f' + left).scrollIntoView({ block: 'center' });
    if (!confirm('Not everything is rated yet. Download what there is?')) return;
  }
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([csv()], { type: 'text/csv' }));
  link.download = 'ratings.csv';
  link.click();
  changed = false;
  URL.revokeObjectURL(link.href);
});
"""


def html(sheet: Sheet, evidence: Mapping[str, Evidence]) -> str:
    """The page.

    Args:
        sheet: what is to be rated.
        evidence: pictures by the video's id.
    """
    rows = sheet.rows
    # Ratings of another sheet must not turn up in this one.
    name = hashlib.sha256(csv_text(rows).encode("utf-8", "replace")).hexdigest()[:12]
    data = {
        "name": f"haven-ratings-{name}",
        "columns": COLUMNS,
        "rows": [[row.id, row.level, shown(row.text), row.dimension] for row in rows],
    }
    number = 0
    parts = []
    for place, video in enumerate(sheet.videos, 1):
        part, number = _video(video, evidence[video.id], place, number)
        parts.append(part)
    rules = "".join(f"<li>{escape(rule)}</li>" for rule in RULES)
    # "</script>" inside a text must not end the block.
    content = json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Rating of HAVEN's annotations</title><style>{_STYLE}</style></head><body>
<h1>Rating of descriptions, documents and summaries</h1>
<p>{len(sheet.videos)} videos, {len(rows)} ratings from {SCALE[0]} to {SCALE[-1]}. At the end,
download the file of your ratings.</p>
<ul>{rules}</ul>
<details open><summary>What the numbers mean</summary>{_rubric()}</details>
{"".join(parts)}
<footer><span id="count"></span><button id="save" type="button">Download ratings (CSV)</button>
</footer>
<script type="application/json" id="sheet">{content}</script>
<script>{_SCRIPT}</script>
</body></html>
"""


def _rubric() -> str:
    items = (f"<li><b>{number}</b>: {escape(what)}</li>" for number, what in RUBRIC.items())
    return f"<ul>{''.join(items)}</ul>"


def _video(video: Drawn, seen: Evidence, place: int, number: int) -> tuple[str, int]:
    """A video's part of the page, and the number of the next rating."""
    name = f" ({escape(video.record.name)})" if video.record.name else ""
    parts = [f"<h2>Video {place}: {escape(video.id)}{name}</h2>"]
    if seen.why:
        parts.append('<p class="none">Its pictures are not in this form; look at the video.</p>')
    for identity, level, text in video.texts:
        what = identity.removeprefix(f"{video.id} ")
        pictures = _pictures(_shown_of(level, what, seen))
        questions = []
        for dimension, question in DIMENSIONS[level].items():
            questions.append(_question(number, dimension, question))
            number += 1
        parts.append(
            f"<section><h3>{escape(what.capitalize())}</h3>{pictures}"
            f"<blockquote>{escape(text)}</blockquote>{''.join(questions)}</section>"
        )
    return "".join(parts), number


def _shown_of(level: str, what: str, seen: Evidence) -> Sequence[str]:
    if level == "frame":
        found = seen.frames.get(int(what.removeprefix("frame ")))
        return [found] if found else []
    return seen.shot if level == "shot" else seen.video


def _pictures(uris: Sequence[str]) -> str:
    if not uris:
        return ""
    images = (f'<img src="{uri}" alt="picture {n}">' for n, uri in enumerate(uris, 1))
    return f'<div class="pictures">{"".join(images)}</div>'


def _question(number: int, dimension: str, question: str) -> str:
    options = "".join(
        f'<label><input type="radio" name="r{number}" value="{value}"> {value}</label>'
        for value in SCALE
    )
    return (
        f'<fieldset id="f{number}"><legend>{escape(dimension.capitalize())}</legend>'
        f'<p class="ask">{escape(question)}</p><div class="scale">{options}</div>'
        f"<details><summary>Scale</summary>{_rubric()}</details></fieldset>"
    )
