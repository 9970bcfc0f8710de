"""Features of images from a small convolutional network, as the paper makes them for Fashion-MNIST.

The paper trains a network on 35,000 images: a convolution of 32 filters 3×3 with stride 1, max-pooling 2×2, a dense
layer of 100 with dropout 0.2, and a softmax. The dense layer's 100 values are the features. It does not say which
images, for how long, with which optimizer, or whether the same images are then learnt from. Here: 35,000 drawn by
seed 0, five epochs of Adam at its defaults in batches of 128, and the *other* 35,000 images are the rows, so that
features are never of an image whose label the network has seen.
"""

from __future__ import annotations

import hashlib
import io

import numpy as np

from fliptron.arrays import Array
from fliptron.datasets.files import Content, cache
from fliptron.output import make_folder, write_whole
from fliptron.refusals import InputError, missing

TRAINING, EPOCHS, BATCH = 35_000, 5, 128


def features(name: str, images: Array, labels: Array, *, reuse: bool = False) -> Content:
    """Features and labels of the images the network was not trained on; made once, then kept and checked.

    With `reuse`, of all images, as one may also read the paper.
    """
    digest = hashlib.sha256(images.tobytes() + labels.tobytes()).hexdigest()[:12]
    path = cache() / name / f"features-{digest}-{EPOCHS}{'-all' if reuse else ''}.npz"
    checksum = path.with_suffix(".sha256")
    if path.is_file() and checksum.is_file():
        content = path.read_bytes()
        if hashlib.sha256(content).hexdigest() != checksum.read_text().strip():
            raise InputError(f"{path} is damaged: its checksum is not the one beside it; delete it to make it anew")
    else:
        content = _make(images, labels, reuse)
        make_folder(path.parent)
        write_whole(path, content)
        write_whole(checksum, hashlib.sha256(content).hexdigest().encode() + b"\n")
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        return file["X"], file["y"]


def _make(images: Array, labels: Array, reuse: bool) -> bytes:
    try:
        import torch
    except ImportError:
        raise missing("PyTorch, which these features are made with,", "torch") from None
    from torch import nn

    torch.manual_seed(0)
    order = np.random.default_rng(0).permutation(len(labels))
    chosen, kept = order[:TRAINING], np.sort(order[0 if reuse else TRAINING :])
    X = torch.from_numpy(images.reshape(-1, 1, 28, 28).astype(np.float32) / 255.0)
    y = torch.from_numpy(labels.astype(np.int64))
    embed = nn.Sequential(
        nn.Conv2d(1, 32, kernel_size=3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(32 * 13 * 13, 100),
        nn.ReLU(),
    )
    network = nn.Sequential(embed, nn.Dropout(0.2), nn.Linear(100, int(y.max()) + 1))
    optimizer = torch.optim.Adam(network.parameters())
    for _ in range(EPOCHS):
        for batch in torch.from_numpy(chosen)[torch.randperm(TRAINING)].split(BATCH):
            optimizer.zero_grad()
            nn.functional.cross_entropy(network(X[batch]), y[batch]).backward()
            optimizer.step()
    network.eval()
    with torch.no_grad():
        parts = [embed(X[batch]) for batch in torch.from_numpy(kept).split(1000)]
    content = io.BytesIO()
    np.savez_compressed(content, allow_pickle=False, X=torch.cat(parts).numpy(), y=labels[kept])
    return content.getvalue()
