"""Which model is running, and what that says about sound."""

from __future__ import annotations

import pytest

from lmms_eval_tasks import running
from lmms_eval_tasks.running import sound_table as sound


def named(status: str, way: str, interface: str = "simple") -> str:
    """A model of the table whose class does this with sound, whatever its arguments."""
    for name, model in sound.table().models.items():
        if getattr(model, interface) is None:
            continue
        found = sound.delivery(name, interface, way)  # type: ignore[arg-type]
        if found.status == status:
            return name
    raise AssertionError(f"the table has no {interface} model with {way} {status}")


def test_without_our_hook_nothing_is_known() -> None:
    assert running.current() is None
    for picture in (True, False):
        assert running.sound(picture) == "unknown"
        assert "not known" in (running.sound_warning(picture) or "")
    assert not running.wants_samples()


def test_the_model_is_known_inside_and_forgotten_after_errors() -> None:
    outer, inner = running.Model("a", "chat"), running.Model("b", "simple", {"x": 1})
    with running.model(outer):
        with running.model(inner):
            assert running.current() is inner
        with pytest.raises(ZeroDivisionError), running.model(inner):
            raise ZeroDivisionError
        assert running.current() is outer
        with running.model(None):
            assert running.current() is None
    assert running.current() is None


@pytest.mark.parametrize("picture", [True, False])
@pytest.mark.parametrize("status", ["delivered", "not delivered", "raises"])
def test_the_tables_word(status: str, picture: bool) -> None:
    name = named(status, "video_and_audio" if picture else "audio")
    with running.model(running.Model(name, "simple")):
        assert running.sound(picture) == status
        assert running.hears()["av" if picture else "a"] == status
        warning = running.sound_warning(picture)
    assert warning is None if status == "delivered" else name in str(warning)


def test_an_unknown_model_has_a_warning() -> None:
    with running.model(running.Model("someone_elses", "chat")):
        assert running.sound(with_picture=True) == "unknown"
        assert "someone_elses" in (running.sound_warning(with_picture=True) or "")


def test_samples_for_classes_that_take_no_path() -> None:
    wanting = next(name for name in sound.table().models if sound.wants_samples(name))
    other = next(name for name in sound.table().models if not sound.wants_samples(name))
    with running.model(running.Model(wanting, "simple")):
        assert running.wants_samples()
    with running.model(running.Model(other, "simple")):
        assert not running.wants_samples()


def test_arguments_count() -> None:
    """batch_gpt4 takes an mp4 for a picture, and with modality=video for a video."""
    with running.model(running.Model("batch_gpt4", "simple")):
        assert running.sound(with_picture=True) == "raises"
    with running.model(running.Model("batch_gpt4", "simple", {"modality": "video"})):
        assert running.sound(with_picture=True) == "not delivered"
