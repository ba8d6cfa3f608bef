"""The description of the service's API (OpenAPI), as it was accepted: ``openapi.json`` of this folder."""

import json
import tempfile
from pathlib import Path
from typing import Final

from swsearch.service.settings import Settings

NAME: Final = "openapi"
"""The name by which ``python -m tests.golden`` knows it."""
PATH: Final = Path(__file__).parent / f"{NAME}.json"


def api_description() -> str:
    """The description that a server with tokens gives now; the version of the program is replaced by a word."""
    from swsearch.service.asgi import create_app

    with tempfile.TemporaryDirectory() as folder:
        app = create_app(Settings({}, str(Path(folder, "hits.sqlite")), tokens_required=True))
        described = app.openapi()
        app.state.service.close()
    described["info"]["version"] = "VERSION"
    return json.dumps(described, indent=1, sort_keys=True) + "\n"
