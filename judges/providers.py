"""From a config to its judge: the one place that knows every provider."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks.errors import JudgeError
from lmms_eval_tasks.judges import config as names
from lmms_eval_tasks.judges.config import JudgeConfig
from lmms_eval_tasks.judges.verdict import Criterion, Judge, Status, Verdict

if TYPE_CHECKING:
    from lmms_eval_tasks.judges.huggingface import HuggingFaceProvider
    from lmms_eval_tasks.judges.run import Run


def build(config: JudgeConfig, run: Run) -> Judge:
    """The judge of `config`; opens no connection and loads no weights.

    Raises:
        JudgeError: no such provider, or a recordings file that cannot be read.
    """
    make = _PROVIDERS.get(config.provider)
    if make is None:
        raise JudgeError(f"no judge provider is called {config.provider!r}")
    return make(config, run)


def _openai(config: JudgeConfig, run: Run) -> Judge:
    from lmms_eval_tasks.judges.engine import LanguageJudge
    from lmms_eval_tasks.judges.openai_provider import OpenAIProvider

    return LanguageJudge(config, run.wrap(OpenAIProvider(config)), run)


def _huggingface(config: JudgeConfig, run: Run) -> Judge:
    from lmms_eval_tasks.judges.engine import LanguageJudge

    return LanguageJudge(config, huggingface(config), run)


def huggingface(config: JudgeConfig) -> HuggingFaceProvider:
    """The model in this process that a config names; loads nothing yet."""
    from lmms_eval_tasks.judges.huggingface import HuggingFaceProvider

    return HuggingFaceProvider(
        config.model,
        device=config.device,
        dtype=config.dtype,
        revision=config.revision,
        trust_remote_code=config.trust_remote_code,
    )


def _replay(config: JudgeConfig, run: Run) -> Judge:  # noqa: ARG001 - nothing is paid for
    from lmms_eval_tasks.judges.replay import Recordings, ReplayJudge

    return ReplayJudge(config, Recordings.load(Path(config.model)))


def _offline(config: JudgeConfig, run: Run) -> Judge:  # noqa: ARG001
    from lmms_eval_tasks.judges.offline import OfflineJudge

    return OfflineJudge(config)


def _none(config: JudgeConfig, run: Run) -> Judge:  # noqa: ARG001
    return NoJudge(config)


def _panel(config: JudgeConfig, run: Run) -> Judge:
    from lmms_eval_tasks.judges.panel import PanelJudge

    members = [run.judge(member) for member in config.members]
    return PanelJudge(config, members, rule=config.rule, tie=config.tie)


def _debate(config: JudgeConfig, run: Run) -> Judge:
    from lmms_eval_tasks.judges.debate import DebateJudge

    *agents, consolidator = (run.judge(member) for member in config.members)
    return DebateJudge(config, agents, consolidator, rounds=config.rounds)


_PROVIDERS: dict[str, Callable[[JudgeConfig, Run], Judge]] = {
    names.OPENAI: _openai,
    names.HUGGINGFACE: _huggingface,
    names.REPLAY: _replay,
    names.OFFLINE: _offline,
    names.NONE: _none,
    names.PANEL: _panel,
    names.DEBATE: _debate,
}


@dataclass(frozen=True)
class NoJudge:
    """`none`: generate now, judge later; every verdict is `skipped`."""

    config: JudgeConfig

    def supports(self, criterion: str) -> bool:  # noqa: ARG002 - nobody is asked
        """Every criterion: nothing is decided now."""
        return True

    def verdict(self, criterion: Criterion, fields: Mapping[str, Any]) -> Verdict:  # noqa: ARG002
        """A skipped verdict."""
        return Verdict(None, Status.SKIPPED, "not judged yet", judge=names.NONE)

    def verdicts(
        self, criterion: Criterion, fields: Mapping[str, Any], samples: int
    ) -> list[Verdict]:
        """As many skipped verdicts."""
        return [self.verdict(criterion, fields)] * samples
