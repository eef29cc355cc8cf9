"""MAIA's published tables: transcription, contradictions, and the README's generated blocks."""

import json
import re
from decimal import Decimal
from pathlib import Path

import pytest

from lmms_eval_tasks.leaderboards import Table, load, render
from lmms_eval_tasks.leaderboards import maia_checks as checks
from lmms_eval_tasks.leaderboards.maia_claims import claims
from lmms_eval_tasks.maia.categories import CATEGORIES, SLUGS

ROOT = Path(__file__).resolve().parents[2]
PAPER = ROOT.parent / "shared" / "papers" / "maia.txt"
README = ROOT / "lmms_eval_tasks" / "maia" / "README.md"
PINNED = json.loads((ROOT / "tests" / "cases" / "maia_contradictions.json").read_text())
SETTINGS = {"Black video": "black", "1-Frame": "1frame", "32-Frames": "32frames"}
BEST, INTERN3, QWEN = "Qwen-2.5-VL 72B", "InternVL3 78B", "Qwen-2.5-VL 7B"
NEXT = "Llava-Next-Video 7B"


def table(number: int) -> Table:
    return load("maia")[number - 1]


def change(tables, number, setting, model, **values) -> list[Table]:
    """The tables with some figures of one row replaced."""
    changed = []
    hits = 0
    for old in tables:
        rows = []
        for row in old.rows:
            if (old.number, row.group, row.name) == (number, setting, model):
                assert set(values) <= set(row.figures)
                figures = row.figures | {name: Decimal(str(v)) for name, v in values.items()}
                rows.append(row.model_copy(update={"figures": figures}))
                hits += 1
            else:
                rows.append(row)
        changed.append(old.model_copy(update={"rows": rows}))
    assert hits == 1
    return changed


# --- the data --------------------------------------------------------------------------------


@pytest.mark.skipif(not PAPER.is_file(), reason=f"the paper's text is not at {PAPER}")
def test_every_figure_equals_the_paper():
    printed, table_number, setting = [], 0, None
    for line in PAPER.read_text(encoding="utf-8").splitlines():
        if not line.startswith("| "):
            continue
        if line.startswith(("| Models |", "| Model |")):
            table_number, setting = table_number + 1, None
            continue
        fields = [part.strip() for part in line.split("|") if part.strip()]
        labels = [part for part in fields if not re.fullmatch(r"\d\.\d\d", part)]
        numbers = fields[len(labels) :]
        if not numbers:
            continue  # the second line of a header
        if len(labels) == 2:
            setting = SETTINGS[labels[0]]
        where = "unstated" if table_number == 4 else setting or "unimodal"
        printed.append((table_number, where, labels[-1], numbers))
    stored = []
    for each in load("maia"):
        for row in each.rows:
            figures = [str(figure) for figure in row.figures.values()]
            stored.append((each.number, row.group, row.name, figures))
    assert len(printed) == 65
    assert stored == printed


@pytest.mark.skipif(not PAPER.is_file(), reason=f"the paper's text is not at {PAPER}")
def test_hub_names_are_those_of_appendix_b1():
    text = PAPER.read_text(encoding="utf-8")
    appendix = text[text.index("B.1 Models tested") : text.index("B.2 Tasks Details")]
    named = set(re.findall(r"\b[\w-]+/[\w.-]+\w", appendix))
    stored = {row.identity for each in load("maia") for row in each.rows} - {None}
    assert stored == named
    assert len(stored) == 6


def test_shape_of_the_tables():
    tables = load("maia")
    assert [each.number for each in tables] == [1, 2, 3, 4, 5]
    assert [len(each.rows) for each in tables] == [19, 18, 3, 6, 19]
    metrics = ["pool_acc", "judge_acc", "agg_acc", None, "pair_acc"]
    assert [each.metric for each in tables] == metrics
    for each in tables:
        assert {row.group for row in each.rows} == set(each.tasks)
        if each.metric:
            assert all(tuple(row.cells) == SLUGS for row in each.rows)
            assert [column.title for column in each.columns[1:]] == [c.title for c in CATEGORIES]
        else:
            names = [column.name for column in each.columns]
            assert names == ["rouge_l", "bertscore", "bleu", "meteor", "cider"]
        unnamed = [row.name for row in each.rows if row.identity is None]
        assert unnamed == (["Unimodal"] if each.number in (1, 5) else [])
    assert tables[0].tasks["32frames"] == "maia_vsv"
    assert tables[2].tasks["32frames"] == "maia"
    spelled = {row.name: row.identity for each in (tables[0], tables[3]) for row in each.rows}
    assert spelled["LLava-oneVision"] == spelled["Llava-oneVision 7B"]


def test_unknown_names_are_errors():
    with pytest.raises(KeyError, match="no leaderboard 'x'; there are: maia"):
        load("x")
    with pytest.raises(KeyError, match="Table 3 has no row black, InternVL3 78B"):
        table(3).row("black", INTERN3)
    with pytest.raises(KeyError):
        table(4).rows[0].value("average")


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"figures": {"average": Decimal("1.01")}}, "figures"),
        ({"ours": {"elsewhere": 0.5}}, "no printed column"),
        ({"ours": {"causal": 1.5}}, "causal is 1.5, outside 0..1"),
        ({"group": "2frames"}, "no group '2frames'"),
        ({"note": "x"}, "note"),
    ],
)
def test_malformed_rows_are_refused(wrong, why):
    data = table(1).model_dump()
    assert Table(**data).rows[0].value("causal") == 0.01
    data["rows"][0].update(wrong)
    with pytest.raises(ValueError, match=why):
        Table(**data)


# --- contradictions --------------------------------------------------------------------------


def found(tables=None):
    return checks.findings(tables or load("maia"))


def test_all_findings_are_the_pinned_ones():
    assert [
        {
            "kind": each.kind,
            "tables": list(each.tables),
            "setting": each.setting,
            "model": each.model,
            "column": each.column,
            "figures": each.figures,
        }
        for each in found()
    ] == PINNED["findings"]


def test_all_claims_are_the_pinned_ones():
    assert [[claim.key, claim.holds] for claim in claims(load("maia"))] == PINNED["claims"]


def test_the_contradictions_named_in_issue_2():
    by_kind = {}
    for each in found():
        by_kind.setdefault(each.kind, []).append(each)
    (above,) = by_kind["pool_above_pair"]
    assert (above.model, above.setting, above.column) == (QWEN, "1frame", "uncertainty")
    assert (above.figures["pool_acc"], above.figures["pair_acc"]) == (0.81, 0.70)
    (below,) = by_kind["pool_below_bound"]
    assert (below.model, below.setting, below.column) == (QWEN, "1frame", "implicit_total")
    assert (below.figures["pair_acc"], below.figures["pool_acc"]) == (0.96, 0.39)
    assert below.figures["bound"] == 0.68
    assert {(each.model, each.setting) for each in by_kind["average"]} == {(INTERN3, "32frames")}
    assert [each.tables for each in by_kind["average"]] == [(2,), (5,)]


def test_rotating_three_cells_would_remove_both_pool_findings():
    # What the README offers as a likely slip: (0.70, 0.82, 0.96) printed for (0.96, 0.70, 0.82).
    cells = {"uncertainty": 0.96, "implicit_partial": 0.70, "implicit_total": 0.82}
    tables = change(load("maia"), 5, "1frame", QWEN, **cells)
    assert sorted(table(5).row("1frame", QWEN).value(name) for name in cells) == [0.7, 0.82, 0.96]
    assert not [each for each in found(tables) if each.kind.startswith("pool")]


def test_the_printed_averages_of_intern3_need_other_last_four_cells():
    # README: with the first eight cells as printed, the last four would have to average these.
    for number, needed in ((2, 0.77), (5, 0.54)):
        row = table(number).row("32frames", INTERN3)
        first = sum(list(row.cells.values())[:8])
        assert (12 * row.average - first) / 4 == pytest.approx(needed, abs=0.005)


@pytest.mark.parametrize("models", [{BEST}, {row.name for row in table(2).rows}])
@pytest.mark.parametrize("settings", [{"32frames"}, set(SETTINGS.values())])
def test_no_reading_of_the_hardest_categories_fits_table_1(models, settings):
    # README: one model or all, 32 frames or all settings.
    named = {"counterfactual", "planning", "implicit_partial", "spatial_partial"}
    named.add("temporal_duration")
    rows = [row for row in table(1).rows if row.name in models and row.group in settings]
    assert len(rows) == len(models) * len(settings)
    total = {name: sum(checks.hundredths(row.value(name)) for row in rows) for name in SLUGS}
    # Every figure is off by at most half a hundredth, so two sums by at most one for each row.
    easiest = max(total[name] for name in named)
    assert easiest > min(total[name] for name in SLUGS if name not in named) + len(rows)


def kinds(tables, **where):
    return [
        each.kind
        for each in found(tables)
        if all(getattr(each, name) == value for name, value in where.items())
    ]


@pytest.mark.parametrize(
    ("number", "column", "value", "kind"),
    [
        # Table 1, black video, Qwen 72B: the cells sum to 2.65, a mean of 0.2208.
        (1, "average", 0.23, None),
        (1, "average", 0.24, "average"),
        (1, "average", 0.21, "average"),
        # pair accuracy of Causal is 0.71
        (1, "causal", 0.72, None),
        (1, "causal", 0.73, "pool_above_pair"),
        # pair accuracy of Uncertainty is 0.99: 1 - 8 x 0.015 - 0.005 = 0.875
        (1, "uncertainty", 0.88, None),
        (1, "uncertainty", 0.87, "pool_below_bound"),
        # Out-of-Scope: pools 0.72, answers 0.97
        (3, "out_of_scope", 0.73, None),
        (3, "out_of_scope", 0.74, "aggregate_above_bound"),
        (3, "out_of_scope", 0.68, None),
        (3, "out_of_scope", 0.67, "aggregate_below_bound"),
    ],
)
def test_tolerances_end_where_rounding_ends(number, column, value, kind):
    tables = change(load("maia"), number, "black", BEST, **{column: value})
    got = kinds(tables, setting="black", model=BEST, column=column)
    assert got == ([kind] if kind else [])


@pytest.mark.parametrize(("length", "step", "expected"), [(4, 0.01, 1), (4, 0.02, 0), (3, 0.0, 0)])
def test_repeats_need_four_columns_within_a_hundredth(length, step, expected):
    black = table(2).row("black", BEST)
    names = SLUGS[2 : 2 + length]
    cells = {name: black.value(name) - step for name in names}
    tables = change(load("maia"), 2, "32frames", BEST, **cells)
    repeats = [each for each in found(tables) if each.kind == "repeated" and each.model == BEST]
    assert len(repeats) == expected
    if repeats:
        assert repeats[0].column == f"{names[0]}..{names[-1]}"


# Each claim, and a change of figures that turns it round.
FLIPS = {
    "best_in_pools": [(1, "1frame", INTERN3, {"average": 0.55})],
    "fourteen_points": [(1, "1frame", BEST, {"average": 0.38})],
    "llava_next": [(1, "32frames", INTERN3, {"average": 0.02})],
    "above_unimodal": [(1, "32frames", INTERN3, {"average": 0.04})],
    "range_of_gains": [(1, "32frames", INTERN3, {"average": 0.30})],
    "intern3_falls": [(1, "32frames", INTERN3, {"average": 0.31})],
    "others_improve": [(1, "32frames", NEXT, {"average": 0.08})],
    "hardest_in_pools": [(1, "32frames", BEST, {"implicit_partial": 0.46})],
    "profit_most": [(1, "32frames", BEST, {"temporal_partial": 0.48})],
    "spread_by_setting": [(5, "black", BEST, {"average": 0.54})],
    "least_spread": [(5, "32frames", BEST, {"average": 0.90})],
    "intern3_rises": [(2, "32frames", INTERN3, {"average": 0.67})],
    "hardest_answers": [(2, "32frames", BEST, {"spatial_total": 0.0})],
    "answers_need_video": [(2, "32frames", BEST, {"uncertainty": 0.91})],
    "intern2_similarity": [(4, "unstated", BEST, {"cider": 1.19})],
    "black_helps": [(1, "32frames", BEST, {"out_of_scope": 0.72})],
    "star": [
        (1, "black", BEST, {"out_of_scope": 0.0, "uncertainty": 0.0}),
        (1, "32frames", BEST, {"sentiment": 0.1, "implicit_partial": 0.1}),
    ],
    "answers_above_pools": [(2, "black", QWEN, {"average": 0.21})],
    "unsure_drop": [(2, "32frames", BEST, {"uncertainty": 0.76})],
    "larger_better": [
        (1, "32frames", INTERN3, {"average": 0.31}),
        (5, "black", BEST, {"average": 0.73}),
        (5, "32frames", INTERN3, {"average": 0.79}),
    ],
    "hardest_together": [(3, "32frames", BEST, {"planning": 0.42})],
}


@pytest.mark.parametrize(("key", "holds"), PINNED["claims"])
def test_every_claim_follows_the_figures(key, holds):
    tables = load("maia")
    for number, setting, model, values in FLIPS[key]:
        tables = change(tables, number, setting, model, **values)
    assert {claim.key: claim.holds for claim in claims(tables)}[key] is not holds


# --- markdown and README ---------------------------------------------------------------------


def test_markdown_of_a_table_has_every_figure_and_an_empty_column_of_ours():
    lines = render.markdown(table(3)).splitlines()
    assert lines[0].startswith("**Table 3.** Both tasks together")
    assert "`agg_acc` of `maia_black`, `maia_1frame`, `maia`" in lines[0]
    assert lines[2].startswith("| Setting | Model | Avg. | ours | Causal | Counterfactual | Out-")
    assert lines[4].startswith(f"| black video | {BEST} | 0.18 |  | 0.08 | 0.30 | 0.69 |")
    assert {line.count("|") for line in lines[2:]} == {17}
    assert len(lines) == 4 + 3


def test_our_figures_stand_beside_the_headline():
    row = table(4).rows[0].model_copy(update={"ours": {"bleu": Decimal("0.40")}})
    changed = table(4).model_copy(update={"rows": [row]})
    last = render.markdown(changed).splitlines()[-1]
    assert "| 0.84 |  | 0.38 | 0.40 | 0.59 |  |" in last


def test_findings_say_where_and_how_much():
    text = render.blocks("maia")["maia:findings"]
    for finding in found():
        assert finding.text in text
    assert "- Tables 1 and 5, Qwen-2.5-VL 7B, 1 frame, Uncertainty: pool accuracy 0.81" in text
    failed = [claim for claim in claims(load("maia")) if not claim.holds]
    assert len(failed) == 6
    assert all(claim.says in text and claim.evidence in text for claim in failed)
    assert "Of 21 statements" in text


def test_update_replaces_each_block_once():
    text = "a\n" + render.marked("x:1", "old\nlines") + "\nb\n" + render.marked("x:2", "two") + "\n"
    new = render.update(text, {"x:1": r"new \1 \n"})
    assert new == text.replace("old\nlines", r"new \1 \n")
    for wrong in ("nothing", text + text, text.replace(render.END, "", 1)):
        with pytest.raises(ValueError, match="block leaderboard:x:1 found"):
            render.update(wrong, {"x:1": "new"})
