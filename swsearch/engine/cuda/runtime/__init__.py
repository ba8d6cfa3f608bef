"""The device of the CUDA engine: its presence, its start, compiled kernels, memory and launches.

=====================  ===============================================================================
module                 holds
=====================  ===============================================================================
``presence``           whether this machine has a usable NVIDIA GPU, and its start beside the program's, without PyCUDA
``kernels``            the kernels with their compile-time constants; the layout of a tile
``compiler``           what determines a kernel's code, and NVRTC, which compiles what the package does not contain
``compiled_kernels``   the compiled kernels that a device loads: those of the package, and their cache on disk
``parameters``         the parameters of kernels, as one structure each
``device``             the interface of a GPU: memory, streams, texture objects, launches; buffers, times
``pycuda_device``      its implementation with PyCUDA; whether the engine can be used here, and why not
=====================  ===============================================================================
"""
