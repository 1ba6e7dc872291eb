#!/usr/bin/env bash
# maturin 1.16.0: for Windows by the GNU tools it exports PyInit_package._native, which no module has.
#
# Guess: a project with module-name = "package._native" builds for x86_64-pc-windows-gnu as it does
# for other targets: the page "Project Layout" shows that setting, and Python calls PyInit and the
# last part of the name.
# Done: two small projects of PyO3, with the module in a package and alone, for that target. Rust's
# library for it and Zig need not be there: the list is written before anything compiles.
# Seen: the list of the module that stands alone has PyInit__native, that of the other one
# PyInit_package._native. lld stops at it as undefined; where a symbol of that name is linked too,
# nothing else is exported, and maturin warns that PyInit__native is not found.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet maturin==1.16.0

exports() {
    mkdir -p "$folder/$1/src" "$folder/$1/python/package"
    touch "$folder/$1/python/package/__init__.py"
    cd "$folder/$1"
    printf '[package]\nname = "native"\nversion = "0.1.0"\nedition = "2021"\n' > Cargo.toml
    printf '[lib]\ncrate-type = ["cdylib"]\n' >> Cargo.toml
    printf '[dependencies]\npyo3 = { version = "=0.30.1", features = ["abi3-py311"] }\n' >> Cargo.toml
    printf '[build-system]\nrequires = ["maturin"]\nbuild-backend = "maturin"\n' > pyproject.toml
    printf '[project]\nname = "package"\nversion = "0.1.0"\n' >> pyproject.toml
    printf '[tool.maturin]\nmodule-name = "%s"\n' "$2" >> pyproject.toml
    if [ "$1" = inside ]; then printf 'python-source = "python"\n' >> pyproject.toml; fi
    printf '#[pyo3::pymodule]\nmod _native {}\n' > src/lib.rs
    "$folder/venv/bin/maturin" build --zig --target x86_64-pc-windows-gnu --interpreter python3.11 > log 2>&1 || true
    cat target/maturin/*.def
}

alone=$(exports alone _native)
inside=$(exports inside package._native)
echo "$alone"
echo "$inside"
grep -q 'PyInit__native' <<< "$alone"
grep -q 'PyInit_package\._native' <<< "$inside"
if grep -q 'PyInit__native' <<< "$inside"; then exit 1; fi
