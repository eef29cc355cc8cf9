"""What is stored of the judge study's text is the text's: figures, lists, what nothing decides."""

import re
from pathlib import Path

import pytest

from lmms_eval_tasks.cvrr_es.labels import RATINGS
from lmms_eval_tasks.leaderboards import leaderboard
from lmms_eval_tasks.leaderboards.cvrr_es_claims import UNDECIDED
from tests.leaderboards.cvrr_es_boards import NAME

ROOT = Path(__file__).resolve().parents[2]
PAPER = ROOT.parent / "shared" / "papers" / "vlm_judge.txt"
needs_paper = pytest.mark.skipif(not PAPER.is_file(), reason=f"the paper's text is not at {PAPER}")


def flat():
    """The text with single spaces."""
    return re.sub(r"\s+", " ", PAPER.read_text(encoding="utf-8"))


STATED = {
    "dimensions": r"assesses VLLM across (\d+) diverse",
    "ratings": r"number of possible ratings, i\.e\., (\d),",
    "questions": r"comprises ([\d,]+) high-quality",
    "lowest_rating": r"scale from (\d) to \d, where",
    "highest_rating": r"scale from \d to (\d), where",
    "close_to": r"scores close to ([\d.]+\d) across",
    "typically_above": r"typically above ([\d.]+\d)\.",
    "debate_low": r"scores range from ([\d.]+) to [\d.]+ across",
    "debate_high": r"scores range from [\d.]+ to ([\d.]+) across",
    "gpt4o_low": r"GPT-4o assigns scores ranging from ([\d.]+) to",
    "gpt4o_high": r"GPT-4o assigns scores ranging from [\d.]+ to ([\d.]+),",
    "debate_again_low": r"Agent-Debate assigns scores from ([\d.]+) to",
    "debate_again_high": r"Agent-Debate assigns scores from [\d.]+ to ([\d.]+\d)\.",
    "slight_to": r"between 0 and ([\d.]+) are considered",
    "fair_from": r"([\d.]+)–[\d.]+ as fair",
    "fair_to": r"[\d.]+–([\d.]+) as fair",
    "moderate_from": r"([\d.]+)–[\d.]+ as moderate",
    "moderate_to": r"[\d.]+–([\d.]+) as moderate",
    "substantial_from": r"([\d.]+)–[\d.]+ as substantial",
    "substantial_to": r"[\d.]+–([\d.]+) as substantial",
    "almost_perfect_from": r"([\d.]+)–[\d.]+ as indicating almost perfect",
    "almost_perfect_to": r"[\d.]+–([\d.]+) as indicating almost perfect",
    "video_llava_low": r"Video-LLaVA shows agreement scores ranging from (-[\d.]+) to",
    "video_llava_high": r"Video-LLaVA shows agreement scores ranging from -[\d.]+ to ([\d.]+) ?,",
    "llama_vid_low": r"LLaMA-VID ranges from (-[\d.]+) to",
    "llama_vid_high": r"LLaMA-VID ranges from -[\d.]+ to ([\d.]+\d)",
    "gpt4o_exceeds": r"agreement scores exceeding (\d+) in",
    "gpt4o_social": r"such as ([\d.]+) for Social Context",
    "gpt4o_visual": r"and ([\d.]+) for Visual Context",
    "collective_low": r"across dimensions range from ([\d.]+) to",
    "collective_high": r"across dimensions range from [\d.]+ to ([\d.]+),",
    "mixture_low": r"average agreement scores range from ([\d.]+)% to",
    "mixture_high": r"average agreement scores range from [\d.]+% to ([\d.]+)%",
}  # fmt: skip
# Read off the formula below, or compared in test_cvrr_es.py.
ELSEWHERE = {
    "weight_of_equal", "weight_of_farthest", "judges_shown_7", "judges_shown_8",
    "same_replies_7_10", "same_replies_8_9",
}  # fmt: skip


def test_each_stated_figure_is_looked_up():
    assert set(STATED) | ELSEWHERE == set(leaderboard(NAME).stated)


@needs_paper
@pytest.mark.parametrize("key", STATED)
def test_stated_figures_equal_the_text(key):
    found = set(re.findall(STATED[key], flat()))
    assert len(found) == 1, found
    assert str(leaderboard(NAME).stated[key].value) == found.pop().replace(",", "")


@needs_paper
def test_the_weights_are_those_of_the_formula():
    text, stated = flat(), leaderboard(NAME).stated
    assert r"w_{\alpha\beta} = 1 - \left(\frac{\alpha - \beta}{k - 1} \right)^2" in text
    formula = r"\kappa = 1 - \frac{\sum_{\alpha, \beta} w_{\alpha\beta} O_{\alpha\beta}}"
    assert formula in text
    k = len(RATINGS)
    assert stated["ratings"].value == k
    assert stated["weight_of_equal"].value == 1 - (0 / (k - 1)) ** 2
    assert stated["weight_of_farthest"].value == 1 - ((k - 1) / (k - 1)) ** 2


# Where a list stands: the words before it and after it.
PLACES = {
    "generous_judges": ("For instance, when judged by", "typically above"),
    "harder_dimensions": ("For example, the dimensions of", "often have lower scores"),
    "similar_judges": ("Among the various VLMs,", "have the most similar"),
    "substantial_judges": ("In contrast, InternVL2", "exhibit significantly higher"),
    "disagreeing_judges": ("significant disagreement for other VLMs, such as", ", raises concerns"),
    "initial_judges": ("The initial judges include", ". The final judge"),
    "highest_dimensions": ("highest scores observed in dimensions like", "as shown in Table 6"),
    "selected_for_fine_action": ("the selected judges include", ", with GPT-4o serving"),
    "overestimating_judges": ("indicate that VLMs, including", ", are always overestimating"),
    "weak_judge": ("that the weaker VLMs, such as", ", judging stronger"),
    "strong_candidate": ("judging stronger models, such as", ", result in"),
}
IN_PROMPTS = {"asked_keys", "reply_keys", "notations"}  # compared in test_cvrr_es.py


@needs_paper
@pytest.mark.parametrize("key", PLACES)
def test_listed_names_stand_in_the_text_in_their_order(key):
    text, (before, after) = flat(), PLACES[key]
    assert text.count(before) == 1
    start = text.index(before)
    start += 0 if key == "substantial_judges" else len(before)
    passage = text[start : text.index(after, start)]
    places = [passage.index(name) for name in leaderboard(NAME).named[key].names]
    assert places == sorted(places)


def test_each_list_is_looked_up():
    assert set(PLACES) | IN_PROMPTS == set(leaderboard(NAME).named)


@needs_paper
@pytest.mark.parametrize(
    "part",
    [
        "excluding any that do not meet the standards",
        "Through multiple rounds of interaction and debate",
        "another LLM agent consolidates the insights",
        "exceeds a predefined threshold",
        "we may select the top k models",
        "a significant concentration of ratings at 4",
        "Left: *Weighted Cohen's Kappa* of GPT-4o judge across various candidate models",
        "rating distribution remained skewed towards higher ratings",
        "Good understanding ability is not sufficient to become a reliable judge",
    ],
)
def test_what_no_figure_decides_stands_in_the_text(part):
    assert part in flat()


def test_what_nothing_decides_says_why():
    assert len(UNDECIDED) == 7
    assert all(len(each) == 3 and all(each) for each in UNDECIDED)
