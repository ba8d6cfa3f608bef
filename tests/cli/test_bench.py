"""``swsearch bench`` prints a line for each measurement and refuses what it cannot measure."""


def test_every_length_set_and_thread_count_is_measured(swsearch):
    outcome = swsearch("bench", "--residues", 3000, "--lengths", "10,20", "--threads", "1,2")
    lines = outcome.out.splitlines()
    assert outcome.code == 0
    assert lines[0].split()[:2] == ["query", "program"]
    assert [line.split()[:5:3] for line in lines[1:]] == [[n, t] for n in ("10", "20") for t in ("1", "1", "2", "2")]
    assert all(float(line.split()[-1]) > 0 for line in lines[1:])


def test_what_cannot_be_measured_is_one_clear_line(swsearch):
    assert "whole numbers of at least 1" in swsearch("bench", "--lengths", "10,x").error
    assert "choose pyopal or swipe" in swsearch("bench", "--peer", "bowtie").error
    assert "'mmx' is not among" in swsearch("bench", "--residues", 100, "--instruction-sets", "mmx").error
