"""The data sets by name: which there are, whether they are here, and how to load one."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fliptron.arrays import Array
from fliptron.datasets import synthetic
from fliptron.datasets.dataset import Dataset
from fliptron.datasets.files import Content, File, fetch, find, parse_idx, read, read_records, without_leaks
from fliptron.refusals import InputError, mapping_of, missing, path_of
from fliptron.tables import is_table, parts_of

_BY_HAND = "put it there by hand, or point FLIPTRON_DATA at a folder that has it"


class Entry(NamedTuple):
    """What is known of a data set without opening it."""

    rows: int
    features: int
    classes: int
    source: str
    files: tuple[File, ...]
    read: Callable[..., Content]
    home: str = ""
    """The folder of its files, if it is not called like the data set."""

    def present(self, name: str) -> bool:
        """Whether it can be loaded without a download."""
        return all(find(self.home or name, file) for file in self.files)


def names() -> list[str]:
    """Every data set that can be loaded by name."""
    return list(REGISTRY)


def load(
    name: str | Path,
    *,
    unit_norm: bool = True,
    rows: int | None = None,
    dtype: str = "float64",
    encode: bool | None = None,
    label: str | None = None,
    kinds: Mapping[str, str] | None = None,
) -> Dataset:
    """Load a data set by name, or your own file by path.

    Parameters
    ----------
    name
        A name that ``fliptron data`` lists, or the path of a table (``.csv``, ``.parquet``, ``.jsonl``; also of a
        folder or a pattern of them), an ``.npz`` (X, y) or a libsvm file.
    unit_norm
        Scale every row to length 1, as the theory asks. Without it rows stay as they are.
    rows
        How many rows to make of a synthetic data set, 100,000 by default.
    dtype
        How examples are kept: "float64", "float32", "uint8" for images and counts (whole values from 0 to 255), or
        "sparse": float64, and only what is not zero.
    encode
        Whether rows are encoded as they are played: words, gaps and raw scales are then no harm; see `Encoder`. By
        default your own dense tables are, unless `unit_norm` or `dtype` say how rows should be kept.
    label
        The column of a table that holds the right label; by default one that is called so, or the last.
    kinds
        What columns hold, by name, where it should not be inferred from encoded rows; see `Schema.infer`.

    Examples
    --------
    >>> iris = load("iris")
    >>> iris.n_rows, iris.n_features, iris.n_classes
    (150, 4, 3)
    """
    entry, kinds = REGISTRY.get(str(path_of(name))), mapping_of("kinds", kinds)
    if rows is not None and (entry is None or "synthetic" not in entry.source):
        raise InputError(f"rows is {rows}, but {name} has the rows it has; only synthetic sets come in any size")
    if entry is not None and label is not None:
        raise InputError(f"label is {label!r}, but {name} has the labels it has; only a table's column can be named")
    if entry is None:
        path, parts = Path(name), parts_of(str(name))
        if not path.suffix and not path.exists() and not parts:
            raise InputError(f"{name} is not a data set; one of {', '.join(REGISTRY)} or a file is expected")
        tables = is_table(path) or bool(parts)
        if encode is None:
            encode = unit_norm and dtype == "float64" and (tables or path.suffix == ".npz")
        try:
            if encode and tables:
                table, y = read_records(path, label)
                called = path.stem.replace("*", "") or path.parent.name or "tables"
                return _encoded(table, y, without_leaks(table, y, kinds), name=called, source=str(path))
            if parts:
                raise InputError("the rows of several files are only read encoded; one file is expected")
            X, y = read(path, label)
            if encode and not hasattr(X, "tocoo"):
                return _encoded(np.asarray(X), y, kinds, name=path.stem, source=str(path))
            _check_kinds(kinds)
            return Dataset.of(X, y, name=path.stem, unit_norm=unit_norm, dtype=dtype, source=str(path))
        except InputError as error:
            raise InputError(str(error) if str(error).startswith(str(path)) else f"{path}: {error}") from None
    X, y = entry.read(**({} if rows is None else {"n_rows": rows}))
    classes = tuple(range(entry.classes))
    if encode:
        return _encoded(np.asarray(X), y, kinds, name=str(name), source=entry.source)
    _check_kinds(kinds)
    return Dataset.of(X, y, name=str(name), classes=classes, unit_norm=unit_norm, dtype=dtype, source=entry.source)


def _encoded(records: Any, y: Any, kinds: Mapping[str, str] | None, *, name: str, source: str) -> Dataset:
    from fliptron.encoding.schema import Schema

    schema = Schema.infer(records, kinds) if kinds else None
    return Dataset.of_records(records, y, name=name, schema=schema, source=source)


def _check_kinds(kinds: Mapping[str, str] | None) -> None:
    if kinds:
        raise InputError(f"kinds of {', '.join(kinds)} are given, but rows that are not encoded are only numbers")


def _bundled(loader: str) -> Content:
    try:
        from sklearn import datasets
    except ImportError:
        raise missing("scikit-learn, which brings this data set,", "lab") from None
    X, y = getattr(datasets, loader)(return_X_y=True)
    return X, y


def _images(name: str) -> Content:
    """The 60,000 training images, then the 10,000 test images, as rows of 784 values in 0 … 255."""
    images = [parse_idx(fetch(name, file, _BY_HAND)) for file in REGISTRY[name].files]
    X = np.concatenate([images[0], images[2]])
    return X.reshape(X.shape[0], -1), np.concatenate([images[1], images[3]])


def _features(name: str, reuse: bool = False) -> Content:
    from fliptron.datasets.features import features

    return features(name, *_images(name), reuse=reuse)


def _optdigits() -> Content:
    (file,) = REGISTRY["optdigits"].files
    table: Array = np.loadtxt(io.BytesIO(fetch("optdigits", file, _BY_HAND)), delimiter=",", dtype=np.int64)
    return table[:, :-1], table[:, -1]


def _usps() -> Content:
    (file,) = REGISTRY["usps"].files
    content = fetch("usps", file, "download it from the Kaggle data set bistaumanga/usps-dataset and " + _BY_HAND)
    try:
        import h5py
    except ImportError:
        raise missing("h5py, which reads this data set,", "lab") from None
    with h5py.File(io.BytesIO(content), "r") as parts:
        X = np.concatenate([parts[f"{part}/data"][:] for part in ("train", "test")])
        y = np.concatenate([parts[f"{part}/target"][:] for part in ("train", "test")])
    return X, y


def _idx_files(base: str, *sha256: str) -> tuple[File, ...]:
    stems = ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1")
    return tuple(
        File(f"{stem}-ubyte.gz", checksum, f"{base}{stem}-ubyte.gz")
        for stem, checksum in zip(stems, sha256, strict=True)
    )


REGISTRY: dict[str, Entry] = {
    "digits": Entry(1797, 64, 10, "scikit-learn (test part of optdigits)", (), partial(_bundled, "load_digits")),
    "iris": Entry(150, 4, 3, "scikit-learn (Fisher 1936)", (), partial(_bundled, "load_iris")),
    "synsep": Entry(100_000, 400, 9, "synthetic (Kakade et al. 2008)", (), synthetic.synsep),
    "synnonsep": Entry(
        100_000,
        400,
        9,
        "synthetic (Kakade et al. 2008), 5 % of labels wrong",
        (),
        partial(synthetic.synsep, label_noise=0.05),
    ),
    "clicks": Entry(100_000, 13, 6, "synthetic (visitors who want one of six offers)", (), synthetic.clicks),
    "clicks-50": Entry(
        100_000,
        31,
        50,
        "synthetic (visitors who want one of fifty offers)",
        (),
        partial(synthetic.clicks, offers=50, traits=30),
    ),
    "optdigits": Entry(
        5620,
        64,
        10,
        "UCI Optical Recognition of Handwritten Digits (the paper's MNIST)",
        (File("optdigits.csv", "ff5bdca1a597fde4361854eeec741dc671a97633a1de46f1ac23fc173f95306b", None),),
        _optdigits,
    ),
    "usps": Entry(
        9298,
        256,
        10,
        "Kaggle bistaumanga/usps-dataset",
        (File("usps.h5", "734f88c541104a956d88be2c95d03b4a463ffd74ccc2ba9c80841fb98e3fcb36", None),),
        _usps,
    ),
    "mnist": Entry(
        70_000,
        784,
        10,
        "LeCun, Cortes & Burges",
        _idx_files(
            "https://ossci-datasets.s3.amazonaws.com/mnist/",
            "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
            "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
            "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
            "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
        ),
        partial(_images, "mnist"),
    ),
    "fashion-mnist": Entry(
        70_000,
        784,
        10,
        "Zalando Research",
        _idx_files(
            "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
            "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
            "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
            "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
            "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
        ),
        partial(_images, "fashion-mnist"),
    ),
}
_FEATURES = Entry(
    35_000,
    100,
    10,
    "Fashion-MNIST through the paper's network, images it was not trained on",
    REGISTRY["fashion-mnist"].files,
    partial(_features, "fashion-mnist"),
    home="fashion-mnist",
)
REGISTRY["fashion-features"] = _FEATURES
REGISTRY["fashion-features-reused"] = _FEATURES._replace(
    rows=70_000,
    source="Fashion-MNIST through the paper's network, all images",
    read=partial(_features, "fashion-mnist", reuse=True),
)
