"""The rooms of the Rust crate: what is bound is found by the name of its family."""

from tools.shell import ROOT

SOURCE = ROOT / "kernels-rs" / "src"
ROOMS = {"array", "error", "machine", "math", "memory", "ops", "py"}


def test_the_crate_has_no_flat_rooms() -> None:
    assert {path.stem for path in SOURCE.iterdir()} == ROOMS | {"lib"}


def test_the_binding_has_one_file_for_each_family_of_kernels() -> None:
    """Activation, binary and unary share one table; creation has its kernels beside it."""
    families = {file.stem for file in (SOURCE / "ops").glob("*.rs")}
    bound = {file.stem for file in (SOURCE / "py").glob("*.rs")} - {"arg", "error", "tensor"}
    assert families
    assert bound == families | {"creation"}
