"""The list of engines: this module reports which of them can be used on this machine, and opens an engine by name."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Final

from swsearch.arguments import choice, flag, whole_number
from swsearch.engine.cuda.runtime.presence import GpuProbe, look_for_gpus, warm_up
from swsearch.errors import EngineUnavailable, InputError, WrongType
from swsearch.threads import check_threads, threads_to_use
from swsearch.words import option

if TYPE_CHECKING:  # NumPy is imported while GPUs start
    from swsearch.engine.protocol import EngineInfo, ScoreEngine

ENGINES: Final = ("auto", "cuda", "cpu", "reference")
GPU_START_SECONDS: Final = 0.5
GPU_CELLS_PER_SECOND: Final = 3e12
CPU_CELLS_PER_SECOND: Final = 2e10
"""The time by which the start of a GPU delays a search, and cells per second of a GPU and of one core, from which
``auto`` predicts the time of a search. They are of the order of what was measured, with the bound, on a data-centre GPU
and on cores with AVX2 or AVX-512."""


@dataclass(frozen=True)
class Machine:
    """What a search uses of a machine. No result depends on it.

    Attributes
    ----------
    engine : str
        One of :data:`ENGINES`; ``auto`` denotes the first engine that can be used and suits the search.
    threads : int, optional
        CPU threads, at least 1; by default one per core that this process may use, in a cluster the worker's share.
    devices : sequence of int, optional
        CUDA numbers of the GPUs that the CUDA engine uses, each once; by default the first GPU. The other engines do
        not accept devices.
    bound : bool
        Whether the engine may exclude subjects below a score threshold by an upper bound of their scores.
    partition_residues : int, optional
        Residues that the engine gets at a time, at least 1, by default all. It affects memory and the frequency of
        progress.

    Raises
    ------
    InputError
        ``partition_residues`` is out of range.
    WrongType
        ``bound`` is not a truth value, or ``partition_residues`` is not a whole number.
    """

    engine: str = ENGINES[0]
    threads: int | None = None
    devices: Sequence[int] | None = None
    bound: bool = True
    partition_residues: int | None = None

    def __post_init__(self) -> None:
        flag("bound", self.bound)
        residues = self.partition_residues
        if residues is not None and whole_number("partition_residues", residues) < 1:
            raise InputError(f"{option('partition_residues', residues)}: at least 1 residue is needed")

    @property
    def n_threads(self) -> int:
        """The number of CPU threads; raises :class:`InputError` if ``threads`` is out of range."""
        return threads_to_use(self.threads)

    def gpu_is_faster(self, cells: int) -> bool:
        """Whether a search of this number of cells is predicted to end earlier on a GPU, its start included."""
        on_cpu = cells / (CPU_CELLS_PER_SECOND * self.n_threads)
        return GPU_START_SECONDS + cells / GPU_CELLS_PER_SECOND < on_cpu

    def warm_up_gpus(self, cells: int) -> bool:
        """Initialize in the background the GPUs that :func:`open_engine` is going to use; whether there are any."""
        wanted = self.engine == "cuda" or (self.engine == "auto" and self.gpu_is_faster(cells))
        if not wanted or importlib.util.find_spec("pycuda") is None:
            return False
        warm_up(self.devices or (0,))
        return True


ANY_MACHINE: Final = Machine()
"""The best engine of this machine."""
ONE_THREAD: Final = Machine(threads=1)
"""The machine of a caller that names none: its thread may be one of several."""


def engine_infos() -> list[EngineInfo]:
    """Whether each engine can be used on this machine, in the order in which ``auto`` tries them."""
    from swsearch.engine.cpu.engine import cpu_info
    from swsearch.engine.cuda.runtime.pycuda_device import cuda_info
    from swsearch.engine.reference import reference_info

    return [cuda_info(), cpu_info(), reference_info()]


def open_engine(machine: Machine, cells: int | None = None) -> tuple[ScoreEngine, str]:
    """Open the engine of ``machine``; return it with a sentence that names it and the reason.

    If ``auto`` does not use a GPU although there is one, or although PyCUDA is installed, the sentence gives the
    reason; otherwise it does not mention GPUs. If the search has few ``cells``, ``auto`` does not start a GPU.

    Raises
    ------
    InputError
        There is no engine of that name, the engine does not support these devices, or ``threads`` is out of range.
    EngineUnavailable
        The named engine cannot be used on this machine.
    """
    name, threads, bound = machine.engine, machine.threads, machine.bound
    choice("engine", name, ENGINES)
    if threads is not None:
        check_threads(threads)
    named = machine.devices is not None
    devices = (0,) if machine.devices is None else machine.devices
    if isinstance(devices, Iterable) and not isinstance(devices, (str, bytes, bytearray)):
        devices = list(devices)
    if not isinstance(devices, list | tuple) or not all(isinstance(device, Integral) for device in devices):
        raise WrongType(f"{option('devices', devices)}: give a list of CUDA numbers, such as [0, 1]")
    if not devices or len(set(devices)) < len(devices) or min(devices) < 0:
        raise InputError(f"{option('devices', devices)}: name at least one device by its CUDA number, and each once")
    if named and name in ("cpu", "reference"):
        advice = f"leave it out, or give {option('engine', 'cuda')}"
        raise InputError(f"{option('devices', devices)}: the {name} engine uses no GPU; {advice}")
    gpus = look_for_gpus()
    if name == "reference" and not bound:
        raise InputError(
            f"{option('bound', False, flag='--no-bound')}: the reference engine uses no bound; leave it out"
        )
    if name != "auto":
        engine, detail = open_named(name, threads, devices, gpus, bound=bound)
        return engine, f"{name} engine ({detail}), as asked"
    passed_over: list[str] = []
    for candidate in (engine for engine in ENGINES if engine != "auto"):
        if candidate == "cuda":
            if cells is not None and not machine.gpu_is_faster(cells):
                if gpus.plugged_in and gpus.pycuda:  # known without starting the driver
                    passed_over.append("cuda: the search takes less time than the start of a GPU")
                continue
            if not gpus.expected and not named:
                continue
        try:
            engine, detail = open_named(candidate, threads, devices, gpus, bound=bound)
        except EngineUnavailable as error:
            passed_over.append(f"{candidate}: {error.reason}")
            continue
        why = f"; not {', '.join(passed_over)}" if passed_over else ""
        return engine, f"{candidate} engine ({detail}){why}"
    raise EngineUnavailable("auto", "; ".join(passed_over))


def open_named(
    name: str, threads: int | None, devices: Sequence[int], gpus: GpuProbe, *, bound: bool = True
) -> tuple[ScoreEngine, str]:
    """Open one engine; return it with a description of the hardware on which it runs.

    A GPU is opened only once, because opening takes most of the time of a short search.
    """
    if name == "cuda":
        if gpus.missing:  # before modules that need a GPU are loaded
            raise EngineUnavailable("cuda", gpus.missing)
        from swsearch.engine.cuda.runtime.pycuda_device import PyCudaDevice
        from swsearch.engine.cuda.search.multi_gpu import CudaDevices
        from swsearch.engine.cuda.search.plan import PlanOptions

        cuda = CudaDevices(devices, PyCudaDevice, options=PlanOptions(band_rows=None if bound else 0))
        return cuda, cuda.description
    if name == "cpu":
        from swsearch.engine.cpu.engine import CpuEngine, cpu_info

        return CpuEngine(threads, band_rows=None if bound else 0), cpu_info().detail
    from swsearch.engine.reference import ReferenceEngine, reference_info

    return ReferenceEngine(), reference_info().detail
