"""Every fault: how it is broken, when, what the user is told, and what counts as lost.

After a fault the user gives the same command again. Nothing is deleted.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

IN_FLIGHT = 64  # requests to an endpoint


class Moment(NamedTuple):
    """When, and how much: the n-th time at the fault's point; what its action is given."""

    number: int = 1
    given: Sequence[str] = ()


class Fault(NamedTuple):
    """One way to break a run."""

    name: str
    moments: Sequence[Moment]  # the first is tried in the slice
    point: str = ""  # where the action happens in the run (injected.py); "" for none
    does: str = ""  # the action
    says: str = ""  # what a line for the user holds (a regular expression); "": no line is needed
    ends: Sequence[int] = (0,)  # exit codes of the run that was broken
    replies: int = 0  # of the model's, that may be asked again
    verdicts: int = 0  # replies that the judge gave and that may be paid for again
    spoils: str = ""  # files of a run that ended, damaged as each moment's `given` says
    mounts: str = ""  # a folder that is a small file system, with the options in `given`
    together: str = ""  # `two runs` at the same time, or `two ranks` of one
    options: Sequence[str] = ()  # of the command
    model: Sequence[str] = ()  # options that name another model, whose numbers are others
    saved: bool = False  # the results were there before: the same command asks anew
    judge: str = ""  # what becomes of the judge in the broken run: `never answers`, `trickles`
    put_back: bool = False  # the data, before the command is given again
    honest: str = ""  # what is lost all the same, in words


def at(*numbers: int) -> list[Moment]:
    """The n-th time, without more."""
    return [Moment(number) for number in numbers]


def given(*texts: str, number: int = 1) -> list[Moment]:
    """One moment with different arguments, each divided by blanks."""
    return [Moment(number, text.split()) for text in texts]


def random_kills(count: int, requests: int) -> list[tuple[int, float]]:
    """After which request, and how many seconds later: the same in every process."""
    drawn = random.Random(39)
    return [(drawn.randint(1, requests), round(drawn.uniform(0, 0.5), 2)) for _ in range(count)]


# All 192 docs of a task that needs no judge, whatever the subject.
ENDPOINT = (
    *("--model", "openai", "--tasks", "maia_vsv_1frame", "--limit", "192"),
    *("--model_args", f"model=asked,num_concurrent={IN_FLIGHT},timeout=60"),
)
VLLM = (
    *("--model", "tasks_vllm", "--tasks", "maia_vsv_1frame", "--limit", "192"),
    *("--batch_size", str(IN_FLIGHT), "--model_args", "pretrained=checkpoint"),
)
GOES_ON = r"replies are taken from a run that was stopped"
NOT_SAVED = r"the results were not saved .*run the same command again"
DAMAGE = ("truncate", "empty", "garble", "zero", "remove")
CUT, KILLED = -25, -9  # SIGXFSZ, SIGKILL

FAULTS = [
    Fault(
        "kill -9 in generation",
        at(30, 1, 2, 20, 21, 41, 48),
        "request",
        "kill",
        "",
        (KILLED,),
        replies=1,
        honest="the reply that the model is at; of a batch all",
    ),
    *(
        Fault(
            f"kill -9 at an endpoint{name}",
            [Moment(number, (str(seconds),)) for number, seconds in kills],
            "asked",
            "kill later",
            "",
            (KILLED,),
            replies=(2 if together else 1) * IN_FLIGHT,
            together=together,
            model=ENDPOINT,
            honest="replies on their way: as many as the class has requests at a time",
        )
        for name, together, kills in (
            ("", "", [(100, 0.1), (1, 0), (64, 0.3), (190, 0)]),
            (", two ranks", "two ranks", random_kills(20, 90)),
        )
    ),
    Fault(
        "the engine of tasks_vllm is killed",
        at(100, 1, 21, 150),
        "asked",
        "kill engine",
        r"vLLM's engine has stopped \(exit code -9;",
        (2,),
        replies=IN_FLIGHT,
        model=VLLM,
        honest="requests that the engine had",
    ),
    Fault(
        "kill -9 in judging",
        at(10, 1, 2, 20, 35),
        "verdict",
        "kill",
        GOES_ON,
        (KILLED,),
        honest="requests on their way to the judge: up to 16",
    ),
    *(
        Fault(
            f"the judge never answers, {name}",
            [Moment(n, (name,)) for n in numbers],
            "verdict",
            "signal",
            rf"interrupted by {name}: .*replies of the judge are kept in .* "
            r"again to continue from there",
            (128 + code,),
            judge="never answers",
            honest="requests on their way to the judge: up to 16",
        )
        for name, code, numbers in (("SIGINT", 2, (10, 1)), ("SIGTERM", 15, (10, 1)))
    ),
    Fault("the judge trickles", at(3, 1), judge="trickles"),
    Fault(
        "the judge's cache is removed in mid-run",
        [Moment(n, ("remove", f"cache/judge/{name}")) for n in (10, 1) for name in ("*", "*3")],
        "verdict",
        "spoil",
        "was removed or replaced while the run used it; it is written again with",
    ),
    Fault(
        "kill -9, kept replies damaged",
        [Moment(30, (how, "cache/replies/*/*.jsonl")) for how in DAMAGE],
        "request",
        "spoil and kill",
        ends=(KILLED,),
        replies=30,
        honest="kept replies that cannot be read are asked again",
    ),
    Fault("kill -9 in aggregation", at(1, 2), "aggregate", "kill", GOES_ON, (KILLED,)),
    Fault(
        "killed while results are written",
        given("5000", "0", "4096", "16000"),
        "open *_results.json",
        "cut",
        GOES_ON,
        (CUT,),
    ),
    Fault(
        "killed while samples are written",
        [Moment(n, ("6000",)) for n in (4, 1, 2)],
        "open *_samples_*",
        "cut",
        GOES_ON,
        (CUT,),
        honest="rescore and report name the line, or mark the run INVALID",
    ),
    Fault(
        "killed while the page is written",
        given("100000", "0", "300000"),
        "open .*_report.html*",
        "cut",
        "",
        (CUT,),
        options=("--report",),
        saved=True,
    ),
    Fault(
        "full disk (EFBIG) at the results",
        given("4000", "8000"),  # the log is a file too
        "open *_results.json",
        "full",
        NOT_SAVED,
        (1,),
    ),
    Fault(
        "full disk (tmpfs) for the results",
        given("size=16k", "size=4k", "size=60k"),
        says=NOT_SAVED,
        ends=(1,),
        mounts="out",
    ),
    Fault(
        "full disk (tmpfs) for kept replies",
        given("size=4k"),
        says="replies cannot be saved as they arrive .No space left",
        mounts="cache/replies",
        honest="replies of that run, if it is killed too",
    ),
    Fault(
        "full disk (tmpfs) for the judge's cache",
        given("size=64k", "size=100k"),
        says="database or disk is full.*replies may be paid for again",
        mounts="cache/judge",
        verdicts=400,
        honest="verdicts stand in the saved samples (rescore); a second run pays for them again",
    ),
    Fault(
        "full disk (tmpfs) for clips",
        given("size=8k"),
        says="cannot be written .No space left.*LMMS_EVAL_TASKS_CACHE",
        ends=(2,),
        mounts="cache/media",
    ),
    Fault(
        "read-only output",
        given("ro"),
        says="--output_path .*cannot be written .Read-only",
        ends=(2,),
        mounts="out",
    ),
    Fault(
        "read-only judge's cache",
        given("ro"),
        says="cannot be used as the cache.*pass --judge-cache DIR",
        ends=(2,),
        mounts="cache/judge",
    ),
    *(
        Fault(
            f"read-only {name}",
            given("ro"),
            says="cannot be written .Read-only.*LMMS_EVAL_TASKS_CACHE",
            ends=(2,),
            mounts=f"cache/{folder}",
        )
        for name, folder in (("clips", "media"), ("probes", "probes"))
    ),
    Fault(
        "read-only kept replies",
        given("ro"),
        says="replies cannot be saved as they arrive .Read-only",
        mounts="cache/replies",
    ),
    Fault("damaged clips", given(*DAMAGE), spoils="cache/media/*.[mp][pn]*"),
    Fault("damaged notes of clips", given(*DAMAGE), spoils="cache/media/*.json"),
    Fault("damaged probes", given(*DAMAGE), spoils="cache/probes/*.json"),
    Fault(
        "damaged judge's cache",
        given("truncate", "garble", "zero"),
        spoils="cache/judge/replies.sqlite3",
        says="cannot be used as the cache of judges' replies: .*Move it away",
        ends=(0, 2),
        verdicts=500,
        honest="verdicts that cannot be read; those of saved samples stand (rescore)",
    ),
    Fault("damaged results and samples", given(*DAMAGE), spoils="out/**/*_[rs]*_*.json*"),
    Fault(
        "a video vanishes in mid-run",
        [Moment(n, (how, "data/*/videos/*")) for how in ("remove", "truncate") for n in (30, 1)],
        "request",
        "spoil",
        put_back=True,
    ),
    Fault(
        "a video vanishes before its clip is made",
        [Moment(1, (how, "data/*/videos/*")) for how in ("remove", "truncate")],
        "media",
        "spoil",
        ends=(0, 2),
        put_back=True,
    ),
    Fault(
        "the clips vanish in mid-run",
        [Moment(n, ("remove", "cache/media/*.[mp][pn]*")) for n in (30, 1)],
        "request",
        "spoil",
        ends=(0, 1, 2),
        replies=1,
    ),
    Fault("two runs to one folder at once", at(1), together="two runs"),
    Fault("two ranks with one cache", at(1), together="two ranks"),
    *(
        Fault(
            f"the clock jumps {name}",
            [Moment(n, (by,)) for by in jumps for n in (10, 1)],
            "request",
            "jump",
            options=("--report",),
        )
        for name, jumps in (("back", ("-7200", "-34560000")), ("forward", ("7200", "34560000")))
    ),
    Fault(
        "the clock jumps while the judge is asked",
        [Moment(n, (by,)) for n in (5, 20) for by in ("-7200", "7200")],
        "verdict",
        "jump",
    ),
]
# One run for each of these in CI; the others are tried in the long form.
SLICE = (
    "kill -9 in generation",
    "kill -9 at an endpoint",
    "the engine of tasks_vllm is killed",
    "kill -9 in judging",
    "the judge never answers, SIGTERM",
    "the judge trickles",
    "the judge's cache is removed in mid-run",
    "killed while samples are written",
    "killed while the page is written",
    "full disk (EFBIG) at the results",
    "full disk (tmpfs) for kept replies",
    "damaged clips",
    "a video vanishes in mid-run",
    "two runs to one folder at once",
    "two ranks with one cache",
)
