"""Made-up judges of known quality, so that the results of panels can be compared with the truth.

A judge is a channel: for each rating of the reference, the probabilities of the judge's ratings. So
its kappa is known in closed form. A world is a set of judges. In some worlds, judges do not see the
answer but an opinion that several of them share, which latent-class models cannot detect.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from lmms_eval_tasks.cvrr_es.labels import SCALE
from lmms_eval_tasks.cvrr_es.study.panels import to_scale
from lmms_eval_tasks.cvrr_es.study.ratings import AnswerKey
from lmms_eval_tasks.cvrr_es.study.selection import Stratum

Channel = tuple[tuple[float, ...], ...]  # [rating before - 1][rating after - 1] -> probability

QUESTIONS, PER_VIDEO, FOLDS = 80, 4, 5  # with five candidates: 400 answers on 20 videos
DIMENSION = "simulated"
# Shares of the reference ratings 1 to 5. Agent-Debate's means in Table 4 are 1.1 to 2.2 for four
# candidates, and about 2.7 for GPT-4o mini; these have 1.79 and 2.80.
WEAK = (0.55, 0.25, 0.10, 0.06, 0.04)
STRONG = (0.25, 0.20, 0.20, 0.20, 0.15)
CANDIDATES = {"weak 1": WEAK, "weak 2": WEAK, "weak 3": WEAK, "weak 4": WEAK, "strong": STRONG}


def mapped(to: Mapping[int, int]) -> Channel:
    """Return the channel that turns each rating into another one."""
    return tuple(tuple(float(to[before] == after) for after in SCALE) for before in SCALE)


def shifted(steps: int) -> Channel:
    """Return the channel that moves ratings so many steps up (or down), within the scale."""
    return mapped({rating: min(max(rating + steps, SCALE[0]), SCALE[-1]) for rating in SCALE})


def noisy(share: float) -> Channel:
    """Return the channel that moves this share of answers by one step, half of them up.

    At the ends of the scale, the other half stays.
    """
    up, down = shifted(1), shifted(-1)
    return tuple(
        tuple((1 - share) * (i == j) + share / 2 * (up[i][j] + down[i][j]) for j in range(5))
        for i in range(5)
    )


def after(first: Channel, second: Channel) -> Channel:
    """Return the channel that applies the second channel to the first one's ratings."""
    return tuple(
        tuple(sum(first[i][k] * second[k][j] for k in range(5)) for j in range(5)) for i in range(5)
    )


GOOD = noisy(0.25)  # a kappa of about 0.93
LENIENT = shifted(1)
CONSTANT = mapped(dict.fromkeys(SCALE, 4))
RANDOM: Channel = tuple(tuple(1 / len(SCALE) for _ in SCALE) for _ in SCALE)
ADVERSARIAL = mapped({rating: 6 - rating for rating in SCALE})


@dataclass(frozen=True)
class Judge:
    """One judge. `sees` names an opinion of its world; "" means the answer itself."""

    channel: Channel
    sees: str = ""


@dataclass(frozen=True)
class World:
    """Judges that rate the same answers, and the final judge's own channel.

    opinions: what judges may see instead of the answer; each is drawn once for each answer.
    """

    about: str
    judges: Mapping[str, Judge]
    opinions: Mapping[str, Channel] = field(default_factory=dict)
    final: Channel = GOOD

    def channel(self, judge: str) -> Channel:
        """Return the channel from the reference to this judge's rating."""
        own = self.judges[judge]
        return after(self.opinions[own.sees], own.channel) if own.sees else own.channel


def _copies(number: int, channel: Channel, sees: str) -> dict[str, Judge]:
    return {f"copy {place}": Judge(channel, sees) for place in range(1, number + 1)}


WORLDS = {
    "five": World(
        "one judge of each kind",
        {
            "unbiased": Judge(GOOD),
            "lenient": Judge(LENIENT),
            "constant": Judge(CONSTANT),
            "random": Judge(RANDOM),
            "adversarial": Judge(ADVERSARIAL),
        },
    ),
    "minority": World(
        "three unbiased judges, two bad ones",
        {
            "unbiased 1": Judge(GOOD),
            "unbiased 2": Judge(noisy(0.4)),
            "unbiased 3": Judge(noisy(0.5)),
            "random": Judge(RANDOM),
            "adversarial": Judge(ADVERSARIAL),
        },
    ),
    "majority": World(
        "two unbiased judges, three bad ones that err each in its own way",
        {
            "unbiased 1": Judge(GOOD),
            "unbiased 2": Judge(noisy(0.4)),
            "constant": Judge(CONSTANT),
            "random": Judge(RANDOM),
            "adversarial": Judge(after(ADVERSARIAL, GOOD)),
        },
    ),
    "correlated": World(
        "three unbiased judges, two that repeat one random opinion",
        {
            "unbiased 1": Judge(GOOD),
            "unbiased 2": Judge(noisy(0.4)),
            "unbiased 3": Judge(noisy(0.5)),
            **_copies(2, noisy(0.1), "random"),
        },
        {"random": RANDOM},
    ),
    "captured": World(
        "two unbiased judges, three that repeat one random opinion: latent classes must lose",
        {
            "unbiased 1": Judge(GOOD),
            "unbiased 2": Judge(noisy(0.4)),
            **_copies(3, noisy(0.1), "random"),
        },
        {"random": RANDOM},
    ),
    "lenient": World(
        "all five judges one too high, with noise: only the reference can tell",
        {
            f"lenient {place}": Judge(after(LENIENT, noisy(share)))
            for place, share in enumerate((0.2, 0.3, 0.4, 0.5, 0.6), 1)
        },
        final=after(LENIENT, GOOD),
    ),
    "chance": World(
        "five judges that rate at random: whichever looks best does so by chance",
        {f"random {place}": Judge(RANDOM) for place in range(1, 6)},
    ),
}


@dataclass(frozen=True)
class Drawn:
    """One draw of a world, as plain mappings for the panels and the mixture."""

    ratings: dict[str, dict[AnswerKey, int]]
    reference: dict[AnswerKey, int]
    final: dict[AnswerKey, int]  # the final judge's own rating, without those of others
    strata: dict[AnswerKey, Stratum]


def draw(world: World, seed: int, questions: int = QUESTIONS) -> Drawn:
    """Return ratings of `questions` answers of each candidate; the same seed gives the same draw.

    The reference and every judge have their own random streams. So a seed's reference is the same
    in all worlds, and a further judge changes nothing for the others.
    """
    reference: dict[AnswerKey, int] = {}
    strata: dict[AnswerKey, Stratum] = {}
    stream = _stream(seed, "reference")
    for number in range(questions):
        for candidate, shares in CANDIDATES.items():
            item = AnswerKey(f"{DIMENSION}/{number + 1:03d}", candidate)
            reference[item] = _pick(shares, stream)
            strata[item] = Stratum(number // PER_VIDEO % FOLDS, DIMENSION)

    def heard(name: str, channel: Channel, source: Mapping[AnswerKey, int]) -> dict[AnswerKey, int]:
        own = _stream(seed, name)
        return {item: _pick(channel[rating - 1], own) for item, rating in source.items()}

    opinions = {
        name: heard(f"opinion {name}", channel, reference)
        for name, channel in world.opinions.items()
    }
    ratings = {
        name: heard(f"judge {name}", judge.channel, opinions.get(judge.sees, reference))
        for name, judge in world.judges.items()
    }
    final = heard("final judge", world.final, reference)
    return Drawn(ratings, reference, final, strata)


def expected_kappa(shares: Sequence[float], channel: Channel) -> float | None:
    """Return the quadratic kappa between a channel's input and output, in closed form.

    With p the shares of the reference, C the channel and q = pC its output: 1 - D/E, where D is the
    sum of p_r C_rx (r - x)^2 and E the sum of p_r q_x (r - x)^2. None if both are constant.

    Args:
        shares: shares of the reference ratings 1 to 5, with the sum 1. With the shares in the items
            themselves, the result is exactly the kappa of a judge without chance (lenient,
            constant, adversarial).
        channel: the channel from the reference to the judge's ratings.
    """
    given = [sum(shares[i] * channel[i][j] for i in range(5)) for j in range(5)]
    cells = [(i, j, (i - j) ** 2) for i in range(5) for j in range(5)]
    by_chance = sum(shares[i] * given[j] * square for i, j, square in cells)
    observed = sum(shares[i] * channel[i][j] * square for i, j, square in cells)
    return 1 - observed / by_chance if by_chance else None


def swayed(own: int, shown: Sequence[int], weight: float) -> int:
    """Return the final judge's rating: its own, moved towards the mean of the ratings that it sees.

    Args:
        own: its rating without the others.
        shown: the other judges' ratings; without any, its own stays.
        weight: 0 (never moved) to 1 (their mean).
    """
    if not shown:
        return own
    return to_scale(own + weight * (sum(shown) / len(shown) - own))


def _stream(seed: int, name: str) -> Random:
    # Python hashes a text as seed completely, in the same way everywhere.
    return Random(f"{seed} {name}")


def _pick(shares: Sequence[float], stream: Random) -> int:
    # Only random() is guaranteed to give the same stream in every Python version.
    left = stream.random()
    for rating, share in zip(SCALE, shares, strict=True):
        left -= share
        if left < 0:
            return rating
    # The sum of the shares may be rounded: the last possible rating.
    return max(rating for rating, share in zip(SCALE, shares, strict=True) if share)
