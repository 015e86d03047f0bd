r"""Converts the TeX of the pages to the plain notation of the other formulas.

The pages use a small part of TeX: aligned blocks, fractions, roots, sums, sub- and superscripts, Greek letters, \hat
and \bar, names in \operatorname, \mathrm and \mathit, and words in \text. Words that follow a formula on its line are
a remark; \text{F:} before a formula names its class.
"""

from __future__ import annotations

import re

#: Commands that only separate or size what is beside them.
SPACES = re.compile(r"\\(?:[,;! ]|quad\b|qquad\b|(?:[bB]igg?[lr]?|left|right)(?![a-z]))")
#: Commands that stand for a sign.
SIGNS = {r"\leftarrow": "<-", r"\le": "<=", r"\ge": ">=", r"\infty": "inf", r"\cdot": " ", r"\to": "->", r"\sim": "~"}
BRACES = r"\{((?:[^{}]|\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\})*)\}"


def plain(tex: str) -> str:
    """Return a math block in plain notation, line by line."""
    tex = re.sub(r"\\(?:begin|end)\{aligned\}|\\tag\{[^}]*\}", "", tex)
    lines = [re.sub(r"\s+", " ", _line(line.replace("\n", " "))).strip() for line in tex.split("\\\\")]
    return "\n".join(line.replace("@", "      ") for line in lines if line)


def _line(line: str) -> str:
    """One line; @ precedes a remark."""
    line = re.sub(r"\\(?:q?quad)\s*\\text\{([^}]*[^:}])\}", lambda m: f"@{m[1]}", line)
    line = re.sub(r"\\text\{([^}]*)\}", lambda m: m[1].replace("\\_", "_"), line)
    line = SPACES.sub(" ", line.replace("&", " "))
    line = re.sub(r"\\(?:operatorname|mathrm|mathit)\{([^}]*)\}", r"\1", line)
    line = re.sub(r"\\sum_\{(groups|stretches)\}", r"sum over \1", line)
    line = re.sub(r"\\sum_" + BRACES + r"(?:\^" + BRACES + ")?", _sum, line)
    line = re.sub(r"\\sum_([a-z])", r"sum_\1", line)
    line = re.sub(r"\\prod_([a-z])", r"prod_\1", line)
    line = re.sub(r"\\hat ?(?:\{x\}|x)", "xhat", line)
    line = re.sub(r"\\bar ?\\?(\w+)", r"\1_bar", line)
    while r"\frac" in line or r"\sqrt" in line:
        line = re.sub(r"\\frac" + BRACES + BRACES, r"((\1)/(\2))", line)
        line = re.sub(r"\\sqrt" + BRACES, r"sqrt(\1)", line)
    line = re.sub(r"_\{([^}]*)\}", lambda m: "_" + re.sub(r"[\\ _]", "", m[1]), line)
    line = re.sub(r"\^\{(\w+|-\w+)\}", r"^\1", line)
    line = re.sub(r"\^" + BRACES, r"^(\1)", line)
    line = re.sub(r"_([+-])", r"\1", line)
    for command, sign in SIGNS.items():
        line = re.sub(re.escape(command) + r"(?![a-z])", lambda m, sign=sign: sign, line)
    return line.replace("\\", "").replace("⟨", "{").replace("⟩", "}")


def _sum(match: re.Match[str]) -> str:
    """The range of a sum, in braces that the later steps leave alone."""
    below = re.sub(r"\s", "", SPACES.sub("", match[1]).replace(r"\ge", ">="))
    return f"sum_⟨{below}⟩" + (f"^⟨{match[2]}⟩" if match[2] else "")
