"""Shape rules: from operand shapes and attributes to result shapes, or a ShapeError."""
