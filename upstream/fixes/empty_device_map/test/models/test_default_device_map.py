"""With default arguments a class loads its weights on its device: `""` is no device."""

from types import SimpleNamespace

import pytest

# By module: the class, and the module's name for the object that loads the weights.
CLASSES = {
    "aero": ("Aero", "AutoModelForCausalLM"),
    "aria": ("Aria", "AriaForConditionalGeneration"),
    "idefics2": ("Idefics2", "Idefics2ForConditionalGeneration"),
    "llama_vision": ("LlamaVision", "MllamaForConditionalGeneration"),
    "llava_hf": ("LlavaHf", "LlavaForConditionalGeneration"),
    "phi4_multimodal": ("Phi4", "AutoModelForCausalLM"),
}


class _Loaded(Exception):
    pass


@pytest.mark.parametrize("given, wanted", [({}, "cpu"), ({"device_map": "auto"}, "auto")], ids=["default", "auto"])
@pytest.mark.parametrize("name", sorted(CLASSES))
def test_weights_are_loaded_on_the_device(monkeypatch, name, given, wanted):
    module = pytest.importorskip(f"lmms_eval.models.simple.{name}", exc_type=ImportError)

    def from_pretrained(*args, device_map, **kwargs):
        raise _Loaded(device_map)

    class_name, loads = CLASSES[name]
    loader = SimpleNamespace(from_pretrained=from_pretrained)
    monkeypatch.setattr(module, loads, loader)
    if name == "llava_hf":
        monkeypatch.setitem(module.model_map, "llava", loader)
        monkeypatch.setattr(module.AutoConfig, "from_pretrained", lambda *args, **kwargs: SimpleNamespace(model_type="llava"))
    with pytest.raises(_Loaded) as loaded:
        getattr(module, class_name)(pretrained="somewhere", device="cpu", **given)
    assert loaded.value.args == (wanted,)
