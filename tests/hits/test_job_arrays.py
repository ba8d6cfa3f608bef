"""The share of a task of a job array. The variables are those that the schedulers' manuals and sources name; for Slurm,
tests/examples also runs real arrays. The expected shares are worked out by hand."""

import pytest

from swsearch.errors import InputError
from swsearch.hits.shards import Shard, asked_shard


def slurm(task, first=1, last=8, step=1, count=8):
    names = ("ID", "MIN", "MAX", "STEP", "COUNT")
    values = (task, first, last, step, count)
    return {f"SLURM_ARRAY_TASK_{name}": str(value) for name, value in zip(names, values, strict=True)}


def lsf(task, last="8", step="1"):
    return {"LSB_JOBINDEX": task, "LSB_JOBINDEX_END": last, "LSB_JOBINDEX_STEP": step}


def grid_engine(task, first="1", last="8", step="1"):
    return {"SGE_TASK_ID": task, "SGE_TASK_FIRST": first, "SGE_TASK_LAST": last, "SGE_TASK_STEPSIZE": step}


@pytest.mark.parametrize(
    ("environment", "share"),
    [
        (slurm(3), Shard(3, 8)),
        (slurm(0, first=0, last=7), Shard(1, 8)),
        (slurm(7, first=0, last=7), Shard(8, 8)),
        (slurm(5, last=7, step=2, count=4), Shard(3, 4)),
        (lsf("8"), Shard(8, 8)),
        (lsf("7", step="3"), Shard(3, 3)),
        ({"LSB_JOBINDEX": "2", "LSB_JOBINDEX_END": "4"}, Shard(2, 4)),
        (grid_engine("201", last="1000", step="100"), Shard(3, 10)),
        ({**slurm(3), "PBS_ARRAY_INDEX": "3"}, Shard(3, 8)),
        ({**slurm(3), "LSB_JOBINDEX": "0", "SGE_TASK_ID": "undefined"}, Shard(3, 8)),
    ],
)
def test_auto_is_the_place_of_the_task_in_its_array(environment, share):
    assert asked_shard("auto", environment) == share


@pytest.mark.parametrize(
    "environment", [slurm(3, first=3, last=3, count=1), lsf("3", last="3"), grid_engine("3", first="3", last="3"),
                    {"PBS_ARRAY_INDEX": "3"}, {"PBS_ARRAYID": "3"}]
)  # fmt: skip
def test_auto_with_a_number_of_shares_is_the_number_of_the_task(environment):
    """Also if task 3 of an array of 8 is the only one that was submitted again."""
    assert asked_shard("auto/8", environment) == Shard(3, 8)


@pytest.mark.parametrize(
    ("environment", "problem"),
    [
        ({}, "not a task of a job array (none of SLURM_ARRAY_TASK_ID, LSB_JOBINDEX, SGE_TASK_ID, PBS_ARRAY_INDEX"),
        (lsf("0", last="0", step="0"), "this is not a task of a job array"),
        (grid_engine("undefined", "undefined", "undefined", "undefined"), "this is not a task of a job array"),
        ({"PBS_ARRAY_INDEX": "3"}, "PBS does not tell how many tasks an array has; number the tasks from 1 and give"),
        ({"PBS_ARRAYID": "3"}, "Torque does not tell how many tasks an array has"),
        ({"SLURM_ARRAY_TASK_ID": "3"}, "SLURM_ARRAY_TASK_MAX is not set; give the shard, such as --shard 3/8"),
        ({**slurm(3), "SLURM_ARRAY_TASK_COUNT": "many"}, "SLURM_ARRAY_TASK_COUNT is 'many', not a number"),
        ({"SGE_TASK_ID": "-1"}, "SGE_TASK_ID is '-1', not a number"),
        # sbatch --array=3,5 and --array=3-5 of an array of 8: tasks that are submitted again
        (slurm(5, first=3, last=5, count=2), "task 5 of an array from 3 to 5, step 1; number the tasks from 1 and"),
        (slurm(5, first=3, last=5, count=3), "which also holds for tasks submitted again"),
        (slurm(7, last=7, count=3), "array from 1 to 7, step 1, which are not all of its tasks"),
        (slurm(9), "task 9 of an array from 1 to 8, step 1, which are not all of its tasks"),
        (grid_engine("2", step="2"), "which are not all of its tasks"),
    ],
)  # fmt: skip
def test_what_is_no_complete_array_is_refused(environment, problem):
    with pytest.raises(InputError) as refused:
        asked_shard("auto", environment)
    assert str(refused.value).startswith("--shard auto: ")
    assert problem in str(refused.value)


@pytest.mark.parametrize("task", ["0", "9"])
def test_a_number_beyond_the_shares_is_refused(task):
    with pytest.raises(InputError, match=f"PBS_ARRAY_INDEX is {task}, and the shards are 1 to 8; number the tasks"):
        asked_shard("auto/8", {"PBS_ARRAY_INDEX": task})


@pytest.mark.parametrize("text", ["auto/", "auto/0", "auto/x", "auto/-8", "automatic"])
def test_other_words_are_refused(text):
    with pytest.raises(InputError, match="auto"):
        asked_shard(text, slurm(3))
