"""``swsearch engines``: a list of the engines, whether each is built and usable on this machine, and the reason."""

from __future__ import annotations


def engines() -> None:
    """Show which engines are built, which can be used here, and what would mend a "no".

    Example: swsearch engines
    """
    from swsearch.engine.registry import engine_infos

    infos = engine_infos()
    for info in infos:
        state = "usable" if info.usable else "built, not usable here" if info.built else "not built"
        print(f"{info.name:<10} {state:<24} {info.detail if info.usable else info.reason}")
    print(f"{'auto':<10} {next(info.name for info in infos if info.usable)}")
