"""WGSL text: helper functions in .wgsl files, and the table and emitter of elementwise kernels."""
