"""Works are interleaved, and prepared outside of what is timed."""

from bench.timing import Contender, interleaved, median_difference


class Cpu:
    """CPU time that only the works spend."""

    def __init__(self):
        self.now_ns = 0
        self.log = []

    def spend(self, name, duration_ns):
        def work():
            self.log.append(name)
            self.now_ns += duration_ns

        return work

    def __call__(self):
        return self.now_ns


def test_each_round_runs_every_work_and_begins_with_another():
    cpu = Cpu()
    works = {name: Contender(cpu.spend(name, 1)) for name in "abc"}
    interleaved(works, range(3), cpu)
    assert "".join(cpu.log) == "abcbcacab"


def test_preparation_is_not_timed():
    cpu = Cpu()
    works = {"a": Contender(cpu.spend("a", 5), cpu.spend("prepare a", 1_000))}
    assert interleaved(works, range(2), cpu) == {"a": [5, 5]}
    assert cpu.log == ["prepare a", "a"] * 2


def test_differences_are_taken_within_a_round():
    assert median_difference([11, 105, 1_009], [1, 100, 1_000]) == 9
