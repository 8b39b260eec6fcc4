"""Decorated functions and methods are copied and pickled as plain ones are."""

import copy
import pickle

import pytest

import llmlat_otel


@llmlat_otel.tool()
def quote(price):
    return price


class Desk:
    """Has tools for methods."""

    def __init__(self, price):
        self.price = price

    @llmlat_otel.tool()
    def quote(self):
        return self.price

    @classmethod
    @llmlat_otel.tool()
    def kind(cls):
        return cls

    @staticmethod
    @llmlat_otel.tool()
    def rate():
        return 3


COPIES = [copy.copy, copy.deepcopy, lambda original: pickle.loads(pickle.dumps(original))]


@pytest.mark.parametrize("copied", COPIES, ids=["copy", "deepcopy", "pickle"])
def test_what_is_decorated_is_copied_as_a_function_is(copied, record):
    assert copied(quote) is quote
    desk = Desk(7)
    assert copied(desk.quote)() == 7
    assert copied(Desk.quote)(desk) == 7
    assert copied(Desk.kind)() is Desk
    assert copied(desk.rate)() == copied(Desk.rate)() == 3


def test_a_copied_method_is_bound_to_the_copy(record):
    desk = Desk(7)
    method = copy.deepcopy(desk.quote)
    desk.price = 8
    assert method() == 7
