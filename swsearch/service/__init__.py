"""The search service: a web process, worker processes that search, and the store between them.

A search that arrives over HTTP becomes rows of the store (:mod:`swsearch.store.searches`). A worker takes queries under
a lease, searches them and commits each with its hits as a query of a stored run. Processes share nothing but the store;
what they tell each other besides only saves time. ``docs/design/service.md`` has a picture.

``settings``         what a server is started with: databases, store, address, limits
``databases``        the databases by name, and the generation that each has now
``submit``           a request as it was sent becomes a search, or is refused with the reason
``service``          the searches, results and links of an owner, for the API, the pages and the protocols
``asgi``             the FastAPI application
``json_api``         the API, with its ``api_models``
``pages``            pages for browsers
``protocols``        interfaces of other services
``guard``            who sent a request, and limits; ``proxies`` and ``bodies`` serve it
``domain_finder``    the domains of queries, for their pages
``hub``              who waits for a change of a search
``worker``           takes, searches and commits queries; ``searcher_cache`` has its engine and databases
``worker_processes`` the workers that a server starts
``server``           `swsearch serve`: socket, web process, and its worker process
``client``           `swsearch.Client`
"""
