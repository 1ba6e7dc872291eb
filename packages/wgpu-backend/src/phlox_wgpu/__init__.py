"""WebGPU backend of phlox."""
