"""The CUDA engine: the kernels of ``cuda/``, launched through PyCUDA.

Inputs are query profiles and partitions of the packed database, or pairs of sequences. Outputs are scores and end
positions of subjects, or scores, ends and paths of pairs.

=============  =======================================================================================
package        holds
=============  =======================================================================================
``runtime``    the device: its presence, its start, compiled kernels, memory, streams, launches
``search``     the scores of a database: plans, batches in flight, :class:`CudaEngine`, several GPUs
``pairs``      the backends for pairs of sequences: diamonds for long pairs, short pairs
``history``    the kernels of CUDASW++ 2.0 and of the wavefront of 2009, for comparison
=============  =======================================================================================

``search`` uses ``pairs`` for queries of many thousand rows; both use ``runtime``, which uses neither. PyCUDA is
imported when a device is opened, and cuda-bindings when a kernel must be compiled, not before.
"""
