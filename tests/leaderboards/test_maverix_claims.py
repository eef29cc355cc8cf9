"""Every statement of MAVERIX's text that figures decide, and a change that turns it round."""

import json
from pathlib import Path

import pytest

from lmms_eval_tasks.leaderboards import leaderboard
from lmms_eval_tasks.leaderboards.maverix_claims import claims
from lmms_eval_tasks.leaderboards.maverix_data_claims import STATEMENTS
from lmms_eval_tasks.leaderboards.maverix_paper import Paper
from tests.leaderboards.maverix_boards import changed, figures, names, rows, states

CASES_FILE = Path(__file__).resolve().parents[1] / "cases" / "maverix_contradictions.json"
PINNED = json.loads(CASES_FILE.read_text(encoding="utf-8"))["claims"]
G20, G25, OMNI = "Gemini 2.0-FL", "Gemini 2.5-FL", "Qwen 2.5 Omni"
MANY = ("Qwen-2-VL", "Qwen-2.5-VL", "InternVL2", "GPT-4o", "Grok 4", "GPT-4o-mini", "Ola-7B", OMNI)
# Each statement, and a change that turns it round.
FLIPS = {
    "abstract": lambda: figures(
        (3, OMNI, {"best_multi": "64.4"}), (3, G25, {"best_multi": "63.6"})
    ),
    "human_best": lambda: changed(3, "Human", av="90.0"),
    "gemini_av": lambda: changed(3, G25, av="56.7"),
    "open_models": lambda: states(open_models="1.6"),
    "open_human": lambda: states(open_human="2.65"),
    "transcripts": lambda: changed(3, G25, av="64.2"),
    "best_uni_range": lambda: states(best_uni_low="30"),
    "most_gain": lambda: figures(*((3, m, {"delta_multi": "-1.0"}) for m in MANY)),
    "no_regress": lambda: changed(3, "EgoGPT-7B", av="45.1"),
    "gemini_gain": lambda: changed(3, G20, av="43.8"),
    "usual_gain": lambda: changed(3, "NOVA-Lite", delta_multi="11.1"),
    "subtitles_beat_sound": lambda: changed(3, "VITA 1.5", av="22.3"),
    "people_agentic": lambda: changed(7, "Social", group="av", average="94.72"),
    "egocentric": lambda: changed(5, OMNI, egocentric="41.6"),
    "people_stable": lambda: changed(5, "Human", speech="95.0"),
    "broad_stable": lambda: changed(5, G20, music="50.0", artificial="50.0"),
    "music": lambda: changed(5, G25, music="51.6"),
    "ego_hears": lambda: changed(3, "EgoGPT-7B", a="44.9"),
    "small_vary": lambda: changed(5, "Ola", music="48.6"),
    "easy_most": lambda: changed(4, G20, easy_av="48.6"),
    "quoted_gains": lambda: figures(
        (4, G20, {"easy_delta": "12.4", "hard_delta": "3.3"}), (4, G25, {"easy_delta": "11.5"})
    ),
    "omni_hard": lambda: changed(4, "Qwen-2-Omni", hard_av="39.8"),
    "people_jump": lambda: changed(3, "Human", v="81.5"),
    "options": lambda: states(options_questions="852"),
    "questions_add_up": lambda: states(open_prompts="1703"),
    "questions_per_video": lambda: states(videos="600"),
    "chance": lambda: states(random_accuracy="25"),
    "dimensions": lambda: states(divisions="6"),
    "length": lambda: changed(2, "Media Length", group="seconds", in_overall="352.64"),
    "durations": lambda: states(shortest_s="5", longest_min="111"),
    "long_class": lambda: states(long_class_min="111"),
    "hours": lambda: states(hours="68.6"),
    "shares": lambda: states(share_long="7.8"),
    "factors": lambda: names("rubric_factors", list("abcd")),
    "answers_judged": lambda: changed(8, "EgoGPT-7B", temporal_v="1.3961"),
    "models": lambda: states(models="18"),
    "models_named": lambda: names("named_models", [str(n) for n in range(17)]),
    "families": lambda: states(families="6"),
    "people_by_category": lambda: rows(
        7, lambda old: [*old, old[0].model_copy(update={"name": "Egocentric Agent"})]
    ),
    "judged_by_category": lambda: rows(
        8, lambda old: [*old, old[0].model_copy(update={"group": "agentic"})]
    ),
    "all_in_ten": lambda: rows(3, lambda old: old[:7]),
    "survey_inputs": lambda: names("survey_conditions", list("abcde")),
    "subset": lambda: states(survey_questions="284"),
    "clips": lambda: states(clips="1401"),
}


def test_all_claims_are_the_pinned_ones():
    checked = claims(leaderboard("maverix"))
    assert [[claim.key, claim.holds] for claim in checked] == PINNED
    assert all(claim.follow for claim in checked if not claim.holds)


@pytest.mark.parametrize(("key", "holds"), PINNED)
def test_every_claim_follows_the_figures(key, holds):
    board = FLIPS[key]()
    if key == "all_in_ten":  # the other statements need all of Table 3
        (one,) = [s for s in STATEMENTS if s.key == key]
        assert one.claim(Paper(board)).holds is not holds
        return
    assert {claim.key: claim.holds for claim in claims(board)}[key] is not holds
