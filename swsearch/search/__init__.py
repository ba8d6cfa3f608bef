"""The search: from queries and a database to the exact top N, with E-values and alignments.

:func:`swsearch.search.searcher.open_searcher` opens a database and an engine. :meth:`Searcher.search
<swsearch.search.searcher.Searcher.search>` takes queries and yields a :class:`~swsearch.hits.result.QueryResult` for
each, in their order. The command line, the Python interface, and the workers of a service and of a cluster all call it.
The way of a query::

    record  ->  frames, with their profiles       masked and corrected, on each strand or in each reading frame
            ->  prepared query                    with its threshold: how deep the search looks
            ->  batch  ->  engine  ->  scores     all subjects, or those that reach the threshold
            ->  candidates                        one score for each subject, and its E-value
            ->  alignments  ->  ranked hits       the list ends where its limits say (swsearch.hits.limits)

====================  ====================================================================================
module                holds
====================  ====================================================================================
*what is searched*
``options``           :class:`SearchOptions`
``queries``           the queries of a run from files, memory or a database; what a search requires of them
``search_subjects``   the subjects that pass the filters, translated if they have to be
*the steps*
``planned_search``    what all queries of a search share, whoever scores them
``searcher``          the loop over batches of queries, with an open engine
``frames``            the strands and frames of a query, with their profiles
``threshold``         how deep the search of a query looks; nothing else decides it
``score_batches``     scores from the engine, for several queries at once
``significance``      bit scores and E-values
``ranking``           the ranked list of subjects, and the hits
``alignments``        the alignments of the best subjects
*where they are needed*
``chaining``          alignments of one subject that are the exons of a gene, and their common E-value
``rescoring``         Forward scores of the candidates of a sensitive search, and their E-values
``rounds``            iterated searches: each round searches with a profile of the hits of the round before
``slices``            slices of a database, and how their results become those of the whole
``simulation``        λ and K of scoring schemes without published ones
``score_check``       whether the scores follow the statistics, for each query or the whole run
====================  ====================================================================================
"""
