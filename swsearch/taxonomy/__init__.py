"""The taxonomic tree of NCBI, and the organisms of sequences.

=================  ==================================================================================
module             content
=================  ==================================================================================
``dump``           NCBI's taxdump as files, read by ``dump_lines``
``tree``           :class:`~swsearch.taxonomy.tree.Taxonomy`: names, ranks, lineages, common ancestors
``texts``          columns of names
``layout``         the arrays of a tree in files, which ``packed`` converts
``cache``          taxdumps that were read, as such files
``sources``        which tree counts: of an option, of the database, or of the environment
``assignment``     the ids of sequences, from headers or a map
``subjects``       the organisms of subjects, for reports
``notes``          messages about ids that are not current
=================  ==================================================================================
"""
