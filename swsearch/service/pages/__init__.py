"""The browser pages of the search service, made on the server with Jinja2; htmx replaces parts of them.

Every page works without scripts: links lead to whole pages, and each address that htmx asks for a part also answers
with the whole page. :data:`swsearch.service.pages.routes.router` has them all.

``searches``   searches and stored runs by the references in addresses; the same by ``curl`` and Python
``form``       the search form: fields made from the options of a search, errors beside fields, sequences to try
``results``    a run, its queries, one page of its hits, and their organisms, as templates show them
``figures``    SVG of score distribution and coverage; the overview is that of the ``html`` report
``templating`` environment of the templates, static files
``routes``     the addresses
"""
