"""LLaVA-NeXT-Video answers about a video, as a simple and as a chat model. Its weights are random and tiny."""

from types import SimpleNamespace

import av
import numpy as np
import pytest

pytest.importorskip("decord")

from tokenizers import Tokenizer, models, pre_tokenizers  # noqa: E402
from transformers import (  # noqa: E402
    CLIPVisionConfig,
    LlamaConfig,
    LlavaNextImageProcessor,
    LlavaNextVideoConfig,
    LlavaNextVideoForConditionalGeneration,
    LlavaNextVideoProcessor,
    LlavaNextVideoVideoProcessor,
    PreTrainedTokenizerFast,
)

from lmms_eval.models.chat import llava_hf as chat  # noqa: E402
from lmms_eval.models.simple import llava_hf as simple  # noqa: E402

TEMPLATE = (
    "{% for message in messages %}{% if message.content is string %}{{ message.content }}{% else %}{% for part in message.content %}{{ part.text if part.type == 'text' else '<' + part.type + '> ' }}{% endfor %}{% endif %}{% endfor %}"
)
WORDS = {word: number for number, word in enumerate(["<unk>", "</s>", "<image>", "<video>", "What", "is", "seen", "?"])}


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("checkpoint"))
    words = Tokenizer(models.WordLevel(WORDS, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    special = {"unk_token": "<unk>", "eos_token": "</s>", "pad_token": "</s>", "additional_special_tokens": ["<image>", "<video>"]}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, **special)
    size = {"height": 32, "width": 32}
    kinds = {"image_processor": LlavaNextImageProcessor(size=size, crop_size=size), "video_processor": LlavaNextVideoVideoProcessor(size=size, crop_size=size)}
    LlavaNextVideoProcessor(tokenizer=tokenizer, chat_template=TEMPLATE, patch_size=16, vision_feature_select_strategy="default", num_additional_image_tokens=1, **kinds).save_pretrained(folder)
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(folder)
    small = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    text = LlamaConfig(vocab_size=len(WORDS), eos_token_id=1, pad_token_id=1, **small)
    vision = CLIPVisionConfig(image_size=32, patch_size=16, **small)
    config = LlavaNextVideoConfig(vision_config=vision, text_config=text, image_token_index=2, video_token_index=3, image_grid_pinpoints=[[32, 32]], vision_feature_layer=-1)
    LlavaNextVideoForConditionalGeneration(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("clip") / "clip.mp4")
    with av.open(path, "w") as container:
        stream = container.add_stream("mpeg4", rate=10)
        stream.width = stream.height = 64
        for level in range(12):
            container.mux(stream.encode(av.VideoFrame.from_ndarray(np.full((64, 64, 3), 20 * level, dtype=np.uint8), format="rgb24")))
        container.mux(stream.encode())
    return path


@pytest.mark.parametrize("module", [simple, chat], ids=["simple", "chat"])
def test_a_video_reaches_the_model(module, checkpoint, clip, monkeypatch):
    lm = module.LlavaHf(pretrained=checkpoint, device="cpu", device_map="cpu", dtype="float32", max_frames_num=4)
    lm.task_dict = {"a": {"test": [{}]}}
    frames, generate = [], lm.model.generate

    def generated(**inputs):
        output = generate(**inputs)  # the classes turn its errors into an empty answer
        frames.append(tuple(inputs["pixel_values_videos"].shape[:2]))
        return output

    monkeypatch.setattr(lm.model, "generate", generated)
    kwargs = {"until": [], "max_new_tokens": 4}
    content = [{"type": "video", "url": clip}, {"type": "text", "text": "What is seen ?"}]
    medium = [kwargs, lambda doc: [clip]] if module is simple else [lambda doc: [{"role": "user", "content": content}], kwargs]
    answers = lm.generate_until([SimpleNamespace(args=("What is seen ?", *medium, 0, "a", "test"))])
    assert len(answers) == 1
    assert frames == [(1, 4)]
