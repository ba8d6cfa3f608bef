"""The taxonomic tree of NCBI, and the organisms of sequences.

=================  ==================================================================================
module             content
=================  ==================================================================================
``dump``           NCBI's taxdump as files
``tree``           :class:`~swsearch.taxonomy.tree.Taxonomy`: names, ranks, lineages, common ancestors
``tree_arrays``    columns of names, and the arrays of a tree in files
``cache``          taxdumps that were read, as such files
``assignment``     the ids of sequences, from headers or a map
``subject_taxa``   the organisms of subjects: which tree counts, and messages about ids
``taxon_filter``   the subjects of some organisms
``counts``         counts of what was assigned to taxa
=================  ==================================================================================
"""
