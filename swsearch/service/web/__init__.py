"""The web process: the application (``app``), its API (``api``), and the browser pages (``pages``).

It never imports an engine. Everything that it knows about searches is in the store.
"""
