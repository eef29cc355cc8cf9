"""CLIPScore: the formula by hand, the loader on tiny models with random weights.

No CLIP weights come with any package; what real ones would give was not checked.
"""

from __future__ import annotations

import json
import math
import random
import shutil
import socket
import subprocess
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_clip
from tiny_clip import picture

from lmms_eval_tasks.errors import MediaError
from lmms_eval_tasks.utils import clip_encoder, clipscore, local_models
from lmms_eval_tasks.utils.clip_encoder import Picture
from lmms_eval_tasks.utils.clipscore import ClipScore, clip_score, from_embeddings, problem

SENTENCES = ["A man paints the boat.", "The red dog sleeps", "a woman runs by the green river"]
IMAGES = {
    "sea": picture((20, 60, 200)),
    "meadow": picture((40, 180, 60), (250, 250, 250)),
    "sunset": picture((230, 90, 20), (20, 20, 90)),
}
ROUNDING = 1e-5  # of single precision, over batches of different shapes


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Threads cost tiny models more than they bring, and fight with whatever else runs."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(autouse=True)
def nothing_kept() -> Iterator[None]:
    clipscore._loaded.cache_clear()
    yield
    clipscore._loaded.cache_clear()


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tiny_clip.build(tmp_path_factory.mktemp("models") / "clip"))


@pytest.fixture
def hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "hub"


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Every attempt to reach the network, as if it were allowed; none succeeds."""
    from huggingface_hub import constants

    attempts: list[Any] = []

    def refuse(*args: Any, **kwargs: Any) -> None:
        attempts.append(args)
        raise OSError("no network in tests")

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    return attempts


def given(names: Sequence[str], opened: list[str] | None = None) -> list[Picture]:
    """Pictures that note that they are opened."""

    def opener(name: str) -> Any:
        def opens() -> Any:
            if opened is not None:
                opened.append(name)
            return IMAGES[name].copy()

        return opens

    return [Picture(name, opener(name)) for name in names]


def scored(model: str, sentences: Sequence[str], names: Sequence[str], **options: Any) -> float:
    score = clip_score(sentences, given(names), model, **options)
    assert score.reason is None, score.reason
    assert score.value is not None
    return score.value


# --- the formula ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("texts", "images", "expected"),
    [
        ([[1, 0]], [[1, 0]], 2.5),
        ([[1, 0]], [[0, 1]], 0.0),
        ([[1, 0]], [[-1, 0]], 0.0),
        ([[1, 0]], [[1, 1]], 2.5 / math.sqrt(2)),
        ([[3, 4]], [[1, 0]], 1.5),  # cosine 3/5
        ([[3, 4]], [[5, 12]], 2.5 * 63 / 65),
        ([[1, 0], [0, 1]], [[3, 4]], 1.75),  # (3/5 + 4/5) / 2
        ([[3, 4]], [[1, 0], [0, 1], [0, -1], [-1, 0]], 2.5 * 1.4 / 4),
        # Clipped pair by pair: the mean cosine of both pairs is 0.
        ([[1, 0]], [[1, 0], [-1, 0]], 1.25),
        ([[1, 0], [-1, 0]], [[1, 0], [-1, 0]], 1.25),
        # A mean of pairs: a mean of embeddings first would give 2.5 for both.
        ([[1, 1]], [[1, 0], [0, 1]], 2.5 / math.sqrt(2)),
        ([[1, 0], [0, 1]], [[1, 1]], 2.5 / math.sqrt(2)),
        # A repeated one counts twice.
        ([[1, 0], [1, 0], [0, 1]], [[1, 0]], 5 / 3),
        # Lengths do not matter, however great or small.
        ([[300, 400]], [[0.001, 0]], 1.5),
        ([[3e200, 4e200]], [[1e-300, 0]], 1.5),
    ],
)
def test_by_hand(texts: list[Any], images: list[Any], expected: float) -> None:
    assert from_embeddings(np.array(texts), np.array(images)) == pytest.approx(expected, abs=1e-12)
    assert from_embeddings(texts, images) == pytest.approx(expected, abs=1e-12)  # lists too


@pytest.mark.parametrize(
    ("texts", "images"),
    [([], [[1, 0]]), ([[1, 0]], []), ([], []), (np.zeros((0, 4)), np.ones((2, 4)))],
)
def test_nothing_has_no_score(texts: Any, images: Any) -> None:
    assert from_embeddings(texts, images) is None


@pytest.mark.parametrize(
    ("texts", "images", "said"),
    [
        ([[1, 0, 0]], [[1, 0]], "text embeddings of 3 numbers, image embeddings of 2"),
        ([1, 0], [[1, 0]], "text embeddings: expected a row for each, not 1 dim"),
        ([[1, 0]], [[[1, 0]]], "image embeddings: expected a row for each, not 3 dim"),
        ([[1, math.nan]], [[1, 0]], "text embeddings: a number is not finite"),
        ([[1, 0]], [[1, 0], [math.inf, 0]], "image embeddings: a number is not finite"),
        ([[1, 0]], [[1, 0], [0, 0]], "an embedding of zeros has no direction"),
        ([[]], [[]], "an embedding of zeros has no direction"),
    ],
)
def test_what_is_no_embedding(texts: Any, images: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        from_embeddings(texts, images)


def test_a_list_is_the_mean_of_its_pairs_in_any_order() -> None:
    rng = np.random.default_rng(5)
    texts, images = rng.normal(size=(7, 33)), rng.normal(size=(11, 33))
    whole = from_embeddings(texts, images)
    alone = [from_embeddings([text], [image]) for text in texts for image in images]
    assert whole == pytest.approx(math.fsum(v for v in alone if v is not None) / 77, abs=1e-12)
    for _ in range(10):
        assert from_embeddings(rng.permutation(texts), rng.permutation(images)) == whole


def test_never_above_its_maximum() -> None:
    rng = np.random.default_rng(6)
    for vector in rng.normal(size=(200, 17)):
        assert from_embeddings([vector], [vector * 3]) == pytest.approx(2.5)
        assert (from_embeddings([vector], [vector * 3]) or 0) <= 2.5


# --- with a model -----------------------------------------------------------------------------


def directly(folder: str, sentences: Sequence[str], names: Sequence[str]) -> list[float]:
    """Cosines by CLIP's own forward pass: its logits without their scale, pair by pair."""
    import torch
    from transformers import AutoTokenizer, CLIPImageProcessor, CLIPModel

    model = CLIPModel.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    processor = CLIPImageProcessor.from_pretrained(folder)
    found = []
    for sentence in sentences:
        for name in names:
            with torch.no_grad():
                logits = model(
                    **tokenizer(sentence, return_tensors="pt"),
                    **processor(images=IMAGES[name], return_tensors="pt"),
                ).logits_per_text
                found.append((logits / model.logit_scale.exp()).item())
    return found


def test_the_models_own_cosines_give_the_same(clip: str) -> None:
    names = list(IMAGES)
    cosines = directly(clip, SENTENCES, names)
    assert len({round(cosine, 3) for cosine in cosines}) == 9  # mixed-up pairs would show
    assert min(cosines) > 0  # so that none of the tests below compares 0 with 0
    expected = [2.5 * max(0.0, cosine) for cosine in cosines]
    assert scored(clip, SENTENCES, names) == pytest.approx(sum(expected) / 9, abs=ROUNDING)
    for place, value in enumerate(expected):
        pair = [SENTENCES[place // 3]], [names[place % 3]]
        assert scored(clip, *pair) == pytest.approx(value, abs=ROUNDING)


@pytest.mark.parametrize("batch_size", [None, 1, 2, 16])
def test_a_list_and_item_by_item_agree(clip: str, batch_size: int | None) -> None:
    names = list(IMAGES)
    together = scored(clip, SENTENCES, names, batch_size=batch_size)
    clipscore._loaded.cache_clear()  # else nothing would be embedded again
    alone = [scored(clip, [sentence], [name]) for sentence in SENTENCES for name in names]
    assert together == pytest.approx(sum(alone) / 9, abs=ROUNDING)
    if batch_size in (None, 1):
        assert together == pytest.approx(sum(alone) / 9, abs=1e-15)


def test_texts_of_a_batch_have_different_lengths(clip: str) -> None:
    """What the test above rests on: some are padded."""
    encoder = clip_encoder.load(Path(clip))
    lengths = {len(encoder.tokenizer(sentence)["input_ids"]) for sentence in SENTENCES}
    assert len(lengths) == 3


def test_company_and_order_change_no_bit(clip: str) -> None:
    names = list(IMAGES)
    first = scored(clip, SENTENCES, names)
    clipscore._loaded.cache_clear()
    rng = random.Random(2)
    scored(clip, ["the cat plays", SENTENCES[2]], ["sunset"])  # what is known already
    for _ in range(5):
        assert scored(clip, rng.sample(SENTENCES, 3), rng.sample(names, 3)) == first


def test_repeated_ones_count_twice(clip: str) -> None:
    one, other = (scored(clip, [SENTENCES[0]], [name]) for name in ("sea", "meadow"))
    assert one != other
    twice = scored(clip, [SENTENCES[0]], ["sea", "meadow", "sea"])
    assert twice == pytest.approx((2 * one + other) / 3)


def test_each_text_and_picture_is_embedded_once(clip: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As joint and separate scores of a video share both."""
    texts: list[str] = []
    original = clip_encoder.Encoder._embed_texts

    def counted(self: Any, batch: Sequence[str]) -> Any:
        texts.extend(batch)
        return original(self, batch)

    monkeypatch.setattr(clip_encoder.Encoder, "_embed_texts", counted)
    opened: list[str] = []
    joint = clip_score(SENTENCES[:2], given(["sea", "meadow", "sea"], opened), clip)
    assert sorted(opened) == ["meadow", "sea"]
    assert sorted(texts) == sorted(SENTENCES[:2])
    clip_score(SENTENCES[1:], given(["meadow", "sunset"], opened), clip)
    assert opened[2:] == ["sunset"]
    assert texts[2:] == SENTENCES[2:]
    assert clip_score(SENTENCES[:2], given(["sea", "meadow", "sea"], opened), clip) == joint
    assert (len(opened), len(texts)) == (3, 3)


def test_pictures_are_opened_batch_by_batch(clip: str) -> None:
    held, most = 0, 0

    class Held:
        """A picture that knows how many others are open."""

        def __init__(self, name: str) -> None:
            nonlocal held, most
            self.name, held = name, held + 1
            most = max(most, held)

        def convert(self, mode: str) -> Any:
            nonlocal held
            held -= 1
            return IMAGES[self.name].convert(mode)

    pictures = [Picture(name, lambda name=name: Held(name)) for name in IMAGES]  # type: ignore[misc]
    assert clip_score(SENTENCES, pictures, clip).value is not None
    assert most == 1


def test_pictures_of_any_mode(clip: str) -> None:
    colours = IMAGES["meadow"].convert("P", palette=1).convert("RGB")

    def of(mode: str, key: str) -> float:
        found = clip_score(SENTENCES, [Picture(key, lambda: colours.convert(mode))], clip)
        assert found.value is not None
        return found.value

    assert of("RGBA", "a") == of("RGB", "b") != scored(clip, SENTENCES, ["sea"])
    assert of("L", "c") is not None


def test_an_older_transformers_returns_vectors_alone(
    clip: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from transformers import CLIPModel

    expected = scored(clip, SENTENCES, list(IMAGES))
    clipscore._loaded.cache_clear()
    for name in ("get_text_features", "get_image_features"):
        now = getattr(CLIPModel, name)
        old = lambda self, now=now, **given: now(self, **given).pooler_output  # noqa: E731
        monkeypatch.setattr(CLIPModel, name, old)
    assert scored(clip, SENTENCES, list(IMAGES)) == expected


# --- empty and long texts ---------------------------------------------------------------------

LONG = "the man paints the boat and the dog sleeps by the river and a cat plays"  # 16 words


def test_sentences_that_are_cut_are_counted(clip: str) -> None:
    score = clip_score([LONG, SENTENCES[0], LONG], given(["sea"]), clip)
    assert (score.n_sentences, score.n_cut) == (3, 2)
    # What is cut is the end, and the end token stays: what follows has no part in it.
    assert scored(clip, [LONG], ["sea"]) == scored(clip, [LONG + " in a boat"], ["sea"])
    words = LONG.split()
    kept = " ".join(words[: tiny_clip.POSITIONS - 2])
    assert clip_score([kept], given(["sea"]), clip).n_cut == 0
    assert scored(clip, [LONG], ["sea"]) == pytest.approx(scored(clip, [kept], ["sea"]), abs=1e-6)
    assert abs(scored(clip, [LONG], ["sea"]) - scored(clip, [" ".join(words[:9])], ["sea"])) > 1e-3
    # Different texts so far: LONG, the longer one, SENTENCES[0], the one that just fits, 9 words.
    assert "2 of 5 sentences cut to 16 tokens" in clipscore.describe(clip)


def test_the_smaller_limit_counts(tmp_path: Path) -> None:
    folder = tiny_clip.build(tmp_path / "short")
    config = folder / "tokenizer_config.json"
    settings = json.loads(config.read_text())
    assert settings["model_max_length"] == 16
    for limit, expected in ((8, 8), (77, 16), (10**30, 16)):
        config.write_text(json.dumps(settings | {"model_max_length": limit}))
        assert clip_encoder.load(folder).max_tokens == expected


@pytest.mark.parametrize("blank", ["", "  \n", "...", "\u200b"])
def test_a_sentence_without_a_word_is_left_out(clip: str, blank: str) -> None:
    score = clip_score([SENTENCES[0], blank], given(["sea"]), clip)
    assert score == clip_score(SENTENCES[:1], given(["sea"]), clip)
    assert score.n_sentences == 1
    assert clip_score([blank], given(["sea"]), clip) == ClipScore(None, 0, 0, None)


def test_nothing_to_compare_has_no_score(clip: str) -> None:
    assert clip_score([], given(["sea"]), clip) == ClipScore(None, 0, 0, None)
    assert clip_score(SENTENCES, [], clip) == ClipScore(None, 3, 0, None)


def test_composed_and_decomposed_are_equal(clip: str) -> None:
    text = "la città è in the boat"
    apart = unicodedata.normalize("NFD", text)
    assert apart != text
    assert scored(clip, [f"  {apart}\n"], ["sea"]) == scored(clip, [text], ["sea"])
    assert "of 1 sentences" in clipscore.describe(clip)


# --- which model ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "comparable"),
    [("openai/clip-vit-base-patch32", True), ("someone/clip-vit-base-patch32", False)],
)
def test_a_cached_name_with_its_commit(
    hub_cache: Path, network: list[Any], name: str, comparable: bool
) -> None:
    import transformers

    folder = tiny_clip.into_cache(hub_cache, name)
    assert problem(name) is None
    assert clip_score(SENTENCES, given(["sea"]), name).value is not None
    assert clipscore.is_comparable(name) is comparable
    said = (
        "CLIPScore: 2.5 * max(0, cosine), mean over all pairs of a sentence and a frame; sentences "
        f"as they are, without a prompt; model {name} at {folder.name[:12]}, transformers "
        f"{transformers.__version__}, float32; 0 of 3 sentences cut to 16 tokens"
    )
    doubt = "" if comparable else f"; {local_models.NOT_COMPARABLE}"
    assert clipscore.describe(name) == said + doubt
    assert network == []


def test_a_folder_is_not_comparable_and_has_a_hash(clip: str, tmp_path: Path) -> None:
    """Whose weights it holds nobody can tell; whether two folders hold the same, the hash does."""
    described = clipscore.describe(clip)
    assert described.endswith(local_models.NOT_COMPARABLE)
    assert "NOT COMPARABLE" in described
    digest = local_models.weights(Path(clip))
    assert f"model {clip} (SHA-256 of its weights {digest}), transformers" in described
    copy = shutil.copytree(clip, tmp_path / "copy")
    assert local_models.weights(copy) == digest
    other = tiny_clip.build(tmp_path / "other", seed=1)
    assert local_models.weights(other) != digest
    # Its name does not make it one of OpenAI's.
    disguised = shutil.copytree(clip, tmp_path / "openai" / "clip-vit-base-patch32")
    assert not clipscore.is_comparable(str(disguised))


@pytest.mark.parametrize(
    "name", ["/no/such/folder", "no-such/model", "../no-such-folder", "a b/c:d//e"]
)
def test_an_absent_model(hub_cache: Path, network: list[Any], name: str) -> None:
    said = f"CLIP model {name!r} is not in the local Hugging Face cache and is no folder"
    assert clip_score(SENTENCES, given(["sea"]), name) == ClipScore(None, 3, 0, said)
    assert problem(name) == said
    assert clipscore.describe(name) == f"CLIPScore not computed: {said}"
    assert not clipscore.is_comparable(name)
    assert network == []


# --- models that cannot be used ---------------------------------------------------------------


def reason(folder: Path) -> str:
    score = clip_score(SENTENCES, given(["sea"]), str(folder))
    assert score.value is None
    assert score.reason is not None
    assert score.reason.startswith(str(folder))
    assert "\n" not in score.reason
    return score.reason


def change_weights(folder: Path, name: str, value: float | None) -> None:
    from safetensors.torch import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    if value is None:
        del weights[name]
    else:
        weights[name].fill_(value)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def test_another_kind_of_model(tmp_path: Path) -> None:
    import tiny_bert

    folder = tiny_bert.build(tmp_path / "bert")
    assert problem(str(folder)) == f"{folder}: bert is no CLIP model"
    assert reason(folder)


def test_missing_weights_are_not_random(tmp_path: Path) -> None:
    folder = tiny_clip.build(tmp_path / "missing")
    change_weights(folder, "text_projection.weight", None)
    assert problem(str(folder)) is None  # weights are not read before a run
    assert "1 weights are not in the folder, e.g. text_projection.weight" in reason(folder)
    assert clipscore.describe(str(folder)) == f"CLIPScore not computed: {reason(folder)}"


@pytest.mark.parametrize("name", ["text_projection.weight", "visual_projection.weight"])
def test_output_that_is_not_finite(tmp_path: Path, name: str) -> None:
    folder = tiny_clip.build(tmp_path / "nan")
    change_weights(folder, name, math.nan)
    assert "not finite" in reason(folder)


def test_half_precision_is_computed_in_single(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    folder = tiny_clip.build(tmp_path / "half")
    file = folder / "model.safetensors"
    rounded = {key: weight.half() for key, weight in load_file(file).items()}
    save_file({k: v.float() for k, v in rounded.items()}, file, metadata={"format": "pt"})
    single = scored(str(folder), SENTENCES, list(IMAGES))
    clipscore._loaded.cache_clear()
    save_file(rounded, file, metadata={"format": "pt"})
    config = folder / "config.json"
    config.write_text(config.read_text().replace('"float32"', '"float16"'))
    assert "float16" in config.read_text()
    # In half precision it would differ in the fourth digit.
    again = scored(str(folder), SENTENCES, list(IMAGES))
    assert again == pytest.approx(single, abs=1e-6)


@pytest.mark.parametrize(
    "broken", ["no weights", "cut weights", "no tokenizer", "no processor", "no config"]
)
def test_an_incomplete_folder(tmp_path: Path, network: list[Any], broken: str) -> None:
    folder = tiny_clip.build(tmp_path / "broken")
    weights = folder / "model.safetensors"
    if broken == "cut weights":
        weights.write_bytes(weights.read_bytes()[:1000])
    else:
        files = {
            "no weights": "model.safetensors",
            "no config": "config.json",
            "no tokenizer": "tokenizer.json",
            "no processor": "preprocessor_config.json",
        }
        (folder / files[broken]).unlink()
    assert reason(folder)
    assert (problem(str(folder)) is not None) == (broken == "no config")
    assert "\n" not in (problem(str(folder)) or "")
    assert network == []


def test_a_broken_model_is_tried_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tiny_clip.build(tmp_path / "broken")
    change_weights(folder, "text_projection.weight", None)
    calls = []
    original = clip_encoder.load
    monkeypatch.setattr(clip_encoder, "load", lambda *a: (calls.append(a), original(*a))[1])
    assert reason(folder) == reason(folder)
    assert len(calls) == 1


def test_code_of_a_folder_is_not_run(tmp_path: Path, network: list[Any]) -> None:
    folder = tiny_clip.build(tmp_path / "code")
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": "own", "auto_map": {"AutoConfig": "own.Own", "AutoModel": "own.Own"}}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nclass Own: pass\n")
    assert problem(str(folder))
    clip_score(SENTENCES, given(["sea"]), str(folder))
    assert not (tmp_path / "ran").exists()


def test_a_picture_that_cannot_be_opened(clip: str) -> None:
    def gone() -> Any:
        raise MediaError("frames.zip: gone")

    with pytest.raises(MediaError, match=r"frames\.zip: gone"):
        clip_score(SENTENCES, [Picture("gone", gone)], clip)

    def broken() -> Any:
        raise OSError("broken\nin two lines")

    score = clip_score(SENTENCES, [Picture("broken", broken)], clip)
    assert (score.value, score.reason) == (None, f"{clip}: OSError: broken in two lines")
    assert scored(clip, SENTENCES, ["sea"]) > 0  # neither is taken for known


@pytest.mark.parametrize("batch_size", [0, -1])
def test_a_batch_of_nothing(batch_size: int) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        clip_score(SENTENCES, given(["sea"]), "/no/such/folder", batch_size=batch_size)


def test_importing_brings_neither_torch_nor_transformers() -> None:
    modules = "lmms_eval_tasks.utils.clipscore, lmms_eval_tasks.haven.text_scores"
    heavy = "{'torch', 'transformers', 'bert_score', 'PIL'}"
    code = f"import sys, {modules}; print({heavy} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "set()"
