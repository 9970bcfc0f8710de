"""Data sets: recipes, published files, a user's own, and what is refused."""

from __future__ import annotations

import dataclasses
import functools
import gzip
import hashlib
import http.server
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from fliptron import Dataset, InputError, load
from fliptron.arrays import Csr
from fliptron.datasets import files, registry, synthetic
from fliptron.datasets.registry import REGISTRY


@pytest.mark.parametrize("name", ["digits", "iris", "synsep", "synnonsep"])
def test_embedded_sets_are_as_listed_and_of_unit_norm(name: Any) -> None:
    entry, data = REGISTRY[name], load(name)
    assert entry.present(name)
    assert (data.n_rows, data.n_features, data.n_classes) == (entry.rows, entry.features, entry.classes)
    assert set(data.y) == set(range(entry.classes))
    X: Any = data.X.data if isinstance(data.X, Csr) else data.X
    norms = np.add.reduceat(X**2, data.X.indptr[:-1]) if isinstance(data.X, Csr) else (X**2).sum(axis=1)
    np.testing.assert_allclose(norms, 1.0)


@pytest.mark.parametrize("name", ["optdigits", "usps", "mnist", "fashion-mnist"])
def test_published_sets_are_as_listed(name: Any, data_folder: Path) -> None:
    entry, data = REGISTRY[name], load(name)
    assert entry.present(name)
    assert (data.n_rows, data.n_features, data.n_classes) == (entry.rows, entry.features, entry.classes)
    assert np.bincount(data.y).min() > 500
    np.testing.assert_allclose(np.linalg.norm(data.X, axis=1), 1.0)


def test_digits_are_the_test_part_of_optdigits(data_folder: Path) -> None:
    digits, optdigits = load("digits"), load("optdigits")
    np.testing.assert_array_equal(digits.X, optdigits.X[3823:])
    np.testing.assert_array_equal(digits.y, optdigits.y[3823:])


def test_raw_keeps_the_values() -> None:
    assert load("digits", unit_norm=False).X.max() == 16.0


class TestSynSep:
    def test_recipe(self) -> None:
        sparse, y = synthetic.synsep(3000, seed=1)
        X = sparse.toarray()
        assert X.shape == (3000, 400)
        assert set(np.unique(X)) == {0.0, 1.0}
        assert (X[:, 120:].sum(axis=1) == 20).all()
        for label in range(9):
            bits = X[y == label][:, :120]
            class_bits = np.flatnonzero(bits.any(axis=0)).size
            assert 20 <= class_bits <= 40
            assert (bits.sum(axis=1) == class_bits - 5).all()
        # Each of the 280 noise bits is on in a share 20/280 of rows.
        assert np.abs(X[:, 120:].mean(axis=0) - 20 / 280).max() < 6 * np.sqrt(20 / 280 / 3000)

    def test_classes_have_20_to_40_bits_alike(self) -> None:
        sizes = []
        for seed in range(40):
            sparse, y = synthetic.synsep(200, seed=seed)
            X = sparse.toarray()[:, :120]
            sizes += [int(X[y == label].sum(axis=1)[0]) + 5 for label in range(9) if (y == label).any()]
        assert (min(sizes), max(sizes)) == (20, 40)
        assert abs(np.mean(sizes) - 30) < 6 * np.sqrt(35 / len(sizes))

    def test_synnonsep_replaces_labels_by_others(self) -> None:
        X, clean = synthetic.synsep(20_000, seed=1)
        same, noisy = synthetic.synsep(20_000, seed=1, label_noise=0.05)
        np.testing.assert_array_equal(same.toarray(), X.toarray())
        assert abs(np.mean(clean != noisy) - 0.05) < 6 * np.sqrt(0.05 * 0.95 / 20_000)

    def test_any_size_and_the_same_every_time(self) -> None:
        assert load("synsep", rows=500).n_rows == 500
        assert load("synsep", rows=500).checksum == load("synsep", rows=500).checksum
        with pytest.raises(InputError, match="only synthetic sets come in any size"):
            load("digits", rows=500)


class TestOwnFiles:
    def test_csv_with_names_and_words(self, tmp_path: Path) -> None:
        path = tmp_path / "pets.csv"
        path.write_text("length,weight,kind\n3,4,cat\n0,2,dog\n\n6,8,cat\n")
        data = load(path, encode=False)
        assert data.classes == ("cat", "dog")
        np.testing.assert_array_equal(data.y, [0, 1, 0])
        np.testing.assert_allclose(data.X, [[0.6, 0.8], [0, 1], [0.6, 0.8]])

    def test_a_table_as_people_have_it(self, tmp_path: Path) -> None:
        path = tmp_path / "visitors.csv"
        path.write_text("segment,age,city,member\nold,61,Rome,true\nyoung,NA,Oslo,false\nyoung,19,,true\n")
        data = load(path, label="segment")
        assert data.classes == ("old", "young")
        assert data.encoder.schema.kinds == {"age": "number", "city": "category", "member": "boolean"}
        np.testing.assert_array_equal(data.y, [0, 1, 1])
        with pytest.raises(InputError, match=r"no column is called 'kind'; there are segment, age, city, member"):
            load(path, label="kind")

    def test_numbers_only_without_encoding(self, tmp_path: Path) -> None:
        (tmp_path / "a.csv").write_text("1,2,0\n1,x,1\n")
        with pytest.raises(InputError, match="line 2 holds 'x'"):
            load(tmp_path / "a.csv", encode=False)
        (tmp_path / "a.csv").write_text("1,2,0\n1,nan,1\n")
        with pytest.raises(InputError, match="X holds nan at row 1, column 1"):
            load(tmp_path / "a.csv", encode=False)

    def test_csv_without_names_and_numbered_labels(self, tmp_path: Path) -> None:
        path = tmp_path / "rows.csv"
        path.write_text("3, 4, 10\n0, 2, 9\n")
        data = load(path, unit_norm=False)
        assert data.classes == (9, 10)
        np.testing.assert_array_equal(data.X, [[3, 4], [0, 2]])

    def test_csv_as_spreadsheets_write_it(self, tmp_path: Path) -> None:
        path = tmp_path / "sheet.csv"
        path.write_text('\ufeff"0","1","label"\n"3","4","1.0"\n"0","2","2"\n', encoding="utf-8")
        data = load(path)
        assert data.classes == (1, 2)
        assert data.n_rows == 2

    def test_malformed_sparse_matrices_are_refused(self, tmp_path: Path) -> None:
        good = {"data": np.ones(4), "indices": [0, 1, 0, 1], "indptr": [0, 2, 4], "shape": [2, 2], "y": [0, 1]}
        for name, bad in {
            "indices": [0, 7, 0, 1],
            "indptr": [0, 100_000, 4],
            "format": np.array(b"csc"),
            "shape": [2, 2**40],
        }.items():
            np.savez(tmp_path / "bad.npz", **(good | {name: bad}))
            with pytest.raises(InputError, match=r"bad\.npz"):
                load(tmp_path / "bad.npz")

    def test_npz_dense_and_sparse(self, tmp_path: Path) -> None:
        X, y = np.array([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]]), np.array([0, 1, 1])
        np.savez(tmp_path / "dense.npz", X=X, y=y)
        matrix = sp.csr_array(X)
        np.savez(
            tmp_path / "sparse.npz", data=matrix.data, indices=matrix.indices, indptr=matrix.indptr, shape=X.shape, y=y
        )
        dense, sparse = load(tmp_path / "dense.npz", encode=False), load(tmp_path / "sparse.npz")
        assert isinstance(sparse.X, Csr)
        np.testing.assert_array_equal(dense.X, [[1, 0], [0, 1], [0, 0]])
        assert sparse.row(1).toarray().tolist() == [[0, 1]]
        assert sparse.row(2).nnz == 0

    def test_libsvm(self, tmp_path: Path) -> None:
        path = tmp_path / "rows.libsvm"
        path.write_text("1 1:3 3:4\n-1 2:5\n")
        data = load(path)
        assert (data.n_rows, data.n_features, data.classes) == (2, 3, (-1.0, 1.0))
        np.testing.assert_allclose(data.row(0).toarray(), [[0.6, 0, 0.8]])

    @pytest.mark.parametrize(
        ("name", "content", "words"),
        [
            ("a.csv", "", "the file is empty"),
            ("a.csv", "a,b,label\n", "the file is empty"),
            ("a.csv", "1,2,0\n1,2,3,1\n", "line 2 has 4 values; 3 are expected"),
            ("a.csv", "1,2,0\n1,x,1\n", "column 'x1' holds 'x' in row 1 among numbers"),
            ("a.csv", "a,b,label\n1,2,0\n1,x,1\n1,3,1\n", "column 'b' holds 'x' in row 1 among numbers"),
            ("a.csv", "a,a,label\n1,2,0\n1,x,1\n", "two columns are called 'a'"),
            ("a.csv", "a,b,label\n,,0\n,,1\n", "no column holds a value"),
            (
                "a.csv",
                "age,clicked,propensity\n1,0,0.5\n2,1,0.5\n",
                "this is a log of rounds.*call 'clicked' otherwise",
            ),
            (
                "a.csv",
                "age,shown,clicked\n31,hats,1\n22,bags,0\n44,hats,0\n",
                "this is a log of rounds.*name the column",
            ),
            ("a.csv", b"a,city,kind\n1,Malm\xf6,x\n2,Oslo,y\n", "a.csv is not UTF-8 text; save it as UTF-8"),
            ("a.csv", "1,2,0\n1,inf,1\n", "column 'x1' holds 'inf' in row 1 among numbers"),
            ("a.csv", "1,2,0\n1,3,0\n", "has 1 class; at least 2"),
            ("a.csv", "5\n6\n", "line 1 has 1 values; at least 2"),
            ("a.csv", "1,2,0\n3,4,\n", "line 2 has no label"),
            ("a.csv", "1,1e999,0\n3,4,1\n", "column 'x1' holds '1e999' in row 0"),
            ("a.libsvm", "nan 1:1\n2 1:1\n", "y holds nan"),
            ("a.libsvm", "", "the file is empty"),
            ("a.libsvm", "one two three\n", "cannot be read"),
            ("a.npz", "not a zip", "cannot be read"),
            ("a.xls", "1,2", "'.xls'; one of .csv, .npz"),
        ],
    )
    def test_bad_files_are_refused(self, tmp_path: Path, name: Any, content: Any, words: Any) -> None:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        with pytest.raises(InputError, match=words) as caught:
            load(path)
        assert name in str(caught.value)
        assert "\n" not in str(caught.value)

    def test_npz_without_the_arrays_or_with_pickles_is_refused(self, tmp_path: Path) -> None:
        np.savez(tmp_path / "a.npz", features=np.eye(2))
        with pytest.raises(InputError, match=r"holds \['features'\]; arrays X and y"):
            load(tmp_path / "a.npz")
        np.savez(tmp_path / "b.npz", X=np.array([{}], dtype=object), y=np.zeros(1))
        with pytest.raises(InputError, match="cannot be read"):
            load(tmp_path / "b.npz")
        np.savez(tmp_path / "c.npz", X=np.eye(3), y=np.zeros(2))
        with pytest.raises(InputError, match=r"y has shape \(2,\)"):
            load(tmp_path / "c.npz")

    def test_what_is_not_there_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="does not exist"):
            load(tmp_path / "nothing.csv")
        with pytest.raises(InputError, match="digitz is not a data set; one of digits, iris"):
            load("digitz")


class TestPublishedFiles:
    """Finding, downloading and checking, with a real server on this machine and small files."""

    @pytest.fixture(autouse=True)
    def _places(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.site, self.cache, self.given = (tmp_path / name for name in ("site", "cache", "given"))
        for folder in (self.site, self.cache, self.given / "tiny"):
            folder.mkdir(parents=True)
        monkeypatch.setattr("platformdirs.user_cache_dir", lambda _: str(self.cache))
        monkeypatch.setenv("FLIPTRON_DATA", str(self.given))
        self.content = b"0,0,5,1\n1,2,3,0\n"
        self.sha256 = hashlib.sha256(self.content).hexdigest()

    @pytest.fixture
    def address(self) -> Any:
        handler = functools.partial(QuietHandler, directory=str(self.site))
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
            thread = threading.Thread(target=server.serve_forever)
            thread.start()
            yield f"http://127.0.0.1:{server.server_port}/"
            server.shutdown()
            thread.join()

    def test_the_given_folder_comes_first(self) -> None:
        (self.given / "tiny" / "a.csv").write_bytes(self.content)
        file = files.File("a.csv", self.sha256, None)
        assert files.find("tiny", file) == self.given / "tiny" / "a.csv"
        assert files.fetch("tiny", file, "") == self.content

    def test_a_missing_file_is_downloaded_once(self, address: Any) -> None:
        (self.site / "a.csv.gz").write_bytes(gzip.compress(self.content))
        file = files.File("a.csv.gz", self.sha256, address + "a.csv.gz")
        assert files.fetch("tiny", file, "") == self.content
        (self.site / "a.csv.gz").unlink()
        assert files.fetch("tiny", file, "") == self.content
        assert files.find("tiny", file) == self.cache / "tiny" / "a.csv.gz"

    def test_wrong_content_is_refused(self, address: Any) -> None:
        (self.site / "a.csv").write_bytes(b"another")
        with pytest.raises(InputError, match="is corrupt: its content has SHA-256"):
            files.fetch("tiny", files.File("a.csv", self.sha256, address + "a.csv"), "")

    def test_a_damaged_archive_is_refused(self) -> None:
        (self.given / "tiny" / "a.csv.gz").write_bytes(gzip.compress(self.content)[:-6])
        with pytest.raises(InputError, match="is corrupt"):
            files.fetch("tiny", files.File("a.csv.gz", self.sha256, None), "")

    def test_no_address_or_no_answer_says_what_to_do(self, address: Any) -> None:
        with pytest.raises(InputError, match=r"tiny/a\.csv is not in .*given or .*cache; put it there"):
            files.fetch("tiny", files.File("a.csv", self.sha256, None), "put it there")
        with pytest.raises(InputError, match=r"could not be downloaded .* put it there"):
            files.fetch("tiny", files.File("a.csv", self.sha256, address + "a.csv"), "put it there")

    def test_absent_sets_are_listed_as_absent(self) -> None:
        assert not REGISTRY["mnist"].present("mnist")

    def test_a_corrupt_published_set_is_refused(self) -> None:
        (self.given / "optdigits").mkdir()
        (self.given / "optdigits" / "optdigits.csv").write_bytes(self.content)
        with pytest.raises(InputError, match=r"optdigits\.csv is corrupt"):
            load("optdigits")

    def test_images_of_both_parts_are_read_in_order(self, monkeypatch: pytest.MonkeyPatch) -> None:
        train, test = np.arange(16, dtype=np.uint8).reshape(2, 2, 2, 2)
        parts = [train, np.array([0, 1], np.uint8), test, np.array([2, 1], np.uint8)]
        entries = []
        (self.given / "mnist").mkdir()
        for file, array in zip(REGISTRY["mnist"].files, parts, strict=True):
            content = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes() + array.tobytes()
            (self.given / "mnist" / file.name).write_bytes(gzip.compress(content))
            entries.append(file._replace(sha256=hashlib.sha256(content).hexdigest()))
        monkeypatch.setitem(registry.REGISTRY, "mnist", REGISTRY["mnist"]._replace(files=tuple(entries)))
        data = load("mnist", unit_norm=False)
        np.testing.assert_array_equal(data.X, np.arange(16).reshape(4, 4))
        np.testing.assert_array_equal(data.y, [0, 1, 2, 1])


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


@pytest.mark.parametrize(
    ("X", "y", "words"),
    [
        ([[1.0, np.nan]], [0], "nan at row 0, column 1"),
        (sp.csr_array([[1.0, 0.0], [0.0, np.inf]]), [0, 1], "inf at row 1, column 1"),
        ([1.0, 2.0], [0, 1], r"X has shape \(2,\)"),
        (np.empty((0, 3)), [], "has no rows"),
        ([["a", "b"]], [0], "real numbers are expected"),
        ([[1.0], [1.0, 2.0]], [0, 1], "is not a rectangular array of numbers"),
        ([[1j, 2.0]], [0], "real numbers are expected"),
        (np.eye(2), [0, np.nan], "y holds nan"),
        (np.eye(2), np.array([0, "a"], dtype=object), "cannot be sorted"),
        (np.eye(2), ["a", None], "y holds nothing in row 1; every row needs a label"),
        (np.eye(2), ["", "a"], "y holds nothing in row 0; every row needs a label"),
    ],
)
def test_bad_arrays_are_refused(X: Any, y: Any, words: Any) -> None:
    with pytest.raises(InputError, match=words):
        Dataset.of(X, y)


def test_rows_of_any_size_are_scaled() -> None:
    data = Dataset.of([[3e-170, 4e-170], [3e140, 4e140]], [0, 1])
    np.testing.assert_allclose(data.X, [[0.6, 0.8]] * 2)


def test_a_data_set_cannot_be_changed_behind_the_engine() -> None:
    X, y = np.eye(3), np.arange(3)
    data = Dataset.of(X, y, unit_norm=False, classes=(0, 1, 2))
    X[0], y[0] = 9.0, 2
    np.testing.assert_array_equal(data.X, np.eye(3))
    np.testing.assert_array_equal(data.y, [0, 1, 2])
    with pytest.raises(ValueError, match="read-only"):
        data.y[0] = 10**8
    with pytest.raises(TypeError):
        dataclasses.replace(data, y=data.y + 10**8 + 1)


def test_labels_out_of_the_named_classes_are_refused() -> None:
    with pytest.raises(InputError, match="label 3 is out of range; labels run from 0 to 2"):
        Dataset.of(np.eye(3), [0, 1, 3], classes=(0, 1, 2))


def test_checksum_tells_data_apart() -> None:
    data = Dataset.of(np.eye(3), [0, 1, 2])
    assert data.checksum != Dataset.of(np.eye(3), [0, 2, 1]).checksum
    assert data.checksum != Dataset.of(sp.csr_array(np.eye(3)), [0, 1, 2]).checksum
    assert data.checksum == Dataset.of(2 * np.eye(3), [0, 1, 2]).checksum


def test_features_are_of_unseen_images_kept_and_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    from fliptron.datasets import features as module

    monkeypatch.setattr(module, "TRAINING", 60)
    monkeypatch.setattr(module, "EPOCHS", 1)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    random = np.random.default_rng(0)
    images, labels = random.integers(256, size=(100, 784), dtype=np.uint8), random.integers(3, size=100)
    X, y = module.features("made", images, labels)
    assert X.shape == (40, 100)
    assert np.isfinite(X).all()
    assert np.array_equal(y, labels[np.sort(np.random.default_rng(0).permutation(100)[60:])])
    again, _ = module.features("made", images, labels)
    assert np.array_equal(again, X)
    everything, _ = module.features("made", images, labels, reuse=True)
    assert everything.shape == (100, 100)
    (path,) = (path for path in tmp_path.rglob("*.npz") if "-all" not in path.name)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(InputError, match="is damaged"):
        module.features("made", images, labels)
