"""The variants of the composed operators; importing this enters them."""

from __future__ import annotations

from . import block_variants, highway_variants, mhc_divided_last, mhc_variants, residual_variants

THEMES = (residual_variants, block_variants, highway_variants, mhc_variants, mhc_divided_last)
