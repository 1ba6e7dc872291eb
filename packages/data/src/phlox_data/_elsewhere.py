"""What PyTorch, torchvision and Hugging Face call datasets and what is made of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

# Names beside ``torch.utils.data.DataLoader`` -> what to type.
NAMES: Final[Mapping[str, str]] = {
    "CocoDetection": 'data.coco("file.json", "folder")',
    "ConcatDataset": "first + second",
    "DatasetFolder": 'data.images("folder")',
    "DistributedSampler": "data.DataLoader(dataset, 64, shuffle=True)  # run.batches() shares",
    "FashionMNIST": 'data.idx("folder")',
    "ImageFolder": 'data.images("folder")',
    "KMNIST": 'data.idx("folder")',
    "MNIST": 'data.idx("folder")',
    "RandomSampler": "data.DataLoader(dataset, 64, shuffle=True)",
    "StackDataset": "data.zip(first, second)",
    "Subset": "dataset.select([0, 2])",
    "TensorDataset": "data.arrays((features, labels))",
    "WebDataset": 'data.archive("shards/*.tar")',
    "WeightedRandomSampler": "data.Weighted([1.0, 2.0, 1.0])",
    "default_collate": "data.stack",
    "from_dict": "data.arrays(x=features, y=labels)",
    "from_tensor_slices": "data.arrays((features, labels))",
    "TextFolderDataset": 'data.documents("texts")',
    "load_dataset": 'data.csv("file.csv")',
    "load_from_disk": 'data.arrow("tables/*.arrow")',
    "pad_sequence": "data.DataLoader(dataset, 2, collate=data.pad(0))",
    "random_split": "training, validation = dataset.split(0.8)",
    "read_csv": 'data.csv("file.csv")',
    "read_parquet": 'data.parquet("tables/file.parquet")',
    "set_epoch": "for batch in loader: ...  # each loop is the next epoch, in another order",
    "transforms": "dataset.map(data.augment.RandomHorizontalFlip())",
}
