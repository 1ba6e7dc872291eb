"""Parameters and states: values, ids, lazy ones, how they are quantized."""
