"""Datasets and loaders: everything of phlox_data."""

from phlox_data import *
