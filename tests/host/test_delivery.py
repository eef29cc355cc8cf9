"""What reached a model is counted where it is sent, processed or read; and told in words."""

from __future__ import annotations

import base64
import io
import json
import random
import sys
import wave
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import numpy as np
import pytest
import torch
from PIL import Image
from transformers import Qwen2VLImageProcessor, Qwen2VLVideoProcessor, WhisperFeatureExtractor
from transformers.generation.utils import GenerationMixin

from lmms_eval_tasks import context, settings
from lmms_eval_tasks.host import plugin
from lmms_eval_tasks.host.requests import counting, delivery
from lmms_eval_tasks.host.requests.delivery import Expected, RequestContent
from lmms_eval_tasks.report import arrivals
from tests.checks import table
from tests.media.media_files import write_video


def expected(name: str, text: str, videos: int, pictures: int) -> Expected:
    return Expected(name, lambda: RequestContent(text, videos, pictures))


VIDEO = expected("a", "What happens? Say it.", 1, 0)
OTHER = expected("b", "Who comes?", 1, 0)
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}


def wav(seconds: float) -> str:
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16000)
        file.writeframes(b"\0\0" * int(16000 * seconds))
    return base64.b64encode(buffer.getvalue()).decode()


def coded(width: int, height: int, form: str = "PNG") -> str:
    buffer = io.BytesIO()
    Image.new("RGB", (width, height)).save(buffer, form)
    return base64.b64encode(buffer.getvalue()).decode()


def seen(one: delivery.DeliveredMedia) -> tuple[Any, ...]:
    return one.frames, one.pictures, one.seconds


@table(
    "content, expected",
    [
        ([PICTURE] * 10, (10, 0, 0.0)),
        ([{"type": "video_url", "video_url": {"url": "file:///x.mp4"}}], (None, 0, 0.0)),
        (
            [PICTURE, {"type": "input_audio", "input_audio": {"data": wav(1.5), "format": "wav"}}],
            (1, 0, 1.5),
        ),
        ([{"type": "audio_url", "audio_url": {"url": "/x.wav"}}], (0, 0, None)),
        (  # Anthropic's
            [{"type": "image", "source": {"type": "base64", "data": "AA"}}] * 3,
            (3, 0, 0.0),
        ),
        ([{"image": "/tmp/x.png"}, {"image": "/tmp/y.png"}], (2, 0, 0.0)),  # DashScope's
        ([{"inlineData": {"mimeType": "image/png", "data": "AA"}}], (1, 0, 0.0)),  # Gemini's
        ([{"file_data": {"mime_type": "video/mp4", "file_uri": "x"}}], (None, 0, 0.0)),
        ([], (0, 0, 0.0)),
    ],
)
def test_bodies_of_requests(content: Any, expected: Any) -> None:
    text = {"type": "text", "text": " What  happens?\n<image>Say it."}
    found = sent([VIDEO, OTHER], {"messages": [{"role": "user", "content": [*content, text]}]})
    assert {name: seen(one) for name, one in found.items()} == {"a": expected}
    assert found["a"].at == "sent"


def sent(asked: list[Expected], *bodies: Any) -> Mapping[str, delivery.DeliveredMedia]:
    client = httpx.Client(transport=httpx.MockTransport(lambda _: httpx.Response(200)))
    with counting.count_media(), delivery.watching(asked) as watch:
        for body in bodies:
            client.post("http://x/", content=body if isinstance(body, str) else json.dumps(body))
    return watch.delivered


def test_the_beginnings_of_pictures_are_enough() -> None:
    noise = Image.frombytes("RGB", (320, 240), random.Random(0).randbytes(320 * 240 * 3))
    noise.save(buffer := io.BytesIO(), "PNG")
    picture = "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
    parts = [{"type": "image_url", "image_url": {"url": picture}}] * 3
    content = [*parts, {"type": "text", "text": "What happens? Say it."}]
    body = json.dumps({"messages": [{"role": "user", "content": content}]}).encode()
    short = counting._shortened(body)
    assert len(short) < 3 * (counting._BEGINNING + 1000) < len(body)
    (found,) = sent([VIDEO], body.decode()).values()
    assert (seen(found), found.sizes) == ((3, 0, 0.0), ((320, 240),))


WIDE, HIGH = coded(420, 252), coded(28, 56, "JPEG")


@table(
    "content, expected",
    [
        ([PICTURE], ()),
        (
            [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{WIDE}"}}] * 3,
            ((420, 252),),
        ),
        ([{"type": "input_image", "image_url": f"data:image/jpeg;base64,{HIGH}"}], ((28, 56),)),
        (
            [{"type": "image", "source": {"type": "base64", "data": one}} for one in (HIGH, WIDE)],
            ((28, 56), (420, 252)),
        ),
        ([{"inlineData": {"mimeType": "image/png", "data": WIDE}}, PICTURE], ((420, 252),)),
        ([{"type": "image_url", "image_url": {"url": "https://x/y/picture.png"}}], ()),
        ([{"image": "/tmp/x.png"}], ()),
    ],
)
def test_sizes_of_pictures_that_are_sent(content: Any, expected: Any) -> None:
    text = {"type": "text", "text": VIDEO.content.text}
    assert sent([VIDEO], {"messages": [{"content": [*content, text]}]})["a"].sizes == expected


def test_requests_of_the_same_text_and_those_sent_again() -> None:
    same = [expected(str(number), "Sum up.", 0, 2) for number in range(3)]
    text = {"type": "text", "text": "Sum up."}
    bodies = [{"messages": [{"content": [PICTURE] * n + [text]}]} for n in (1, 1, 2, 1)]
    found = sent(same, *bodies, "{", {"messages": [{"content": "judge this"}]})
    assert {name: one.pictures for name, one in found.items()} == {"0": 1, "1": 2}


# --- in this process: steps of a class, and what is known of its requests after them --------------

IMAGES = expected("c", "", 0, 2)
PICTURES = [IMAGES, expected("d", "", 0, 1)]


def step(kind: str, *given: str) -> None:
    """Of a class that is asked: takes the next request, or gives its media to a processor."""
    numbers = [float(one) for one in given if kind != "ask"]
    if kind == "ask":
        delivery.note_request(given[0])
    elif kind == "videos":
        frames = [np.zeros((int(one), 3, 56, 56), dtype=np.uint8) for one in numbers]
        Qwen2VLVideoProcessor()(videos=frames, return_tensors="pt")
    elif kind == "pictures":
        pictures = [Image.new("RGB", (56, 56))] * int(numbers[0])
        Qwen2VLImageProcessor()(images=pictures, return_tensors="pt")
    elif kind == "sound":
        samples = np.zeros(round(numbers[0] * 16000), np.float32)
        WhisperFeatureExtractor()(samples, sampling_rate=16000)
    else:
        with pytest.raises(AttributeError):  # no model at all, but it was asked to
            GenerationMixin.generate(SimpleNamespace(generation_config=None))


@table(
    "asked, steps, expected",
    [
        (
            [VIDEO, OTHER, IMAGES],
            "ask a, videos 8, sound 0.5, answer, ask c, pictures 2, answer",
            {"a": (8, 0, 0.5), "c": (0, 2, 0.0)},
        ),
        (  # a batch of two; some classes ask twice
            [VIDEO, OTHER],
            "ask a, ask b, ask b, videos 8 4, answer",
            {"a": (8, 0, 0.0), "b": (4, 0, 0.0)},
        ),
        # Frames that go as pictures, and what cannot be told apart.
        ([VIDEO, OTHER], "ask a, ask b, pictures 6, answer", {"a": (3, 0, 0.0), "b": (3, 0, 0.0)}),
        ([VIDEO, OTHER], "ask a, ask b, pictures 5, answer", {}),
        (  # prepared while another is answered: its frames are not there yet
            [VIDEO, OTHER, *PICTURES],
            "ask a, videos 8, ask b, answer, videos 4, answer, ask c, pictures 2, ask d, answer, "
            "pictures 1, answer",
            {"a": (8, 0, 0.0), "b": (4, 0, 0.0), "c": (0, 2, 0.0), "d": (0, 1, 0.0)},
        ),
    ],
)
def test_what_processors_take(asked: Any, steps: str, expected: Any) -> None:
    with counting.count_media(), delivery.watching(asked) as watch:
        for one in steps.split(", "):
            step(*one.split())
    assert {name: seen(one) for name, one in watch.delivered.items()} == expected
    step("pictures", "1")  # nothing is left behind, and nothing is counted outside
    assert context.current().get(delivery.Watch) is None


# A checkpoint's tokens for a picture and a video; patches of 14 pixels, four to a token.
QWEN = SimpleNamespace(
    image_token_id=7,
    video_token_id=8,
    vision_config=SimpleNamespace(patch_size=14, spatial_merge_size=2),
)


def ids(*rows: str) -> torch.Tensor:
    """Tokens by a letter each: P of a picture, V of a video, x another, _ of padding."""
    return torch.tensor([["_x......PV".index(one) - 1 for one in row] for row in rows])


def given(*rows: str, **more: Any) -> dict[str, Any]:
    grids = {name: torch.tensor(value) for name, value in more.items()}
    return {"input_ids": ids(*rows), "attention_mask": (ids(*rows) >= 0).long(), **grids}


@table(
    "config, told, expected",
    [
        (QWEN, given("xx", "_x"), [(2, None, ()), (1, None, ())]),
        (
            QWEN,
            given("xVVVVx", "__xVVx", video_grid_thw=[[2, 2, 4], [1, 4, 2]]),
            [(6, 4, ((56, 28),)), (4, 2, ((28, 56),))],
        ),
        (  # pictures of two sizes, and a request without any between
            QWEN,
            given("PxPPx", "___xx", "__PPx", image_grid_thw=[[1, 2, 2], [1, 2, 4], [1, 4, 2]]),
            [(5, 3, ((28, 28), (56, 28))), (2, None, ()), (3, 2, ((28, 56),))],
        ),
        # Grids that are more than the tokens of the prompt say.
        (QWEN, given("PPx", image_grid_thw=[[1, 2, 4], [1, 2, 2]]), [(3, 2, ((56, 28),))]),
        (  # no grids, but the frames themselves
            SimpleNamespace(video_token_index=8),
            given("xVVx") | {"pixel_values_videos": torch.zeros(1, 4, 3, 24, 48)},
            [(4, 2, ((48, 24),))],
        ),
        (None, {"inputs": ids("xxx")}, [(3, None, ())]),
        (None, {"inputs": ids("xx", "xx")}, [(None, None, ())] * 2),  # padded or not
        (QWEN, {"inputs_embeds": torch.zeros(1, 9, 4)}, [(9, None, ())]),
        (QWEN, {}, []),
        (QWEN, {"input_ids": "something else"}, []),
    ],
)
def test_rows_of_a_batch(config: Any, told: Any, expected: Any) -> None:
    model = SimpleNamespace(config=config)
    ((kind, rows),) = counting._generating(model, **told)
    assert (kind, list(map(tuple, rows))) == ("generate", expected)


@table(
    "rows, expected",
    [
        ([(99, 16, ((56, 28),)), (9, 5, ())], {"a": (99, 16, ((56, 28),)), "b": (9, 5, ())}),
        # Models that look at pictures from beside the prompt have one token in it for each.
        ([(99, 9, ()), (9, 4, ())], {"a": (99, 9, ()), "b": (9, None, ())}),
        ([(9, 9, ())], {"a": (None, None, ()), "b": (None, None, ())}),  # not these two
        ([], {"a": (None, None, ()), "b": (None, None, ())}),
    ],
)
def test_whose_rows_they_are(rows: Any, expected: Any) -> None:
    with delivery.watching([VIDEO, OTHER]) as watch:
        events = [("handed", "a"), ("handed", "b"), ("video", 8), ("video", 4)]
        events.append(("generate", [delivery.PromptRow(*row) for row in rows]))
        watch.note([delivery.MediaEvent(*event) for event in events])
    counts = {k: (v.prompt_tokens, v.visual_tokens, v.sizes) for k, v in watch.delivered.items()}
    assert counts == expected


def test_unknown_sizes_and_tokens_are_no_fields_of_an_item() -> None:
    plain = {"at": "sent", "frames": 0, "distinct": None, "pictures": 0, "seconds": 0.0}
    assert delivery.DeliveredMedia("sent").as_dict() == plain
    more = {"sizes": [[4, 2]], "visual_tokens": 3, "prompt_tokens": 5}
    whole = delivery.DeliveredMedia("sent", sizes=((4, 2),), visual_tokens=3, prompt_tokens=5)
    assert whole.as_dict() == plain | more


def test_what_decord_is_asked_for(tmp_path: Path) -> None:
    decord = pytest.importorskip("decord", reason="has no wheel for this machine")
    path = write_video(tmp_path / "v.mp4", 16)

    def counted(indices: list[int], frames: int = 0, reads: bool = True) -> Any:
        with counting.count_media(), delivery.watching([VIDEO], reads=reads) as watch:
            step("ask", "a")
            reader = decord.VideoReader(str(path))
            reader.get_batch(indices)
            assert reader[9] is not None
            if frames:
                step("videos", str(frames))
                step("answer")
        return [(one.at, one.frames, one.distinct) for one in watch.delivered.values()]

    assert counted([0, 3, 3, 9]) == [("reader", 5, 3)]
    # A class may ask for one frame to see its size, and read the others otherwise.
    assert counted([0], frames=8, reads=False) == [("processor", 8, None)]
    # What a processor takes after it may be less, or nothing.
    assert counted([0, 3], reads=False) == []


def test_an_engine_that_calls_a_processor_for_some_of_its_media() -> None:
    """And keeps what it made of the others: nothing is said, since no `generate` follows."""
    with counting.count_media(), delivery.watching([VIDEO, OTHER]) as watch:
        for one in ("ask a", "videos 8", "ask b", "sound 1"):
            step(*one.split())
    assert watch.delivered == {}


class Engine:
    """vLLM's `LLM`, as far as the host's class calls it: each picture is processed once."""

    def __init__(self) -> None:
        self.known: dict[str, bool] = {}

    def chat(self, messages: list[Any], **_: Any) -> list[Any]:
        for (message,) in messages:
            urls = [part["image_url"]["url"] for part in message["content"] if "image_url" in part]
            for url in [one for one in urls if not self.known.setdefault(one)]:
                coded, self.known[url] = base64.b64decode(url.partition(",")[2]), True
                Qwen2VLImageProcessor()(images=[Image.open(io.BytesIO(coded))])
        return [SimpleNamespace(outputs=[SimpleNamespace(text="A")]) for _ in messages]


@pytest.mark.parametrize("known", [True, False])
def test_the_hosts_class_of_vllm(
    known: bool, on_sample: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted where messages enter the engine; of one with another entrance at the reader."""
    plugin.install()
    from lmms_eval import evaluator
    from lmms_eval.api.model import lmms
    from lmms_eval.models.chat import vllm

    monkeypatch.setitem(sys.modules, "vllm", SimpleNamespace(**({"LLM": Engine} if known else {})))
    monkeypatch.setattr(vllm, "SamplingParams", dict)
    monkeypatch.setenv(settings.FRESH, "1")
    lm = object.__new__(vllm.VLLM)
    lmms.__init__(lm)
    vars(lm).update(
        client=Engine(),
        batch_size_per_gpu=2,
        chat_template=None,
        disable_log_stats=True,
        max_new_tokens=8,
        max_pixels=151200,
        min_image_pixels=28,
        max_frame_num=32,
        fps=None,
        nframes=32,
        is_qwen3_vl=False,
        _tp_world_size=1,
        _tp_group_cpu=None,
    )
    made = evaluator.simple_evaluate(model=lm, tasks=["maia_vsv"], limit=6, verbosity="ERROR")
    counted = [one["failed"].get("arrived") for one in made["samples"]["maia_vsv"]]
    assert len(lm.client.known) <= 32  # of six questions on one video
    told = [one and (one["at"], one["frames"]) for one in counted]
    # The first request is asked alone, the others together.
    assert told == ([("engine", 32)] * 6 if known else [("reader", 32), *[None] * 5])


# --- in words -------------------------------------------------------------------------------------


def item(**told: Any) -> dict[str, Any]:
    made = {"at": "sent", "frames": 0, "distinct": None, "pictures": 0, "seconds": 0.0, "of": None}
    return {"id": told.pop("id", "1"), "status": "ok", "arrived": {**made, **told}}


def lengths(*tokens: int, **told: Any) -> list[dict[str, Any]]:
    """Items with prompts of so many tokens, of videos of 32 frames."""
    known = {"frames": 32, "of": 32, **told}
    return [item(id=str(n), prompt_tokens=one, **known) for n, one in enumerate(tokens)]


@table(
    "items, said, short",
    [
        ([item(frames=32, of=32)] * 2, "t: 32 of 32 frames", ""),
        (
            [item(frames=10, of=32), item(frames=32, of=32)],
            "t: 10 to 32 of 32 frames",
            "t: the model saw 10 of 32 frames (1 of 2 requests)",
        ),
        (
            [item(frames=32, distinct=31, of=32)],
            "t: 31 of 32 frames",
            "t: the model saw 31 of 32 frames",
        ),
        ([item(pictures=32, of=32)], "t: 32 of 32 frames", ""),  # a video that went as pictures
        ([item(pictures=8, of=32)], "t: 8 of 32 frames", "t: the model saw 8 of 32 frames"),
        ([item(frames=None, of=32)], "t: the file itself", ""),
        ([item(pictures=1)], "t: 1 picture", ""),
        ([item(pictures=20), item(pictures=40)], "t: 20 to 40 pictures", ""),
        ([item(frames=32, seconds=12.04)], "t: 32 frames and 12 s of sound", ""),
        ([item(frames=32, seconds=None)], "t: 32 frames and sound", ""),
        (
            [item(frames=32, of=32, sizes=[[588, 364]], visual_tokens=4368, prompt_tokens=4568)],
            "t: 32 of 32 frames of 588 x 364 pixels (4,368 visual tokens), 4,568 prompt tokens",
            "",
        ),
        (
            [
                item(frames=32, seconds=2.5, visual_tokens=2160, prompt_tokens=2360),
                item(frames=32, seconds=2.5, sizes=[[28, 56], [420, 252]], prompt_tokens=2410),
            ],
            "t: 32 frames of 28 x 56 to 420 x 252 pixels (2,160 visual tokens) and 2.5 s of sound, "
            "2,360 to 2,410 prompt tokens",
            "",
        ),
        ([item(prompt_tokens=12)], "t: only text, 12 prompt tokens", ""),
        ([item()], "t: only text", ""),
        ([item(frames=4), {"status": "ok"}], "t: 4 frames (1 of 2 requests counted)", ""),
        ([{"status": "ok"}], "", ""),
    ],
)
def test_in_words(items: Any, said: str, short: str) -> None:
    found = arrivals.line({"t": items})
    assert found == (f"reached the model, counted in what was sent: {said}" if said else "")
    assert arrivals.short("t", items) == short


def test_tasks_of_which_the_same_is_said() -> None:
    whole, picture = [item(frames=32, of=32, at="processor")], [item(pictures=1)]
    assert arrivals.line({"a": whole, "b": picture, "c": whole, "d": [{"status": "ok"}]}) == (
        "reached the model, counted at the model's processor and in what was sent: "
        "a, c: 32 of 32 frames; b: 1 picture"
    )


def test_prompts_of_tasks_of_which_the_same_is_said() -> None:
    told = {"a": lengths(2300, 2340), "b": lengths(2410), "c": [item(frames=32, of=32)]}
    said = arrivals.line(told).partition("sent: ")[2]
    assert said == "a, b, c: 32 of 32 frames, 2,300 to 2,410 prompt tokens"
    assert arrivals.prompt_lengths(told["a"]) == {"0": 2300, "1": 2340}
    assert arrivals.prompt_lengths([*told["c"], {"id": "9", "status": "ok"}]) == {}


SIZES = (
    "saw pictures of different sizes: pass the same min_pixels and max_pixels in --model_args "
    "(docs/models.md)"
)
APART = "t: the prompts of the two runs differ in length: a median of 4,568 against 2,360 tokens; "


@table(
    "first, second, said",
    [
        (lengths(4568, 4570), lengths(4568, 4570), ""),
        ([item(frames=32)], lengths(4568), ""),  # nobody counted
        ([{"id": "0", "status": "ok"}], lengths(4568), ""),
        (lengths(4568), [], ""),
        (lengths(4568), lengths(2360), f"{APART}the models probably {SIZES}"),
        (
            lengths(4568, visual_tokens=4368),
            lengths(2360, visual_tokens=2160),
            f"{APART}the models {SIZES}",
        ),
        (
            lengths(4568, visual_tokens=2160),
            lengths(2360, visual_tokens=2160),
            f"{APART}the text around the pictures differs, for example because "
            "of another chat template",
        ),
        (
            lengths(4568),
            lengths(2360, frames=16),
            f"{APART}the models saw different numbers of frames or pictures",
        ),
        (
            lengths(4568, sizes=[[420, 252]]),
            lengths(2360, sizes=[[420, 252]]),
            f"{APART}the pictures have the same size: one model may have got a video as single "
            "pictures",
        ),
        (  # under 2 %, and fewer than 8 tokens
            lengths(4568),
            lengths(4500),
            "t: the prompts of the two runs differ in length: a median of "
            "4,568 against 4,500 tokens; such a small difference may come from another chat "
            "template",
        ),
        (
            lengths(30),
            lengths(23),
            "t: the prompts of the two runs differ in length: a median of 30 "
            "against 23 tokens; such a small difference may come from another chat template",
        ),
        (  # of the common items those that differ by much
            lengths(4568, 2360, 2361),
            [*lengths(2360, 2360, 2360), item(id="9", frames=32, prompt_tokens=9)],
            "t: the prompts of the two runs differ in length in 1 of 3 "
            "requests: a median of 4,568 against 2,360 tokens; the models "
            f"probably {SIZES}",
        ),
    ],
)
def test_two_runs_whose_prompts_differ(first: Any, second: Any, said: str) -> None:
    assert arrivals.differing_prompts("t", first, second) == said
