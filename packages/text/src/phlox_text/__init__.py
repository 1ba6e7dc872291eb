"""Language models in use: tokenizers, chat templates, text that goes on piece by piece.

```python
model = text.load("folder")
for piece in model.generate("Once upon a time", max_tokens=50, stream=True):
    print(piece, end="")
```
"""

from phlox_nn.generation.sampling import Sampling as Sampling
from phlox_tensor.public import publish as _publish

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

__version__ = "0.2.0"

_publish(__name__, _NAMES)
