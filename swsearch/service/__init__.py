"""The search service: a web process, worker processes that search, and the store between them.

A search that arrives over HTTP becomes rows of the store (:mod:`swsearch.store.searches`). A worker takes queries under
a lease, searches them and commits each with its hits as a query of a stored run. Processes share nothing but the store;
what they tell each other besides only saves time. ``docs/design/service.md`` has a picture.

``settings``   what a server is started with: databases, store, address, limits
``databases``  the databases by name, and the generation that each has now
``requests``   a request as it was sent becomes a search, or is refused with the reason
``worker``     takes, searches and commits queries
``web``        FastAPI application: API, pages, log, metrics
``server``     `swsearch serve`: socket, web process, and its worker process
``client``     `swsearch.Client`
"""
