"""An operator from elsewhere: all that it is stands in this file, which runs as `normspec` with one operator more."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np

from normspec.adapters.numpy.operators import IMPLEMENTATIONS
from normspec.adapters.numpy.operators.staged import Staged
from normspec.conformance.cases.case import Case
from normspec.conformance.checks.registry import check, ordinary
from normspec.conformance.checks.relations import close
from normspec.conformance.checks.values import y_of
from normspec.conformance.command_line.root import run
from normspec.conformance.faults.registry import fault
from normspec.conformance.judging.findings import Finding
from normspec.conformance.judging.subject import Subject
from normspec.conformance.sound.registry import sound
from normspec.spec.operators import Groups, Operator, enter

PAGE = """# center

<a id="CE-F1"></a>

### CE-F1 (MUST): the mean is taken out

y is x less the mean over the last axis.

```formula
y = x - mean(x)
```

*Why:* What is left has the mean 0.

<a id="CE-L1"></a>

### CE-L1 (MUST): odd

Where x is negated, y is negated.

*Why:* A mean is linear in x. What is added beside it, or a mean of sizes, shows here.
"""

enter(
    Operator(
        "center", "CE", ("x",), Groups.LAST, differentiable=("x",),
        file=__file__, page=PAGE, formula=lambda x: x - x.mean(),
    )
)  # fmt: skip

check("CE-F1", every=ordinary)(y_of)


@check("CE-L1", every=ordinary)
def odd(subject: Subject, case: Case) -> Iterator[Finding]:
    """center(-x) = -center(x)."""
    y, bound = subject.observe(case).outputs["y"].astype(np.float64), subject.bound(case, "y")
    turned = case.replace(x=-case.x)
    got = subject.outputs(turned)["y"]
    yield close(subject, turned, "y", got, -y, lambda normative: 2 * bound(normative), "x negated")


class Center(Staged):
    """x less its mean, in the working dtype."""

    operator = "center"

    def mean(self, x: np.ndarray) -> np.ndarray:
        """The mean of each group."""
        return x.mean(axis=-1, keepdims=True)

    def call(self, x: np.ndarray) -> np.ndarray:
        """y, of x's shape and dtype."""
        self.begin_with(x)
        values = self.read(x, "x")
        return self.write(values - self.mean(values), x.shape, x.dtype, "y")

    def vjp(self, x: np.ndarray, g: np.ndarray) -> tuple[np.ndarray]:
        """The gradient of x: g less its mean."""
        return (Center().call(g),)


IMPLEMENTATIONS["center"] = Center


@sound("summed-backwards", operators=("center",))
class SummedBackwards(Center):
    """The values of a group are added from the last to the first."""

    def mean(self, x: np.ndarray) -> np.ndarray:
        """The mean of each group."""
        return x[..., ::-1].cumsum(axis=-1)[..., -1:] / x.dtype.type(x.shape[-1])


@fault("last-left-out", ce="CE-F1")
class LastLeftOut(Center):
    """The last value of a group does not count in its mean."""

    def mean(self, x: np.ndarray) -> np.ndarray:
        """The mean of all but the last."""
        return x[..., :-1].sum(axis=-1, keepdims=True) / x.dtype.type(x.shape[-1])


def center(x: np.ndarray) -> np.ndarray:
    """A sound function of somebody's."""
    return Center().call(x)


def center_vjp(x: np.ndarray, g: np.ndarray) -> tuple[np.ndarray]:
    """Its gradient."""
    return Center().vjp(x, g)


def shifted(x: np.ndarray) -> np.ndarray:
    """A wrong one: it adds a hundredth."""
    return (Center().call(x) + 0.01).astype(x.dtype)


if __name__ == "__main__":
    sys.exit(run())
