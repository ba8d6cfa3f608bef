"""The taxonomic tree of NCBI, and the organisms of sequences.

=================  ==================================================================================
module             content
=================  ==================================================================================
``tree``           :class:`~swsearch.taxonomy.tree.Taxonomy`: names, ranks, lineages, common ancestors,
                   and the arrays of a tree in files
``dump``           NCBI's taxdump as files, and the cache of those that were read
``assignment``     the ids of sequences, from headers or a map
``subject_taxa``   the organisms of subjects: which tree counts, messages about ids, counts of taxa
``taxon_filter``   the subjects of some organisms
=================  ==================================================================================
"""
