"""The CUDA engine: the kernels of ``cuda/``, compiled at run time and launched through PyCUDA.

=========================  ===========================================================================
module                     holds
=========================  ===========================================================================
*the device*
``presence``               whether this machine has a usable NVIDIA GPU, found without PyCUDA
``warm_up``                GPU contexts created while the program starts
``info``                   whether the engine can be used here, and why not
``compiler``               nvcc or NVRTC, and the cache of compiled kernels on disk
``parallel_compile``       kernels compiled side by side
``device``                 one GPU: memory, streams, texture objects, launches
``scratch``                device buffers by name, reused from launch to launch
*tiles and plans*
``kernels``                kernels with their compile-time constants; the layout of a tile
``tuning``                 tiles by architecture with their measured times, from ``cuda/tuning/``
``layout``                 the cheapest strips for one query, or for two that share words
``plan``                   score type, pairs of queries, and which kernel scores which subject
``batch_kernels``          the kernels that batches of queries need, known before the first launch
``thresholds``             the sizes at which the engine changes its method
*queries and subjects*
``profile``                query profiles as the kernels read them
``profile_cache``          packed profiles on the host, prepared while kernels run
``subjects``               the database on the device, kept or streamed
*scores*
``launches``               what launches share, and the launch of the kernel for listed subjects
``engine``                 :class:`CudaEngine`, one GPU
``selection``              which scores are copied back from the device
``verified_windows``       long subjects in overlapping windows whose scores are proven
``tiled_subjects``         long subjects by diamonds, for queries of many thousand rows
``end_positions``          the end positions of the best alignments of scored subjects
``devices``                :class:`CudaDevices`, one GPU or several, each driven by its own thread
``forecast``               the layout and the expected time of a search
``cudasw2``                the kernels of CUDASW++ 2.0 as an engine
*pairs*
``diamonds``               best scores, ends and paths of pairs by diamonds
``diamond_plan``           strips, diamonds and letters of pairs
``diamond_launch``         device memory and launches of a sweep
``diamond_checkpoints``    lowest rows and lane states that strips save for a path
``diamond_paths``          the path of a pair from these checkpoints
``diamond_pairs``          the pair backend for long pairs
``short_pairs``            the pair backend for batches of short pairs
``wavefront``              the pair backend for global scores in a wavefront of tiles
=========================  ===========================================================================

PyCUDA and cuda-bindings are imported when a device is opened, not before.
"""
