"""Typeset formulas on the pages convert to the plain notation of the other formulas."""

from __future__ import annotations

import re

import pytest

from normspec.spec import pages, requirement
from normspec.spec.typeset import plain

FORMULAS = {
    r"E_{\mathrm{d}x} &= r_+ E_p + |\hat x| \eta_d": "E_dx = r+ E_p + |xhat| eta_d",
    r"\frac{\min(v, E_v)}{\sqrt{w + 1}}": "((min(v, E_v))/(sqrt(w + 1)))",
    r"W &= \sum_{k=2}^{n-1} \sqrt{n/k - 1}": "W = sum_{k=2}^{n-1} sqrt(n/k - 1)",
    r"\sum_{j \ge 1, \, 2^j < n} 2^{-20}": "sum_{j>=1,2^j<n} 2^-20",
    r"\bar \gamma \; &[\sim] \; \sum_{\mathrm{groups}} (g r P a)": "gamma_bar [~] sum over groups (g r P a)",
    r"\sum_{\mathrm{stretches}} (2 + r_+)": "sum over stretches (2 + r+)",
    r"\text{H2, training:} \quad \rho &\leftarrow \rho \quad \text{so}": "H2, training: rho <- rho       so",
}


@pytest.mark.parametrize("tex", FORMULAS)
def test_tex_is_read_in_the_plain_notation(tex: str):
    """Fractions, roots, sums, indices and words have one plain form each."""
    assert plain(tex) == FORMULAS[tex]


def test_lines_of_a_block_stay_lines():
    """Each line of an aligned block is one of the plain text; its number and its alignment are left out."""
    assert plain("\\begin{aligned}\na &= b \\\\\nc &= d\n\\end{aligned}\n\\tag{A1}") == "a = b\nc = d"


@pytest.mark.parametrize("page", pages())
def test_nothing_that_is_typeset_is_left_over(page: str):
    """No command of TeX, brace or ampersand of a page remains in the plain form, but the range of a sum."""
    for block in re.findall(r"^```math\n(.*?)^```$", pages()[page], re.M | re.S):
        said = re.sub(r"sum_\{[^}]*\}(\^\{[^}]*\})?", "", plain(block))
        assert not re.search(r"[\\\\{}&@]", said), said


def test_a_typeset_requirement_has_a_plain_formula():
    """The formula of LN-G9 is read as the others are."""
    assert requirement("LN-G9").formula.splitlines()[0] == (
        "x_bar [~] r P(b g) - r^2 [ xhat mean(h P a) + m_a P h + m_h P a ]"
    )
