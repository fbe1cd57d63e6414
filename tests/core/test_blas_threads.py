"""One thread for BLAS: set where threadpoolctl is installed, and restored."""

import numpy as np
import pytest

from cfgd._core import blas_threads

threadpoolctl = pytest.importorskip("threadpoolctl")


def numbers_of_threads():
    np.ones((2, 2)) @ np.ones(2)  # so that BLAS is loaded
    found = threadpoolctl.threadpool_info()
    return [library["num_threads"] for library in found if library["user_api"] == "blas"]


def test_one_thread_inside_and_the_old_number_after():
    before = numbers_of_threads()
    with blas_threads.one_blas_thread(100):
        assert set(numbers_of_threads()) == {1}
    assert numbers_of_threads() == before


def test_nothing_changes_without_threadpoolctl(monkeypatch):
    monkeypatch.setattr(blas_threads, "_controller", lambda: None)
    before = numbers_of_threads()
    with blas_threads.one_blas_thread(100):
        assert numbers_of_threads() == before


def test_small_matrices_leave_the_number_alone(monkeypatch):
    def limit():
        raise AssertionError("a small matrix needs no limit")

    monkeypatch.setattr(blas_threads, "_controller", limit)
    with blas_threads.one_blas_thread(blas_threads.FEW_ROWS):
        pass
    with pytest.raises(AssertionError), blas_threads.one_blas_thread(blas_threads.FEW_ROWS + 1):
        pass
