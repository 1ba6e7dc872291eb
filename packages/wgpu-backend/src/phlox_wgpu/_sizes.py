"""How large buffers are made."""

PART_BYTES = 1 << 26
"""The most that one read brings over at a time; longer arrays come in parts."""
_SMALL = 1 << 20
_MIN_BYTES = 256


def size_class(nbytes: int, limit: int) -> int:
    """Powers of two up to 1 MiB, then eighths of one (12.5 % waste); never over `limit`."""
    if nbytes <= _MIN_BYTES:
        return _MIN_BYTES
    if nbytes <= _SMALL:
        return 1 << (nbytes - 1).bit_length()
    step = 1 << ((nbytes - 1).bit_length() - 4)
    rounded = -(-nbytes // step) * step
    return max(-(-nbytes // 16) * 16, min(rounded, limit))
