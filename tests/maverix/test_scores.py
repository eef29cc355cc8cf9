"""MAVERIX's choice accuracies, Table 3's joins, and the rules that the host has for metrics."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from lmms_eval_tasks.maverix import scores, table3
from lmms_eval_tasks.maverix.labels import DIMENSIONS, LETTERS, SPLITS
from tests.maverix.items import LABELS, answer, choice, choices, own, rotations, withheld


class TestChoice:
    """Accuracy in three forms, by label, and what withheld items are worth."""

    @pytest.mark.parametrize(
        ("marks", "plain", "valid", "failed"),
        [
            ("1100", 0.5, 0.5, 0),
            ("11u0", 0.5, 2 / 3, 1),  # unreadable: wrong, and left out of valid
            ("11e0", 0.5, 0.5, 1),  # the candidate's own: abstaining does not pay
            ("11f0", 0.5, 0.5, 1),
            ("11t0", 0.5, 0.5, 1),
            ("11m0", 0.5, 2 / 3, 1),  # the host's request failed
            ("11x0", 0.5, 2 / 3, 1),  # our own error
            ("u", 0.0, None, 1),
            ("", None, None, 0),
        ],
    )
    def test_three_forms(
        self, marks: str, plain: float | None, valid: float | None, failed: int
    ) -> None:
        items = choices(marks)
        assert scores.CHOICE["acc"](items) == plain
        assert scores.CHOICE["acc_valid"](items) == valid
        assert scores.CHOICE["acc_failed"](items) == failed

    def test_withheld_items_do_not_count(self) -> None:
        items = [*choices("110"), withheld("w0"), withheld("w1", "u")]
        assert scores.CHOICE["acc"](items) == scores.CHOICE["acc_valid"](items) == 2 / 3
        assert scores.CHOICE["acc_failed"](items) == 0
        assert scores.CHOICE["n_withheld"](items) == 2
        assert scores.CHOICE["words_mean"](items) == 1

    def test_all_withheld_is_no_number(self) -> None:
        items = [withheld("w0"), withheld("w1", "u")]
        for name, metric in scores.CHOICE.items():
            if name.startswith("acc"):
                assert metric(items) is None, name
        assert scores.CHOICE["n_withheld"](items) == 2

    def test_each_label_takes_its_own_items(self) -> None:
        items = [*choices("110"), choice("hard", "0", difficulty="hard", duration="short")]
        assert own("acc_difficulty_easy", items) == 2 / 3
        assert own("acc_difficulty_hard", items) == 0
        assert own("acc_difficulty_medium", items) is None
        assert own("acc_duration_short", items) == 0
        names = {f"acc_{split}_{slug}" for split, slugs in SPLITS.items() for slug in slugs}
        assert len(names) == 3 + 7 + 5 + 13 + 8 + 3
        taken = {name for name in names if scores.of_item(name, items[0])}
        assert taken == {f"acc_{s}_{slug}" for s, slug in LABELS.items() if slug}
        assert names <= scores.CHOICE.keys()

    def test_lengths_of_replies(self) -> None:
        """2, 4, 4 and 6 words: mean 4, sd sqrt(8/3); a failed request was no reply, empty was."""
        items = [choice(f"q{n}", words=n_words) for n, n_words in enumerate((2, 4, 4, 6))]
        items += [choice("m", "m", words=9), choice("x", "x", words=0)]
        assert scores.CHOICE["words_mean"](items) == 4
        assert scores.CHOICE["words_max"](items) == 6
        assert scores.CHOICE["words_sd"](items) == pytest.approx(math.sqrt(8 / 3))
        assert scores.CHOICE["words_mean"]([*items, choice("e", "e", words=0)]) == 16 / 5
        assert scores.CHOICE["words_sd"](items[:1]) is None
        assert scores.CHOICE["words_max"](items[4:]) is None

    def test_sound_that_does_not_arrive_is_counted(self) -> None:
        items = [
            choice(f"q{n}", sound=sound)
            for n, sound in enumerate(("delivered", "unknown", "raises", "not delivered"))
        ]
        assert scores.CHOICE["n_sound_missing"](items) == 2
        assert scores.CHOICE["n_sound_unknown"](items) == 1
        assert scores.of_item("n_sound_missing", items[0])
        assert not scores.of_item("n_sound_missing", choice("q", mode="v"))

    def test_sound_of_modes_that_the_item_is_not_of(self) -> None:
        """Where A was not run, the items of S say whether S stands in for it."""
        hears = {"a": "raises", "av": "delivered"}
        items = [choice(f"q{n}", mode="s", hears=hears) for n in range(3)]
        assert own("n_sound_missing_a", items) == 3
        assert own("n_sound_missing_av", items) == 0
        assert not scores.of_item("n_sound_missing_a", choice("q", mode="a"))
        assert not scores.of_item("n_sound_missing_a", choice("q", mode="s", hears=None))


class TestTable3:
    """Best-Uni = max(A, S, V), Best-Multi = max(V+S, V+A), the row of Qwen 2.5 Omni in tenths."""

    MARKS: Mapping[str, str] = {
        "a": "1111100000",
        "s": "1111000000",
        "v": "1110000000",
        "vs": "1111110000",
        "av": "1111111000",
    }

    def carriers(
        self,
        name: str,
        sound: Mapping[str, str] | None = None,
        old: bool = False,
        without: Sequence[str] = (),
    ) -> list[Any]:
        """What the host's group gets; `old` items tell of their own mode's sound alone."""
        hears = {mode: (sound or {}).get(mode, "delivered") for mode in table3.WITH_SOUND}
        made = []
        for mode, marks in self.MARKS.items():
            if mode not in without:
                told = {"sound": hears.get(mode, ""), "hears": None if old else hears}
                made.append(scores.CHOICE[name](choices(marks, mode=mode, **told)))
        return made

    def joined(self, sound: Mapping[str, str] | None = None, **how: Any) -> list[Any]:
        return [scores.join(self.carriers(name, sound, **how)) for name in scores.JOINED]

    def test_five_modes(self) -> None:
        assert self.joined() == [0.5, 0.7, 0.7 - 0.5]
        assert scores.join(self.carriers("best_uni")[::-1], [10] * 5, False) == 0.5

    def test_a_mode_that_is_missing_leaves_no_number(self) -> None:
        assert self.joined(without=["a"]) == [None, 0.7, None]
        assert self.joined(without=["vs"]) == [0.5, None, None]
        assert self.joined(without=["a", "av"]) == [None, None, None]
        assert scores.join([]) is None

    def test_without_sound_a_and_av_are_left_out(self) -> None:
        """As the paper's rows of models without sound, whose A and V+A were never run (dashes)."""
        for state in ("not delivered", "raises"):
            silent = {"a": state, "av": state}
            assert self.joined(silent) == [0.4, 0.6, 0.6 - 0.4]
            assert self.joined(silent, without=["a"]) == [0.4, 0.6, 0.6 - 0.4]
            # The items of S, V and V+S tell it too: `check` says to leave A and V+A out.
            assert self.joined(silent, without=["a", "av"]) == [0.4, 0.6, 0.6 - 0.4]
            assert self.joined(silent, without=["a", "av", "s"]) == [None, 0.6, None]

    def test_samples_saved_before_each_item_told_of_both(self) -> None:
        silent = {"a": "not delivered", "av": "not delivered"}
        assert self.joined(old=True) == self.joined()
        assert self.joined(silent, old=True) == [0.4, 0.6, 0.6 - 0.4]
        assert self.joined(silent, old=True, without=["a"]) == [0.4, 0.6, 0.6 - 0.4]
        # Nobody says that it has no sound.
        assert self.joined(silent, old=True, without=["a", "av"]) == [None, None, None]

    def test_a_mode_s_own_items_go_before_the_others(self) -> None:
        """Runs of one model, simple and chat, scored together."""
        silent = {"a": "not delivered", "av": "not delivered"}
        made = self.carriers("best_uni", silent, without=["a", "av"])
        assert (
            scores.join([*made, *self.carriers("best_uni", without=["s", "v", "vs", "av"])]) == 0.5
        )

    def test_the_state_is_the_modes_own(self) -> None:
        """Simple `openai` sends a wav and drops an mp4's track."""
        assert self.joined({"av": "not delivered"}) == [0.5, 0.6, 0.6 - 0.5]
        assert self.joined({"a": "raises"}) == [0.4, 0.7, 0.7 - 0.4]
        assert self.joined({"a": "raises"}, without=["a"]) == [0.4, 0.7, 0.7 - 0.4]
        assert self.joined({"a": "raises"}, without=["a", "av"]) == [0.4, None, None]

    def test_unknown_counts(self) -> None:
        unknown = {"a": "unknown", "av": "unknown"}
        assert self.joined(unknown)[0] == 0.5
        assert self.joined(unknown, without=["a", "av"]) == [None, None, None]

    def test_one_silent_item_spoils_its_mode(self) -> None:
        items = [*choices("11"), choice("last", sound="not delivered")]
        assert scores.CHOICE["best_multi"](items).scores["mode"]["sound_av"] == "not delivered"

    def test_all_withheld(self) -> None:
        found = scores.CHOICE["best_uni"]([withheld("w", mode="v", sound="")])
        assert math.isnan(found)
        assert found.scores["mode"]["acc"] is None

    def test_a_mode_there_twice_is_no_answer(self) -> None:
        found = self.carriers("best_uni")
        assert scores.join([*found, found[0]]) is None

    def test_items_of_two_modes_are_refused(self) -> None:
        with pytest.raises(ValueError, match="several modes \\(s, v\\)"):
            scores.CHOICE["best_uni"]([choice("q", mode="v"), choice("r", mode="s")])

    def test_a_task_alone_shows_no_number_and_survives_copies(self) -> None:
        found = self.carriers("delta_multi")[0]
        assert math.isnan(found)
        again = pickle.loads(pickle.dumps(copy.deepcopy(found)))
        assert (again.side, again.scores, again.reduce) == ("a", found.scores, "delta_multi")


# --- the host's rules -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", list(scores.METRICS))
def test_a_groups_metric_is_contained_in_no_other(kind: str) -> None:
    """The host matches group metrics by substring, and the last writer wins."""
    for wanted in table3.JOINED:
        found = [name for name in scores.METRICS[kind] if wanted in name]
        assert found == ([wanted] if kind == "choice" else [])


def test_metric_lists() -> None:
    """Every metric once; counts of failures, bias and differences are better low."""
    lists = {
        "choice": scores.CHOICE_METRICS,
        "circular": scores.CIRCULAR_METRICS,
        "open": scores.OPEN_METRICS,
    }
    better = {}
    for kind, entries in lists.items():
        assert [entry["metric"] for entry in entries] == list(scores.METRICS[kind])
        better |= {entry["metric"]: entry["higher_is_better"] for entry in entries}
    low = {name for name, higher in better.items() if higher is False}
    assert low == {
        *("acc_failed", "circ_acc_failed", "robust_failed", "position_bias", "robust_diff"),
        *(f"{dimension}_failed" for dimension in DIMENSIONS),
    }
    assert better["acc"] is better["correctness_valid"] is better["robust_both"] is True
    assert better["words_mean"] is better["n_withheld"] is better["chose_a"] is None


def test_nothing_raises(capsys: pytest.CaptureFixture[str]) -> None:
    for entries in (scores.CHOICE_METRICS, scores.CIRCULAR_METRICS, scores.OPEN_METRICS):
        for entry in entries:
            entry["aggregation"]([])
            capsys.readouterr()
            assert entry["aggregation"]([{"id": "x"}]) is None
            assert f"{entry['metric']} failed and is reported as N/A" in capsys.readouterr().err


def test_kinds_by_their_items() -> None:
    assert scores.metrics_of(choice("q")) is scores.CHOICE
    assert scores.metrics_of(rotations("q", "A")[0]) is scores.CIRCULAR
    assert scores.metrics_of(answer("q", "original", "1")) is scores.OPEN
    assert scores.FIRST == {"choice": "acc", "circular": "acc", "open": "correctness_valid"}
    means = {
        name for metrics in scores.METRICS.values() for name in metrics if scores.is_mean(name)
    }
    splits = {f"acc_{split}_{slug}" for split, slugs in SPLITS.items() for slug in slugs}
    assert means == {"acc", *splits, *(f"acc_at_{letter.lower()}" for letter in LETTERS)}
