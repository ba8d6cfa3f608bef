"""The CUDA engine: the kernels of ``cuda/``, compiled at run time and driven by PyCUDA.

======================  ==============================================================================
module                  holds
======================  ==============================================================================
``kernels``             kernels by their compile-time constants; tiles, and how a strip lies in memory
``profile``             query profiles as the words a tile reads
``tuning``              tiles by architecture and what they cost, from ``cuda/tuning/``
``layout``              how the rows of a query, or of two, are cut into strips
``compiler``            nvcc or NVRTC, and the cache of compiled kernels on disk
``device``              one GPU: memory, streams, texture objects, launches
``subjects``            the database on the device, kept or streamed
``plan``                how a query is scored: type, strips, pairs, who goes where
``engine``              :class:`CudaEngine`, one GPU
``packed``              packed profiles on the host, made while kernels run
``devices``             :class:`CudaDevices`, one GPU or several, each in a thread of its own
``ends``                where the alignments of scored subjects end
``forecast``            what a search is going to be, before it begins
``wake``                GPUs that start beside the program
``classic``             the kernels of CUDASW++ 2.0 as an engine
``pairs``               many short pairs at once
``wavefront``           one pair in a wavefront of tiles
``presence``            whether there is a GPU at all, asked without PyCUDA
``info``                whether it can be used here, and why not
======================  ==============================================================================

PyCUDA and cuda-bindings are imported when a device is opened, not before.
"""
