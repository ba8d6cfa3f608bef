"""The CUDA engine: the kernels of ``cuda/``, compiled at run time and launched through PyCUDA.

Inputs are query profiles and partitions of the packed database, or pairs of sequences. Outputs are scores and end
positions of subjects, or scores, ends and paths of pairs.

=========================  ===========================================================================
module                     holds
=========================  ===========================================================================
*the device*
``presence``               whether this machine has a usable NVIDIA GPU, found without PyCUDA
``warm_up``                the creation of GPU contexts while the program starts
``info``                   whether the engine can be used here, and why not
``compiler``               nvcc or NVRTC, and the cache of compiled kernels on disk
``parallel_compile``       the concurrent compilation of several kernels
``device``                 one GPU: memory, streams, texture objects, launches
``scratch``                device buffers by name, reused from launch to launch
``slots``                  the memory of a batch in flight
*tiles and plans*
``kernels``                the kernels with their compile-time constants; the layout of a tile
``tuning``                 tiles by architecture with their measured times, from ``cuda/tuning/``
``layout``                 the cheapest strips for one query, or for two that share words
``plan``                   score types, pairs of queries, warps per subject
``search_plan``            the plan of an engine call: which kernel scores which subjects, and why
``thresholds``             the sizes at which the engine changes its method
*queries and subjects*
``profile``                query profiles as the kernels read them
``profile_cache``          packed profiles on the host, prepared while kernels run
``subjects``               the database on the device, either cached or streamed
*scores*
``launches``               the parts that all launches share; the launch of the kernel for listed subjects
``batch_run``              the launches of one batch, and its results
``engine``                 :class:`CudaEngine`, one GPU
``selection``              which scores are copied back from the device
``verified_windows``       scores of long subjects from overlapping windows, proven exact
``tiled_subjects``         scores of long subjects by diamonds, for queries of many thousand rows
``end_positions``          the end positions of the best alignments of scored subjects
``devices``                :class:`CudaDevices`, one or several GPUs, each driven by its own thread
``forecast``               the plan and the expected time of a search
``cudasw2``                an engine with the kernels of CUDASW++ 2.0, for comparison
*pairs*
``diamonds``               best scores, ends and paths of pairs, computed by diamonds
``diamond_plan``           the shape of strips and diamonds, and the layout of the letters of pairs
``diamond_launch``         the device memory and the launches of a sweep
``diamond_checkpoints``    the lowest rows and lane states that strips save for a path
``diamond_paths``          the traceback of a pair from these checkpoints
``diamond_pairs``          the pair backend for long pairs
``short_pairs``            the pair backend for batches of short pairs
``wavefront``              the pair backend for global scores in a wavefront of tiles
=========================  ===========================================================================

PyCUDA and cuda-bindings are imported when a device is opened, not before.
"""
