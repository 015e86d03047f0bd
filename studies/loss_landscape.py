"""loss-landscape: the shape of the loss around trained weights, with and without skip connections and norms."""

from __future__ import annotations

from itertools import product as pairs

import attrs
import numpy as np

from . import second_order, steps
from .classification import CLASSES, INPUTS, Points, cross_entropy, points, probabilities
from .operators import Operators
from .result import Array, Chain, Result, Step
from .second_order import Direction, Moving
from .study import (
    AGREE,
    SEEDS,
    Contour,
    Curves,
    Fact,
    Facts,
    Findings,
    Judgement,
    Panel,
    Scale,
    Series,
    Source,
    Study,
    Verdict,
    agree,
)

#: Units of a layer, and the points on which a net is trained, all in one batch.
WIDTH, POINTS = 16, 64
EPS = 1e-5
#: Nets are compared at this loss; if they do not reach it, after this many steps of gradient descent.
TARGET, STEPS, RATE = 0.1, 250, 0.1
#: A step is no longer than this: without a norm some gradients explode.
LONGEST = 1.0
#: Random directions, points on a line, steps of Lanczos's method, and points on a side of the plane.
DIRECTIONS, LINE, LANCZOS, SIDE = 4, 41, 12, 21


@attrs.frozen
class Kind:
    """Hidden layers of one kind: h + tanh(LN(h) w), with or without the sum and the norm."""

    skip: bool
    norm: bool
    depth: int

    @property
    def label(self) -> str:
        """Its name in figures."""
        return f"{'skip' if self.skip else 'no skip'}, {'LayerNorm' if self.norm else 'no norm'}"

    @property
    def name(self) -> str:
        """Its name in facts."""
        return f"{self.depth} layers, {self.label}"


def _bend(x: Array) -> Array:
    """The second derivative of tanh."""
    y = np.tanh(x)
    return -2 * y * (1 - y * y)


@attrs.frozen(eq=False)
class Net:
    """A first layer, hidden layers of one kind and a read-out, without biases, gamma and beta."""

    operators: Operators
    kind: Kind

    @property
    def names(self) -> list[str]:
        """The weights, from the first layer to the read-out."""
        return [f"{k}" for k in range(self.kind.depth + 2)]

    def drawn(self, scale: Scale) -> dict[str, Array]:
        """New weights of variance 1/width, the same for all kinds of one depth."""
        sizes = [INPUTS, *[WIDTH] * (self.kind.depth + 1), CLASSES]
        return {
            name: scale.normal(f"w{name}", *sizes[k : k + 2]) / np.sqrt(sizes[k]) for k, name in enumerate(self.names)
        }

    def run(self, weights: Direction, x: Array) -> Chain:
        """The net on x, (seeds, points, INPUTS)."""
        first, *hidden, last = self.names
        chain = [steps.linear(weights[first], first)]
        chain += [self._layer(weights[name], name) for name in hidden]
        return Chain.of(x, [*chain, steps.linear(weights[last], last)])

    def _layer(self, w: Array, name: str) -> Step:
        inner = [steps.linear(w, name), steps.activated(steps.tanh)]
        if self.kind.norm:
            inner.insert(0, lambda x: self.operators.layer_norm(x, eps=EPS))
        branch = steps.joined(*inner)
        if not self.kind.skip:
            return branch

        def step(x: Array) -> Result:
            result = self.operators.residual(x, branch)
            return Result(result.y, lambda g: {n.removeprefix("branch."): one for n, one in result.pull(g).items()})

        return step

    def gradient(self, weights: Direction, data: Points) -> tuple[Array, dict[str, Array]]:
        """The loss of each seed, and its gradient."""
        chain = self.run(weights, data.x)
        loss, g = cross_entropy(chain.y, data.label)
        return loss, {name: one for each in chain.pull(g).parameters for name, one in each.items()}

    def curvature(self, weights: Direction, direction: Direction, data: Points) -> dict[str, Array]:
        """The Hessian of each seed's loss times the direction, exactly."""
        first, *hidden, last = self.names

        def moving(name: str) -> Moving:
            return weights[name], direction[name]

        def layer(name: str) -> second_order.MovingStep:
            inner = [second_order.linear(moving(name), name), second_order.activated(steps.tanh, _bend)]
            if self.kind.norm:
                inner.insert(0, second_order.layer_norm(self.operators, EPS))
            branch = second_order.joined(inner)
            return second_order.residual(self.operators, branch) if self.kind.skip else branch

        whole = [second_order.linear(moving(first), first), *map(layer, hidden)]
        moved = second_order.joined([*whole, second_order.linear(moving(last), last)])((data.x, np.zeros_like(data.x)))
        logits, tangent = moved.y
        p, g = probabilities(logits), cross_entropy(logits, data.label)[1]
        tg = p * (tangent - (p * tangent).sum(axis=-1, keepdims=True)) / data.label.shape[1]
        return {name: one[1] for name, one in moved.pull((g, tg)).items() if name != "x"}


def trained(net: Net, scale: Scale, data: Points, count: int) -> tuple[dict[str, Array], Array]:
    """Weights and losses of each seed; training of a seed stops once its loss is at most TARGET."""
    weights = net.drawn(scale)
    loss, gradient = net.gradient(weights, data)
    for _ in range(count):
        going = loss > TARGET
        if not going.any():
            break
        length = np.sqrt(second_order.dot(gradient, gradient))
        move = second_order.along(gradient, np.where(going, -RATE * np.minimum(1, LONGEST / length), 0.0))
        weights = {name: weights[name] + move[name] for name in weights}
        loss, gradient = net.gradient(weights, data)
    return weights, loss


def filter_normalised(scale: Scale, weights: Direction, number: int) -> dict[str, Array]:
    """
    A random direction in which each filter, the weights of one unit, has the same norm as in the net.

    Source: Li et al. (2018), section 4.
    """
    found = {}
    for name, w in weights.items():
        drawn = scale.normal(f"direction {number} {name}", *w.shape[1:])
        lengths = [np.sqrt(np.square(one).sum(axis=1, keepdims=True)) for one in (w, drawn)]
        found[name] = drawn * (lengths[0] / lengths[1])
    return found


def on_line(net: Net, weights: Direction, direction: Direction, data: Points, at: Array) -> Array:
    """The loss at weights + a * direction, for each a in ``at``: (seeds, points of the line), in one run of the net."""
    moved = {}
    for name, w in weights.items():
        places = w[:, None] + at[:, None, None] * direction[name][:, None]
        moved[name] = places.reshape(-1, *w.shape[1:])
    many = Points(np.repeat(data.x, len(at), axis=0), np.repeat(data.label, len(at), axis=0))
    return cross_entropy(net.run(moved, many.x).y, many.label)[0].reshape(-1, len(at))


def turns(losses: Array) -> Array:
    """How often the loss changes between falling and rising along each line: (seeds,). One is a plain valley."""
    rising = np.sign(np.diff(losses, axis=1))
    return (rising[:, 1:] != rising[:, :-1]).sum(axis=1).astype(float)


@attrs.frozen(eq=False)
class Shape:
    """The loss around the weights of one net."""

    net: Net
    weights: Direction
    loss: Array
    #: Means over the random directions: turns of the loss, and its second derivative at the weights.
    turns: Array
    curvature: Array
    #: The largest eigenvalue of the Hessian, and its vector, scaled to the length of the weights.
    eigenvalue: Array
    top: Direction


def shape_of(net: Net, scale: Scale, data: Points) -> Shape:
    """Train a net, and measure the loss around its weights."""
    weights, loss = trained(net, scale, data, STEPS // 10 if scale.quick else STEPS)
    at, found, curved = np.linspace(-1, 1, LINE // 2 if scale.quick else LINE), [], []
    for number in range(1 if scale.quick else DIRECTIONS):
        direction = filter_normalised(scale, weights, number)
        found.append(turns(on_line(net, weights, direction, data, at)))
        curved.append(second_order.dot(direction, net.curvature(weights, direction, data)))
    start = {name: scale.normal(f"start {name}", *w.shape[1:]) for name, w in weights.items()}
    eigenvalue, vector = second_order.largest_eigenvalue(
        lambda v: net.curvature(weights, v, data), start, 3 if scale.quick else LANCZOS
    )
    size = np.sqrt(second_order.dot(weights, weights) / second_order.dot(vector, vector))
    top = second_order.along(vector, size)
    return Shape(net, weights, loss, np.mean(found, axis=0), np.mean(curved, axis=0), eigenvalue, top)


def measure(operators: Operators, scale: Scale) -> Findings:
    """Four nets of two depths: turns and curvature, and lines and planes of the deeper ones."""
    data = points(scale, POINTS // 2 if scale.quick else POINTS)
    depths = (8,) if scale.quick else DEPTHS
    facts, shapes = [], {}
    norms = (True,) if scale.quick else (False, True)
    for depth, norm, skip in pairs(depths, norms, (False, True)):
        kind = Kind(skip, norm, depth)
        shape = shapes[kind] = shape_of(Net(operators, kind), scale, data)
        measured = {_LOSS: shape.loss, _TURNS: shape.turns, _EIGENVALUE: shape.eigenvalue, _CURVATURE: shape.curvature}
        facts += [Fact(f"{kind.name}: {what}", values) for what, values in measured.items()]
    kinds = [kind for kind in shapes if kind.depth == max(depths)]
    panels: list[Panel] = []
    for title, far in (("a random direction", 1.0), ("the direction of most curvature", 0.25)):
        lines, at = [], np.linspace(-far, far, LINE)
        for kind in kinds:
            shape = shapes[kind]
            direction = filter_normalised(scale, shape.weights, 0) if far == 1 else shape.top
            lines.append(Series(kind.label, at, on_line(shape.net, shape.weights, direction, data, at)[:1]))
        label = "distance, in lengths of the weights"
        panels.append(Curves(f"{max(depths)} layers, {title}, seed {scale.seed}", label, "loss", lines))
    planes = {kind: _plane(shapes[kind], scale, data) for kind in kinds if kind.norm}
    levels = [k / 2 for k in range(7)]
    panels += [
        Contour(
            f"{kind.label}, seed {scale.seed}",
            "first random direction, in lengths of the weights",
            "second",
            "loss",
            *plane,
            levels=levels,
        )
        for kind, plane in planes.items()
    ]
    return Findings(facts, panels)


#: The quantities of the facts.
_LOSS, _TURNS = "loss", "turns along a random line"
_EIGENVALUE, _CURVATURE = "largest eigenvalue of the Hessian", "second derivative along a random line"
#: Layers of the nets. In the deeper nets the gradient still reaches the first layer without skip connections.
DEPTHS = (4, 16)


def _plane(shape: Shape, scale: Scale, data: Points) -> tuple[Array, Array, Array]:
    """The loss of the first seed over a plane of two random directions."""
    at = np.linspace(-1, 1, 7 if scale.quick else SIDE)
    directions = [filter_normalised(scale, shape.weights, number) for number in (0, 1)]
    first = Points(data.x[:1], data.label[:1])
    rows = []
    for a in at:
        weights = {name: w[:1] + a * directions[1][name][:1] for name, w in shape.weights.items()}
        line = {name: one[:1] for name, one in directions[0].items()}
        rows.append(on_line(shape.net, weights, line, first, at)[0])
    return at, at, np.stack(rows)


def judge(facts: Facts) -> Judgement:
    """Apply the rule."""
    met, failed = [], []
    depths = sorted({int(name.partition(" ")[0]) for name in facts})
    for depth, norm in pairs(depths, (False, True)):
        for what in (_TURNS, _EIGENVALUE):
            names = [f"{Kind(skip, norm, depth).name}: {what}" for skip in (True, False)]
            if names[0] not in facts:
                continue
            skip, none = (facts[name] for name in names)
            place = f"{depth} layers, {'LayerNorm' if norm else 'no norm'}: {what}"
            told = f"{place} {skip.median:.2g} in place of {none.median:.2g}"
            (met if agree(skip.values < none.values) else failed).append(told)
    if not failed:
        return Judgement(Verdict.HOLDS, "; ".join(met))
    if not met:
        return Judgement(Verdict.DOES_NOT_HOLD, f"no fewer, and no less: {'; '.join(failed)}")
    return Judgement(Verdict.UNDER_CONDITIONS, f"but not of {'; '.join(failed)}", f"one speaks of {'; '.join(met)}")


STUDY = Study(
    name="loss-landscape",
    claim="Skip connections make the loss of a deep net smooth: a plain valley in place of hills, and less curved.",
    sources=(
        Source(
            "Li, Xu, Taylor, Studer, Goldstein: Visualizing the Loss Landscape of Neural Nets (2018)",
            "sections 1 and 6; filter normalisation: section 4",
            "https://arxiv.org/abs/1712.09913",
        ),
    ),
    measured=(
        f"nets of {WIDTH} units a layer with tanh, trained to a loss of {TARGET:g} on {POINTS} generated points: how"
        " often the loss turns along filter-normalised random lines as long as the weights, its second derivative"
        " there, and the largest eigenvalue of its Hessian, both by exact products of Hessian and vector"
    ),
    rule=(
        "Turns and the largest eigenvalue are compared with and without skip connections, for two depths, with and"
        f" without LayerNorm. The claim holds where all are smaller with them in {AGREE} of {SEEDS} seeds (a sign test"
        " at 5 %), under conditions where some are, and does not hold where none is."
    ),
    operators=("residual", "layer_norm"),
    measure=measure,
    judge=judge,
)
