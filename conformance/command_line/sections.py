"""Help in sections: the options of a command that has many, under headings."""

from __future__ import annotations

import click

#: The headings, each with the options under it by the names of their parameters. Commands share them.
SECTIONS = {
    "What is judged": (
        "ops", "framework", "dtypes", "dtype", "device", "binding", "all_bindings", "mode", "forward_only",
        "conventions", "profile", "seed", "seeds", "slow", "only", "require",
    ),
    "Layers, and functions that lack arguments": ("parameters", "layout", "fixed", "layers"),
    "How it runs": (
        "pythons", "time_limit", "memory_limit", "jobs", "cluster", "cache_dir", "no_cache", "resume", "config",
    ),
    "Counterexamples": ("replay", "reproduce"),
    "What is written": (
        "json_file", "html_file", "junit_file", "markdown_file", "against", "write_expected", "form",
    ),
}  # fmt: skip


class SectionedCommand(click.Command):
    """A command whose help lists its options in sections; those that stand in no section come last."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options."""
        shown = {one.name: record for one in self.get_params(ctx) if (record := one.get_help_record(ctx)) is not None}
        sections = [(title, [shown.pop(name) for name in names if name in shown]) for title, names in SECTIONS.items()]
        for title, records in (*sections, ("Other options", list(shown.values()))):
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)
