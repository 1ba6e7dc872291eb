"""Language models in use: tokenizers, chat templates, text that goes on piece by piece.

```python
model = text.load("folder")
for piece in model.generate("Once upon a time", max_tokens=50, stream=True):
    print(piece, end="")
```
"""

import sys as _sys
from typing import TYPE_CHECKING as _TYPE_CHECKING

from phlox_nn.generation.sampling import Sampling as Sampling
from phlox_tensor.arguments import classes_of as _classes_of
from phlox_tensor.arguments import explain as _explain
from phlox_tensor.names import unknown_name as _unknown_name

from ._answer import Answer as Answer
from ._chat import Chat as Chat
from ._elsewhere import NAMES as _NAMES
from ._errors import TextError as TextError
from ._language_model import LanguageModel as LanguageModel
from ._language_model import load as load
from ._settings import Rules as Rules
from ._template import ChatTemplate as ChatTemplate
from ._tokenizer import Tokenizer as Tokenizer
from ._tokenizer import TokenStream as TokenStream

__version__ = "0.1.0"

_explain(_sys.modules[__name__], *_classes_of(_sys.modules[__name__]))


# Type checkers would take any name for one that exists.
if not _TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Say what a name of others is called here, or which name is near."""
        if name.startswith("_"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        raise _unknown_name(name, "phlox_text", _NAMES, __dir__())


def __dir__() -> list[str]:
    """Every public name."""
    return sorted(name for name in globals() if not name.startswith("_"))
