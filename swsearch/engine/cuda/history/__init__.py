"""The kernels of the sources (``docs/sources.md``), which ``swsearch bench kernels`` measures beside those of today.

No search uses them, and their results are those of every other engine.

=============  =======================================================================================
module         holds
=============  =======================================================================================
``cudasw2``    an engine with the kernels of CUDASW++ 2.0 (2010)
``wavefront``  the pair backend for global scores in a wavefront of blocks (2009), also ``align --kernel``
=============  =======================================================================================
"""
