"""What happens in the videos of MAIA's packaged sample: one truth for pictures and texts.

In both, a mover (a ball, a car) stands at one side, moves to the other, pauses hidden behind an
occluder (a box, a house), comes out and knocks over a target. A character who watches changes its
expression when the target falls, and a little bird dives behind the occluder and stays there. The
scenes differ in things, colours, direction, times, moods, hour and season.

Positions are pixels of a WIDTH x HEIGHT frame (y grows downwards), times are seconds. The texts ask
for nothing that only the sound shows, because MAIA's frames are handed over without it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from lmms_eval_tasks.sample.render import Colour, Point, Tone

WIDTH, HEIGHT = 384, 240
FPS = 15
AUDIO_RATE = 16_000  # samples a second, one channel
GROUND = 190.0  # y where things stand
HORIZON = 165.0  # y where the sky ends
FALL_SECONDS = 0.4  # from the hit until the target lies flat
BIRD_HALF = (15.0, 11.0)  # the bird with its wings fits into this
FACE_RADIUS = 21.0
FACE_Y = 112.0  # centre of the character's face

KNOCK = Tone(0.0, 0.25, 196.0)  # start relative to the hit
BEEP_SECONDS, BEEP_EVERY, BEEP_HERTZ = 0.2, 0.4, 880.0


class Thing(NamedTuple):
    """Something drawn; `noun` and `adjective` agree in gender as its articles in the texts do."""

    noun: str
    adjective: str
    colour: Colour
    half_width: float
    height: float

    @property
    def name(self) -> str:
        """Noun and adjective, without an article."""
        return f"{self.noun} {self.adjective}".strip()


@dataclass(frozen=True)
class Scene:
    """One video. Everything a text claims about it follows from these fields."""

    number: int  # video "video<number>" is the file <number>.mp4
    seconds: float
    mover: Thing  # feminine noun
    occluder: Thing  # feminine noun, in the middle of the frame
    target: Thing  # masculine noun
    character: Thing  # masculine noun
    bird: Thing
    start_x: float
    target_x: float
    character_x: float
    leaves: float  # the mover starts
    behind: float  # the mover stops in the middle behind the occluder
    comes_out: float  # it moves on
    hit: float  # it touches the target and stops; the target falls
    bird_path: tuple[tuple[float, float, float], ...]  # (time, x, y); it rests in the last place
    beeps: int  # beeps after the knock of the hit
    glad_at_end: bool  # the character smiles after the fall and not before, or the reverse
    night: bool
    winter: bool
    wrong_colour: str  # feminine; a colour that the mover does not have
    absent_animal: tuple[str, str]  # masculine, singular and plural; not in the video
    absent_thing: tuple[str, str]  # feminine, likewise

    @property
    def occluder_x(self) -> float:
        """Centre of the occluder."""
        return WIDTH / 2

    @property
    def heading(self) -> int:
        """1 if the mover goes to the right, -1 if to the left."""
        return 1 if self.target_x > self.start_x else -1

    @property
    def end_x(self) -> float:
        """Where the mover touches the target."""
        return self.target_x - self.heading * (self.target.half_width + self.mover.half_width)

    def mover_x(self, time: float) -> float:
        """Centre of the mover."""
        path = [
            (self.leaves, self.start_x),
            (self.behind, self.occluder_x),
            (self.comes_out, self.occluder_x),
            (self.hit, self.end_x),
        ]
        return _at(path, time)

    def hidden_from_to(self) -> tuple[float, float]:
        """When the last bit of the mover disappears and when the first bit is seen again."""
        margin = self.occluder.half_width - self.mover.half_width
        way_in = abs(self.occluder_x - self.start_x)
        way_out = abs(self.end_x - self.occluder_x)
        return (
            self.behind - (self.behind - self.leaves) * margin / way_in,
            self.comes_out + (self.hit - self.comes_out) * margin / way_out,
        )

    def bird_at(self, time: float) -> Point:
        """Centre of the bird."""
        return (
            _at([(t, x) for t, x, _ in self.bird_path], time),
            _at([(t, y) for t, _, y in self.bird_path], time),
        )

    def bird_hidden_from(self) -> float:
        """Time of the first frame from which the occluder (not its roof) covers the bird for good.

        Raises:
            ValueError: it does not, on this path.
        """
        top = GROUND - self.occluder.height
        frames = range(round(self.seconds * FPS))
        seen = [i for i in frames if not self._covers_bird(*self.bird_at(i / FPS), top)]
        if seen[-1] + 1 == len(frames):
            raise ValueError(f"video {self.number}: the bird is still seen at the end")
        return (seen[-1] + 1) / FPS

    def _covers_bird(self, x: float, y: float, top: float) -> bool:
        wide, tall = BIRD_HALF
        inside = abs(x - self.occluder_x) + wide <= self.occluder.half_width
        return inside and y - tall >= top and y + tall <= GROUND

    def target_angle(self, time: float) -> float:
        """Degrees the target leans away from the mover: 0 upright, 90 flat."""
        return 90.0 * min(max((time - self.hit) / FALL_SECONDS, 0.0), 1.0)

    def is_glad(self, time: float) -> bool:
        """Whether the character smiles; otherwise the corners of its mouth hang."""
        return self.glad_at_end == (time >= self.hit)

    def tones(self) -> list[Tone]:
        """The sound: a knock when the target is hit, then beeps; silence otherwise."""
        knock = KNOCK._replace(start=self.hit)
        starts = [self.hit + BEEP_EVERY * (1 + index) for index in range(self.beeps)]
        return [knock, *(Tone(start, BEEP_SECONDS, BEEP_HERTZ) for start in starts)]


def _at(path: list[tuple[float, float]], time: float) -> float:
    """Value at `time` of a piecewise linear path; constant before its first and after its last."""
    if time <= path[0][0]:
        return path[0][1]
    for (t0, v0), (t1, v1) in pairwise(path):
        if time <= t1:
            return v0 + (v1 - v0) * (time - t0) / (t1 - t0)
    return path[-1][1]


BALL = Scene(
    number=1,
    seconds=7.0,
    mover=Thing("palla", "rossa", (214, 30, 38), half_width=17, height=34),
    occluder=Thing("scatola", "blu", (36, 72, 200), half_width=45, height=88),
    target=Thing("birillo", "bianco", (250, 250, 248), half_width=9, height=44),
    character=Thing("pagliaccio", "", (250, 214, 180), half_width=21, height=99),
    bird=Thing("uccellino", "giallo", (255, 214, 20), half_width=15, height=22),
    start_x=50,
    target_x=296,
    character_x=352,
    leaves=0.5,
    behind=2.0,
    comes_out=3.0,
    hit=5.0,
    bird_path=((0.0, 330, 40), (2.5, 110, 60), (5.5, 150, 40), (6.2, 192, 140)),
    beeps=2,
    glad_at_end=True,
    night=False,
    winter=False,
    wrong_colour="verde",
    absent_animal=("cane", "cani"),
    absent_thing=("bicicletta", "biciclette"),
)

CAR = Scene(
    number=2,
    seconds=8.0,
    mover=Thing("macchina", "verde", (60, 200, 70), half_width=26, height=28),
    occluder=Thing("casa", "gialla", (245, 205, 70), half_width=48, height=84),
    target=Thing("cono", "arancione", (255, 122, 0), half_width=12, height=42),
    character=Thing("robot", "", (176, 186, 198), half_width=21, height=99),
    bird=Thing("uccellino", "rosso", (226, 46, 52), half_width=15, height=22),
    start_x=336,
    target_x=72,
    character_x=28,
    leaves=0.8,
    behind=2.2,
    comes_out=4.55,
    hit=6.0,
    bird_path=((0.0, 80, 50), (0.7, 160, 40), (1.3, 192, 150)),
    beeps=3,
    glad_at_end=False,
    night=True,
    winter=True,
    wrong_colour="rossa",
    absent_animal=("gatto", "gatti"),
    absent_thing=("sedia", "sedie"),
)

SCENES: tuple[Scene, ...] = (BALL, CAR)
