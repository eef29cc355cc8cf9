"""Draws MAIA's packaged scenes, frame by frame, from what `sample_scene` says about them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lmms_eval_tasks.maia.sample_scene import (
    FACE_RADIUS,
    FACE_Y,
    FPS,
    GROUND,
    HEIGHT,
    HORIZON,
    WIDTH,
    Scene,
)
from lmms_eval_tasks.sample.render import Canvas, Colour, Point, rotated

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

INK: Colour = (30, 30, 40)
WHITE: Colour = (252, 252, 252)
GREY: Colour = (120, 125, 135)
FLOOR = GROUND - 1  # where the mover rolls: no rim of it shows below the occluder
MOUTH_Y = FACE_Y + 8  # height of the mouth's corners when it smiles or not: they do not move
MOUTH_HALF, MOUTH_DEPTH = 10.0, 7.0


def frames(scene: Scene) -> Iterator[NDArray[np.uint8]]:
    """Every frame of the clip, (HEIGHT, WIDTH, 3); frame i shows the scene at i / FPS seconds."""
    background = _background(scene)
    for index in range(round(scene.seconds * FPS)):
        yield _frame(scene, index / FPS, background.copy())


def _frame(scene: Scene, time: float, canvas: Canvas) -> NDArray[np.uint8]:
    """Back to front: mover and bird before the occluder is drawn, so that it hides them."""
    _character(canvas, scene, glad=scene.is_glad(time))
    _bird(canvas, scene, time)
    mover_x = scene.mover_x(time)
    if scene.mover.noun == "palla":
        _ball(canvas, mover_x, scene, turned=mover_x - scene.start_x)
    else:
        _car(canvas, mover_x, scene)
    if scene.occluder.noun == "scatola":
        _box(canvas, scene)
    else:
        _house(canvas, scene)
    if scene.target.noun == "birillo":
        _pin(canvas, scene, scene.target_angle(time))
    else:
        _cone(canvas, scene, scene.target_angle(time))
    return canvas.pixels()


def _background(scene: Scene) -> Canvas:
    """Sky with sun or with moon and stars, ground with flowers or with snow."""
    sky: Colour = (22, 26, 66) if scene.night else (150, 208, 248)
    canvas = Canvas(WIDTH, HEIGHT, sky)
    if scene.night:
        canvas.ellipse((300, 42), 20, 20, (240, 240, 215))
        canvas.ellipse((309, 36), 17, 17, sky)  # leaves a crescent
        for x, y in ((30, 30), (120, 22), (168, 66), (232, 24), (352, 70), (262, 84), (92, 84)):
            _star(canvas, (x, y))
    else:
        canvas.ellipse((40, 36), 20, 20, (255, 226, 60))
        for angle in range(0, 360, 30):
            ray = rotated([(40 + 25, 36), (40 + 33, 36)], (40, 36), angle)
            canvas.line(ray, 2.5, (255, 226, 60))
    if scene.winter:
        canvas.ellipse((90, HORIZON + 22), 150, 40, (214, 222, 238))
        canvas.rectangle(0, HORIZON, WIDTH, HEIGHT, (238, 243, 252))
        _bare_tree(canvas, 272)
        for x in range(12, WIDTH, 24):  # snowflakes on the ground side only: the sky stays readable
            canvas.ellipse((x, 205 + (x * 7) % 29), 1.6, 1.6, (205, 215, 235))
    else:
        canvas.rectangle(0, HORIZON, WIDTH, HEIGHT, (106, 190, 84))
        for index, x in enumerate(range(14, WIDTH, 26)):
            petals: Colour = (250, 170, 215) if index % 2 else (252, 252, 252)
            _flower(canvas, (x, 207 + (x * 5) % 24), petals)
    return canvas


def _star(canvas: Canvas, centre: Point) -> None:
    x, y = centre
    outer = [(x, y - 4), (x + 1.2, y - 1.2), (x + 4, y), (x + 1.2, y + 1.2)]
    canvas.polygon([*outer, (x, y + 4), (x - 1.2, y + 1.2), (x - 4, y), (x - 1.2, y - 1.2)], WHITE)


def _flower(canvas: Canvas, centre: Point, petals: Colour) -> None:
    x, y = centre
    canvas.line([(x, y), (x, y + 9)], 1.5, (50, 130, 50))
    for angle in range(0, 360, 72):
        petal = rotated([(x, y - 3.2)], centre, angle)[0]
        canvas.ellipse(petal, 2.4, 2.4, petals)
    canvas.ellipse(centre, 1.8, 1.8, (240, 160, 40))


def _bare_tree(canvas: Canvas, x: float) -> None:
    bark: Colour = (92, 66, 52)
    canvas.line([(x, HORIZON + 6), (x, 112)], 5, bark)
    for dx, y, dy in ((-20, 140, 22), (18, 132, 20), (-12, 122, 18), (10, 116, 16)):
        canvas.line([(x, y), (x + dx, y - dy)], 2.5, bark)
        canvas.line([(x + dx * 0.35, y - dy - 1), (x + dx, y - dy - 2.5)], 2, WHITE)  # snow on it


def _ball(canvas: Canvas, x: float, scene: Scene, turned: float) -> None:
    """A ball that rolls: the light stripe turns with the way it has gone."""
    radius = scene.mover.half_width
    centre = (x, FLOOR - radius)
    canvas.ellipse(centre, radius, radius, scene.mover.colour)
    angle = math.degrees(turned / radius)
    stripe = rotated([(x - radius + 4, centre[1]), (x + radius - 4, centre[1])], centre, angle)
    canvas.line(stripe, 3, (255, 150, 150))


def _car(canvas: Canvas, x: float, scene: Scene) -> None:
    half, colour = scene.mover.half_width, scene.mover.colour
    canvas.rectangle(x - half, FLOOR - 18, x + half, FLOOR - 6, colour)
    roof = [(x - 15, FLOOR - 18), (x - 9, FLOOR - 28), (x + 9, FLOOR - 28), (x + 15, FLOOR - 18)]
    canvas.polygon(roof, colour)
    for side in (-1, 1):
        window = [(x + side, FLOOR - 18), (x + side, FLOOR - 26)]
        window += [(x + side * 8, FLOOR - 26), (x + side * 12.5, FLOOR - 18)]
        canvas.polygon(window, (200, 230, 245))
        wheel = (x + side * 15, FLOOR - 6)
        canvas.ellipse(wheel, 6, 6, INK)
        canvas.ellipse(wheel, 2.5, 2.5, GREY)
    canvas.ellipse((x + scene.heading * (half - 3), FLOOR - 14), 2.5, 2.5, (255, 250, 190))


def _box(canvas: Canvas, scene: Scene) -> None:
    x, half, top = scene.occluder_x, scene.occluder.half_width, GROUND - scene.occluder.height
    canvas.rectangle(x - half, top, x + half, GROUND, scene.occluder.colour)
    canvas.rectangle(x - half, top + 14, x + half, top + 17, (24, 50, 150))
    canvas.rectangle(x - 7, top, x + 7, top + 34, (120, 150, 240))  # a strip of tape


def _house(canvas: Canvas, scene: Scene) -> None:
    x, half, top = scene.occluder_x, scene.occluder.half_width, GROUND - scene.occluder.height
    canvas.rectangle(x - half, top, x + half, GROUND, scene.occluder.colour)
    roof = [(x - half - 8, top + 2), (x, top - 38), (x + half + 8, top + 2)]
    canvas.polygon(roof, (150, 84, 60))
    canvas.line([roof[0], roof[1], roof[2]], 5, WHITE)  # snow
    canvas.rectangle(x - 10, GROUND - 40, x + 10, GROUND, (120, 72, 44))
    for side in (-1, 1):
        canvas.rectangle(x + side * 29 - 10, top + 16, x + side * 29 + 10, top + 36, (70, 84, 120))
        canvas.rectangle(x + side * 29 - 1, top + 16, x + side * 29 + 1, top + 36, WHITE)


def _pin(canvas: Canvas, scene: Scene, angle: float) -> None:
    """A bowling pin; it tips over its far foot, away from the mover."""
    x, half, height = scene.target_x, scene.target.half_width, scene.target.height
    silhouette = [(half, 0.0), (half, 0.35), (half * 0.45, 0.62), (half * 0.62, 0.85), (0.0, 1.0)]
    right = [(x + dx, GROUND - height * up) for dx, up in silhouette]
    left = [(x - dx, GROUND - height * up) for dx, up in reversed(silhouette)]
    pivot = (x + scene.heading * half, GROUND)
    turn = scene.heading * angle
    outline = rotated([*right, *left], pivot, turn)
    canvas.polygon(outline, scene.target.colour)
    canvas.line([*outline, outline[0]], 1.5, GREY)
    neck = [(x - half * 0.5, GROUND - height * 0.66), (x + half * 0.5, GROUND - height * 0.66)]
    canvas.line(rotated(neck, pivot, turn), 3, INK)


def _cone(canvas: Canvas, scene: Scene, angle: float) -> None:
    """A traffic cone; it tips over its far foot, away from the mover."""
    x, half, height = scene.target_x, scene.target.half_width, scene.target.height
    pivot = (x + scene.heading * half, GROUND)

    def part(low: float, high: float, fill: Colour) -> None:
        wide, narrow = (half * (0.8 - 0.65 * level) for level in (low, high))
        bottom, top = GROUND - height * low, GROUND - height * high
        shape = [(x - wide, bottom), (x + wide, bottom), (x + narrow, top), (x - narrow, top)]
        canvas.polygon(rotated(shape, pivot, scene.heading * angle), fill)

    part(0.0, 1.0, scene.target.colour)
    part(0.4, 0.62, WHITE)
    foot = [(x - half, GROUND), (x + half, GROUND), (x + half, GROUND - 5), (x - half, GROUND - 5)]
    canvas.polygon(rotated(foot, pivot, scene.heading * angle), scene.target.colour)


def _character(canvas: Canvas, scene: Scene, glad: bool) -> None:
    x = scene.character_x
    if scene.character.noun == "pagliaccio":
        for side in (-1, 1):
            canvas.ellipse((x + side * 19, FACE_Y - 8), 9, 11, (240, 130, 30))  # tufts of hair
            canvas.ellipse((x + side * 9, GROUND - 3), 9, 4.5, (110, 40, 130))  # big shoes
        shoulders = [(x - 8, FACE_Y + 18), (x + 8, FACE_Y + 18)]
        canvas.polygon([*shoulders, (x + 19, GROUND - 6), (x - 19, GROUND - 6)], (150, 80, 190))
        for side in (-1, 1):
            hand = (x + side * 22, 158)
            canvas.line([(x + side * 9, 138), hand], 7, (150, 80, 190))
            canvas.ellipse(hand, 4.5, 4.5, scene.character.colour)
        for y in (146, 160, 174):
            canvas.ellipse((x, y), 3, 3, WHITE)
        canvas.ellipse((x, FACE_Y), FACE_RADIUS, FACE_RADIUS, scene.character.colour)
        hat = [(x - 13, FACE_Y - 17), (x + 13, FACE_Y - 17), (x, FACE_Y - 46)]
        canvas.polygon(hat, (150, 80, 190))
    else:
        canvas.line([(x, FACE_Y - 20), (x, FACE_Y - 34)], 2.5, GREY)  # antenna
        canvas.ellipse((x, FACE_Y - 36), 4, 4, (120, 220, 240))
        for side in (-1, 1):
            hand = (x + side * 23, 164)
            canvas.line([(x + side * 17, 142), hand], 6, (110, 118, 130))
            canvas.ellipse(hand, 4.5, 4.5, scene.character.colour)
            left = x + side * 9 - 5
            canvas.rectangle(left, 172, left + 10, GROUND, (110, 118, 130))
        canvas.rectangle(x - 17, FACE_Y + 24, x + 17, 174, (140, 150, 164))
        canvas.rectangle(x - 10, FACE_Y + 32, x + 10, FACE_Y + 44, (120, 220, 240))
        top, bottom = FACE_Y - FACE_RADIUS, FACE_Y + FACE_RADIUS
        canvas.rectangle(x - FACE_RADIUS, top, x + FACE_RADIUS, bottom, scene.character.colour)
    _expression(canvas, x, glad)
    if scene.character.noun == "pagliaccio":
        canvas.ellipse((x, FACE_Y + 1), 4.5, 4.5, (225, 60, 60))  # the red nose


def _expression(canvas: Canvas, x: float, glad: bool) -> None:
    """Eyes, brows and a mouth: its middle hangs below its corners in a smile, else stands above."""
    sign = 1 if glad else -1
    for side in (-1, 1):
        canvas.ellipse((x + side * 8, FACE_Y - 6), 2.8, 3.4, INK)
        if not glad:  # brows that rise towards the middle
            brow = [(x + side * 4, FACE_Y - 14), (x + side * 13, FACE_Y - 11)]
            canvas.line(brow, 2, INK)
    corners = MOUTH_Y + (0 if glad else MOUTH_DEPTH)
    steps = [index / 8 - 1 for index in range(17)]
    curve = [(x + MOUTH_HALF * s, corners + sign * MOUTH_DEPTH * (1 - s * s)) for s in steps]
    canvas.line(curve, 2.6, INK)


def _bird(canvas: Canvas, scene: Scene, time: float) -> None:
    """Fits into BIRD_HALF around its centre, looks where it flies, beats three times a second."""
    x, y = scene.bird_at(time)
    colour = scene.bird.colour
    sign = 1 if scene.bird_at(time + 1 / FPS)[0] > x else -1

    def at(forward: float, down: float) -> Point:
        return (x + sign * forward, y + down)

    canvas.polygon([at(-5, 0), at(-15, -5), at(-15, 5)], colour)  # tail
    canvas.ellipse(at(0, 1), 10, 6.5, colour)
    canvas.ellipse(at(8, -3), 5.2, 5.2, colour)
    canvas.polygon([at(12, -5), at(15, -2), at(12, -1)], (120, 70, 20))  # beak
    canvas.ellipse(at(9.5, -4.5), 1.3, 1.3, INK)
    beat = math.sin(2 * math.pi * 3 * time)
    dark: Colour = (colour[0] * 3 // 4, colour[1] * 3 // 4, colour[2] * 3 // 4)
    canvas.polygon([at(4, 0), at(-6, 0), at(-3, -10.5 * beat)], dark)
