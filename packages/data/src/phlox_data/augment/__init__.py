"""Random changes of pictures, by torchvision's names: for ``dataset.map`` and ``transform=``.

```python
pictures = pictures.map(augment.RandomResizedCrop(224)).map(augment.RandomHorizontalFlip())
```

An item is an array (channels, height, width), a tuple with one in front, or a dict with ``image``.
What moves pixels moves ``mask`` (height, width), ``masks`` (count, height, width) and ``boxes``
(count, 4: left, top, right, bottom) of a dict, too.
"""

from phlox_tensor.public import publish as _publish

from ._auto import RandAugment as RandAugment
from ._auto import TrivialAugmentWide as TrivialAugmentWide
from ._color import ColorJitter as ColorJitter
from ._color import RandomAdjustSharpness as RandomAdjustSharpness
from ._color import RandomAutocontrast as RandomAutocontrast
from ._color import RandomEqualize as RandomEqualize
from ._color import RandomGrayscale as RandomGrayscale
from ._color import RandomInvert as RandomInvert
from ._color import RandomPosterize as RandomPosterize
from ._color import RandomSolarize as RandomSolarize
from ._geometry import CenterCrop as CenterCrop
from ._geometry import Pad as Pad
from ._geometry import RandomAffine as RandomAffine
from ._geometry import RandomCrop as RandomCrop
from ._geometry import RandomHorizontalFlip as RandomHorizontalFlip
from ._geometry import RandomPerspective as RandomPerspective
from ._geometry import RandomResizedCrop as RandomResizedCrop
from ._geometry import RandomRotation as RandomRotation
from ._geometry import RandomVerticalFlip as RandomVerticalFlip
from ._geometry import Resize as Resize
from ._geometry import SanitizeBoundingBoxes as SanitizeBoundingBoxes
from ._mix import CutMix as CutMix
from ._mix import MixUp as MixUp
from ._noise import GaussianBlur as GaussianBlur
from ._noise import Normalize as Normalize
from ._noise import RandomErasing as RandomErasing

# Names of torchvision that are something else here -> what to type.
_NAMES = {
    "Compose": "dataset.map(augment.RandomHorizontalFlip()).map(augment.RandomGrayscale())",
    "ToTensor": "dataset.map(augment.Normalize((0.0,), (1.0,)))",
}

_publish(__name__, _NAMES)
