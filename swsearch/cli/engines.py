"""``swsearch engines``: a list of the engines, whether each is built and usable on this machine, and the reason."""

from __future__ import annotations

from swsearch.cli import options


def engines(format_name: options.TableFormat = "table") -> None:
    """Show which engines are built, which can be used here, and what would mend a "no".

    Example: swsearch engines

    Example: swsearch engines --format json
    """
    from swsearch.engine.registry import engine_infos

    infos = engine_infos()
    if format_name == "json":
        from swsearch.cli.documents import describe_engines, write_document

        write_document(describe_engines(infos))
        return
    for info in infos:
        state = "usable" if info.usable else "built, not usable here" if info.built else "not built"
        print(f"{info.name:<10} {state:<24} {info.detail if info.usable else info.reason}")
    print(f"{'auto':<10} {next(info.name for info in infos if info.usable)}")
