"""A model class needs no method for multi-round tasks to run the others."""

import importlib
import inspect

import pytest

from lmms_eval.api.model import lmms

CLASSES = {
    "auroracap": "AuroraCap",
    "internvideo2_5": "InternVideo2_5",
    "llava_onevision_moviechat": "Llava_OneVision_MovieChat",
    "moviechat": "MovieChat",
    "oryx": "Oryx",
    "videochat_flash": "VideoChat_Flash",
}


class _Single(lmms):
    def loglikelihood(self, requests):
        return []

    def generate_until(self, requests):
        return ["yes"] * len(requests)


def test_a_class_without_rounds_can_be_built_and_says_what_it_lacks():
    lm = _Single()
    assert lm.generate_until([None]) == ["yes"]
    with pytest.raises(NotImplementedError, match="_Single does not support multi-round"):
        lm.generate_until_multi_round([None])


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_registered_classes_can_be_built(name):
    try:
        module = importlib.import_module(f"lmms_eval.models.simple.{name}")
    except (ImportError, NameError) as error:  # a package that is not installed
        pytest.skip(f"cannot be imported here: {error}")
    assert not inspect.isabstract(getattr(module, CLASSES[name]))
