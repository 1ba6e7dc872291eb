"""What is known of classes: found once, forgotten with them, never stale."""

from __future__ import annotations

import gc
from threading import Event, Thread
from typing import Any
from weakref import ref

import phlox_tensor as pt
from phlox_tensor import tree
from phlox_tensor.by_class import ByClass


def test_a_value_is_found_once_for_each_class() -> None:
    asked: list[type] = []

    def find(cls: type) -> str:
        asked.append(cls)
        return cls.__name__

    names = ByClass(find)
    assert [names.of(int), names.of(str), names.of(int)] == ["int", "str", "int"]
    assert asked == [int, str]
    names.forget(lambda: None)
    assert names.of(int) == "int"
    assert asked == [int, str, int]


def test_a_class_that_nobody_has_is_forgotten() -> None:
    names = ByClass(lambda cls: cls.__name__)

    def made() -> ref[type]:
        class Own:
            pass

        names.of(Own)
        return ref(Own)

    gone = made()
    assert len(names.found) == 1
    gc.collect()
    assert gone() is None
    assert names.found == {}


def test_trees_keep_no_class() -> None:
    def used() -> list[ref[type]]:
        class Plain:
            pass

        class Row(list[Any]):
            __slots__ = ("label",)

        assert tree.leaves([Plain(), Row([1])])[1:] == [1]
        return [ref(Plain), ref(Row)]

    gone = used()
    gc.collect()
    assert [each() for each in gone] == [None, None]


def test_what_is_found_while_somebody_forgets_does_not_stay() -> None:
    """A type that one thread looks at while another registers it."""
    looking, registered = Event(), Event()
    known = set[type]()

    def find(cls: type) -> bool:
        found = cls in known
        looking.set()
        registered.wait(0.2)  # that the other one gets here first, it may try
        return found

    kinds = ByClass(find)
    other = Thread(target=lambda: kinds.of(int))
    other.start()
    looking.wait()
    kinds.forget(lambda: known.add(int))
    registered.set()
    other.join()
    assert kinds.of(int)


def test_a_type_that_was_a_leaf_comes_apart_once_it_is_registered() -> None:
    class Box:
        def __init__(self, inside: Any) -> None:
            self.inside = inside

    box = Box(1.0)
    assert tree.leaves(box) == [box]
    tree.register(Box, lambda x: ([x.inside], None), lambda parts, _: Box(parts[0]))
    assert tree.leaves(Box(pt.ones(1)))[0].shape == (1,)
