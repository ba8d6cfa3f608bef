"""The scores of a database on GPUs: from score requests and a partition to score blocks.

The way of a call: ``multi_gpu`` distributes it over the devices; on each device an ``engine`` makes a ``plan``,
loads the ``subjects``, and keeps several batches in flight (``batch_run``).

=====================  ===============================================================================
module                 holds
=====================  ===============================================================================
*the plan*
``plan``               the plan of an engine call: which kernel scores which subjects, and why; its options
                       and the expected time
``planner``            makes the plan: pairs of queries, score types, the cheapest strips; the plans of batches of
                       the same shape are made once
``tiles``              tiles by architecture with their measured times, from ``cuda/tuning/``; the kernels that a
                       search may launch
*queries and subjects*
``subjects``           the database on the device, either cached or streamed
*the launches*
``slots``              the memory of a batch in flight, and query profiles as the kernels read them
``launches``           the launches of the kernels for listed subjects, and those of subjects that would end last, whole
                       or in windows, with warps of their own
``batch_run``          the launches of one batch, a bound that may take the place of scores included, and its results
``selection``          which scores are copied back from the device
``windows``            long subjects cut into windows that overlap by what an alignment can span; those of a genome
                       gathered as subjects of the inter-task kernel
``end_positions``      the end positions of the best alignments of scored subjects
``forward``            Forward scores of the candidates of a sensitive search, in threads of their own
*the engines*
``engine``             :class:`CudaEngine`, one GPU, with several batches in flight; the calls that it scores
``multi_gpu``          :class:`CudaDevices`, one or several GPUs, each driven by its own thread
=====================  ===============================================================================
"""
