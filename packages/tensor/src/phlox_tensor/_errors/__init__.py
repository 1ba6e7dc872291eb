"""The errors of phlox, and what their texts are made of."""
