"""Learners in files: written whole by any number of writers, read with suspicion."""

from __future__ import annotations

import io
import json
import os
import stat
import subprocess
import sys
import textwrap
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fliptron
from conftest import FAMILIES, LEARNERS
from fliptron import (
    RCINE,
    RCNBF,
    Banditron,
    Fliptron,
    InputError,
    Learner,
    LeastMeanSquares,
    RidgeRegression,
    simulate,
)
from fliptron.output import whole_file, write_whole


def changed(path: Any, **arrays: Any) -> Any:
    """The file with some of its members replaced, as an attacker or a broken disk would."""
    with np.load(path) as file:
        members = dict(file) | {name: np.asarray(array) for name, array in arrays.items()}
    np.savez(path, **members)
    return path


def about(path: Any, **entries: Any) -> Any:
    with np.load(path) as file:
        told = json.loads(str(file["about"]))
    return changed(path, about=json.dumps(told | entries))


@pytest.fixture
def rcine(tmp_path: Path, digits: Any) -> Any:
    learner = RCINE(n_classes=10, n_features=64, refresh=300)
    simulate(learner, digits, rounds=450)
    learner.save(tmp_path / "rcine.npz")
    return tmp_path / "rcine.npz"


COUNTS = [[100_000, 1, 0], [600, 700, 0], [-1, 450, 0], [10, 5, 0], [2**62, 2**62, 0], [0, -3, 0], [0, 9, 99]]
ODD = [{"params": 3}, {"params": {"n_classes": 3}}, {"rounds": -1}, {"rounds": "many"}, {"rounds": 2**60}]
ODD += [{"layout": "foo"}, {"layout": ["x"]}, {"learner": "shop.Mine"}]


class TestSuspicion:
    @pytest.mark.parametrize("counts", COUNTS)
    def test_a_file_cannot_choose_where_rcine_writes(self, rcine: Any, counts: Any) -> None:
        with pytest.raises(InputError, match="is not a saved RCINE"):
            RCINE.load(changed(rcine, counts=np.array(counts)))

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("label", 10),
            ("label", -1),
            ("greedy", 99),
            ("best", 2**40),
            ("bit", 2),
            ("rates", [0.6, 0.6]),
            ("probability", 0),
        ],
    )
    def test_every_number_of_a_window_is_checked(self, rcine: Any, name: Any, value: Any) -> None:
        with np.load(rcine) as file:
            array = np.array(file[name])
        array[...] = value
        with pytest.raises(InputError):
            RCINE.load(changed(rcine, **{name: array}))

    def test_a_full_window_is_not_written_beyond(self, digits: Any) -> None:
        learner = RCINE(n_classes=10, n_features=64, refresh=300)
        x = digits.X[0]
        for _ in range(310):
            Learner.learn(learner, x, learner.decide(x), 1)  # as interrupts between a step and its settling leave it
        assert learner.state.counts.tolist() == [310, 310, 0]
        learner.learn(x, learner.decide(x), 1)
        assert learner.state.counts.tolist() == [0, 311, 300]
        learner.state.counts[0] = 10**9
        Learner.learn(learner, x, learner.decide(x), 1)
        assert learner.state.counts.tolist() == [10**9, 312, 300]

    def test_factors_and_covariances_must_be_positive(self, tmp_path: Path) -> None:
        for learner, name in (
            (RidgeRegression(n_classes=3, n_features=2), "factor"),
            (Fliptron(n_classes=3, n_features=2), "covariance"),
        ):
            learner.save(tmp_path / "l.npz")
            with pytest.raises(InputError, match="a variance is"):
                Learner.load(changed(tmp_path / "l.npz", **{name: -getattr(learner.state, name)}))

    def test_counts_of_bits_must_be_possible(self, tmp_path: Path) -> None:
        learner = Fliptron(n_classes=3, n_features=2)
        learner.save(tmp_path / "l.npz")
        for at, value in ((1, 5.0), (7, -1.0), (10, 1.0), (12, 1.0), (16, 5.0)):
            counts = learner.state.counts.copy()
            counts[at] = value
            with pytest.raises(InputError, match="is not a saved Fliptron"):
                Learner.load(changed(tmp_path / "l.npz", counts=counts))

    @pytest.mark.parametrize(("kind", "name", "value"), [
        (LeastMeanSquares, "W", 1e308), (RidgeRegression, "W", 1e308), (RidgeRegression, "factor", 1e200),
        (Fliptron, "covariance", 5e-324), (Fliptron, "covariance", 1e-200), (Banditron, "W", 1e200)])  # fmt: skip
    def test_numbers_that_no_update_makes_are_refused(self, kind: Any, name: Any, value: Any, tmp_path: Path) -> None:
        learner = kind(n_classes=3, n_features=2)
        learner.save(tmp_path / "l.npz")
        with pytest.raises(InputError, match="is not a saved"):
            Learner.load(changed(tmp_path / "l.npz", **{name: np.full_like(getattr(learner.state, name), value)}))

    def test_rates_must_be_those_of_the_parameters(self, tmp_path: Path) -> None:
        RCNBF(n_classes=3, n_features=2, rates=(0.2, 0.4)).save(tmp_path / "l.npz")
        with pytest.raises(InputError, match="its rates are not those of its parameters"):
            RCNBF.load(changed(tmp_path / "l.npz", rates=np.array([0.9, 0.9])))

    def test_a_small_file_cannot_take_much_memory(self, tmp_path: Path) -> None:
        path = tmp_path / "bomb.npz"
        Banditron(n_classes=3, n_features=2).save(path)
        with np.load(path) as file:
            members = dict(file)
        members["W"] = np.zeros((2**14, 2**14))  # two gigabytes of nothing
        np.savez_compressed(path, **members)
        assert path.stat().st_size < 4 * 2**20
        code = f"""
            import resource
            from fliptron import Banditron
            Banditron(n_classes=3, n_features=2).warm_up()
            used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            try:
                Banditron.load({str(path)!r})
            except ValueError as refusal:
                print(refusal)
            assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - used < 100_000
        """
        told = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True, capture_output=True, text=True)
        assert "is not a saved learner" in told.stdout

    def test_parameters_cannot_ask_for_more_than_the_file_holds(self, tmp_path: Path) -> None:
        path = tmp_path / "l.npz"
        RidgeRegression(n_classes=3, n_features=7000 // 100).save(path)
        params = RidgeRegression(n_classes=3, n_features=70).params
        about(path, params=params | {"n_features": 7000})
        with pytest.raises(InputError, match="misshapen"):
            RidgeRegression.load(path)
        changed(path, W=np.zeros((3, 7000)))
        with pytest.raises(InputError, match=r"needs 1\.1 GiB; at most"):
            RidgeRegression.load(path)

    @pytest.mark.parametrize("where", [0.05, 0.3, 0.6, 0.95])
    def test_any_damage_is_refused_or_harmless(self, tmp_path: Path, where: Any) -> None:
        """Bytes turned around at 40 places in each part of a file: never anything but a refusal or a whole learner."""
        learner = Fliptron(n_classes=3, n_features=4)
        learner.save(tmp_path / "l.npz")
        content = (tmp_path / "l.npz").read_bytes()
        random = np.random.default_rng(int(100 * where))
        for _ in range(40):
            at = min(int((where + 0.2 * random.random()) * len(content)), len(content) - 1)
            damaged = bytearray(content)
            damaged[at] ^= int(random.integers(1, 256))
            (tmp_path / "d.npz").write_bytes(bytes(damaged))
            try:
                again = Fliptron.load(tmp_path / "d.npz")
            except InputError:
                continue
            again.learn(np.ones(4), again.decide(np.ones(4)), 1)
            assert np.isfinite(again.weights).all()

    @pytest.mark.parametrize("entries", ODD)
    def test_odd_descriptions_are_refused(self, tmp_path: Path, entries: Any) -> None:
        Banditron(n_classes=3, n_features=2).save(tmp_path / "l.npz")
        with pytest.raises(InputError):
            Banditron.load(about(tmp_path / "l.npz", **entries))

    def test_pickles_are_never_opened(self, tmp_path: Path) -> None:
        class Bad:
            def __reduce__(self) -> Any:
                return os.system, ("exit 1",)

        Banditron(n_classes=3, n_features=2).save(tmp_path / "l.npz")
        with zipfile.ZipFile(tmp_path / "l.npz") as old:
            members = {name: old.read(name) for name in old.namelist()}
        content = io.BytesIO()
        np.save(content, np.array([Bad()], dtype=object), allow_pickle=True)
        members["W.npy"] = content.getvalue()
        with zipfile.ZipFile(tmp_path / "l.npz", "w") as new:
            for name, data in members.items():
                new.writestr(name, data)
        with pytest.raises(InputError, match="is not a saved"):
            Banditron.load(tmp_path / "l.npz")


class TestNames:
    def test_a_users_class_of_the_same_name_is_another_class(self, tmp_path: Path) -> None:
        path = tmp_path / "ours.npz"
        Banditron(n_classes=3, n_features=2).save(path)
        theirs = type("Banditron", (Banditron,), {"__module__": "shop", "__init__": Banditron.__init__})
        assert type(Learner.load(path)) is Banditron
        theirs(n_classes=3, n_features=2).save(tmp_path / "theirs.npz")
        assert type(Learner.load(tmp_path / "theirs.npz")) is theirs
        with pytest.raises(InputError, match="holds a Banditron; a RidgeRegression is expected"):
            RidgeRegression.load(tmp_path / "theirs.npz")

    def test_a_fresh_process_knows_our_classes(self, tmp_path: Path) -> None:
        for name in ("Fliptron", "RidgeRegression", "KernelSeparable"):
            getattr(fliptron, name)(n_classes=3, n_features=2).save(tmp_path / f"{name}.npz")
            code = f"from fliptron import Learner; print(Learner.load({str(tmp_path / name)!r} + '.npz'))"
            done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
            assert done.stdout.startswith(f"{name}(n_classes=3"), done.stderr


@pytest.mark.parametrize("name", [name for name in FAMILIES if not name.endswith("-full")])  # 640×640 is slow
def test_what_was_learnt_can_always_be_loaded(name: Any, digits: Any, tmp_path: Path) -> None:
    """After a real run, without and with noise: what `save` writes, `load` reads."""
    rounds = 30_000 if name.startswith(("Fliptron", "RCINE")) else 5000
    for seed, rates in enumerate(((0.0, 0.0), (0.2, 0.4), (0.4, 0.4))):
        learner = LEARNERS[name](n_classes=10, n_features=64, seed=seed)
        simulate(learner, digits, rates=rates, rounds=rounds, seed=seed)
        learner.save(tmp_path / "l.npz")
        again = Learner.load(tmp_path / "l.npz")
        np.testing.assert_array_equal(again.weights, learner.weights)


@pytest.mark.parametrize(
    "name", ["RCNBF", "AveragedRCNBF", "SOBA", "LeastMeanSquares", "Fliptron", "Fliptron-diagonal"]
)
def test_sparse_then_saved_then_dense_is_as_if_never_saved(
    name: Any, small: Any, small_sparse: Any, tmp_path: Path
) -> None:
    twins = [LEARNERS[name](n_classes=3, n_features=5, seed=2) for _ in range(2)]
    for learner in twins:
        simulate(learner, small_sparse, rates=(0.2, 0.2), rounds=200, seed=1)
    twins[1].save(tmp_path / "l.npz")
    twins[1] = Learner.load(tmp_path / "l.npz")
    traces = [simulate(learner, small, rates=(0.2, 0.2), rounds=500, seed=2, log=True) for learner in twins]
    np.testing.assert_array_equal(twins[0].weights, twins[1].weights)
    np.testing.assert_array_equal(traces[0].log.margin, traces[1].log.margin)
    layouts = [{name: a.flags.f_contiguous for name, a in learner._arrays().items()} for learner in twins]
    assert layouts[0] == layouts[1]


class TestWriting:
    def test_many_threads_on_one_path(self, tmp_path: Path) -> None:
        path = tmp_path / "l.npz"
        learners = [RidgeRegression(n_classes=3, n_features=40, regularization=1.0 + i) for i in range(4)]
        learners[0].save(path)

        def write(learner: Any) -> Any:
            for _ in range(40):
                learner.save(path)
            return 0

        def read() -> Any:
            return sum(RidgeRegression.load(path).n_features != 40 for _ in range(120))

        with ThreadPoolExecutor(6) as pool:
            futures = [*(pool.submit(write, each) for each in learners), *(pool.submit(read) for _ in range(2))]
            assert [future.result() for future in futures] == [0] * 6
        assert [each.name for each in tmp_path.iterdir()] == ["l.npz"]

    def test_mode_and_symlink_are_kept(self, tmp_path: Path) -> None:
        (tmp_path / "real").mkdir()
        real, link = tmp_path / "real" / "l.npz", tmp_path / "link.npz"
        write_whole(real, b"old")
        real.chmod(0o640)
        link.symlink_to(real)
        write_whole(link, b"new")
        assert link.is_symlink()
        assert real.read_bytes() == b"new"
        assert stat.S_IMODE(real.stat().st_mode) == 0o640
        assert [each.name for each in (tmp_path / "real").iterdir()] == ["l.npz"]

    def test_what_a_killed_writer_left_is_removed(self, tmp_path: Path) -> None:
        path = tmp_path / "l.npz"
        code = f"""
            import os, signal
            from pathlib import Path
            from fliptron.output import whole_file
            with whole_file(Path({str(path)!r})) as part:
                part.write_bytes(b"half")
                os.kill(os.getpid(), signal.SIGKILL)
        """
        subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=False)
        (left,) = tmp_path.iterdir()
        assert left.name.endswith(".part")
        with whole_file(path) as part:
            part.write_bytes(b"whole")
            assert not left.exists()
            with whole_file(path) as other:  # a living writer's part is left alone
                other.write_bytes(b"other")
            assert part.exists()
        assert path.read_bytes() == b"whole"
        assert [each.name for each in tmp_path.iterdir()] == ["l.npz"]

    @pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
    def test_a_full_disk_is_one_sentence(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = tmp_path / "l.npz"
        write_whole(path, b"old")

        def full(handle: Any) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(InputError, match=r"l.npz cannot be written \(No space left on device\)"):
            write_whole(path, b"new")
        monkeypatch.undo()
        assert path.read_bytes() == b"old"
        assert [each.name for each in tmp_path.iterdir()] == ["l.npz"]
