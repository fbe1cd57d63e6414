"""Runs of `curve_fit_many` in several blocks: threads, progress, Ctrl-C and checkpoints."""

import signal

import numpy as np
import pytest
from many_decays import Stored, T, Y, fit, same

from cfgd.fitting.many import inputs, run
from cfgd.fitting.many.regions import regions


@pytest.fixture(scope="module")
def fits():
    return fit()


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of 32 fits, of which 16 take steps at a time: the cube has three of them."""
    monkeypatch.setattr(inputs, "MOST_SLOTS", 16)
    monkeypatch.setattr(run, "PER_SLOT", 2)


@pytest.mark.usefixtures("small_blocks")
class TestBlocks:
    def test_blocks_and_threads_change_nothing(self, fits):
        one, two = fit(threads=1), fit(threads=2)
        same(one, two)
        for name in fits.names:
            np.testing.assert_allclose(one.values[name], fits.values[name], rtol=1e-9, atol=1e-12)
        np.testing.assert_array_equal(one.status, fits.status)

    def test_progress(self, capsys):
        fit(progress=True)
        lines = capsys.readouterr().err.split("\r")
        assert "77/77  2 failed" in lines[-1]
        assert "fits/s" in lines[-1]

    @pytest.fixture(autouse=True)
    def usual_handler(self):
        """Ctrl-C may be ignored, where a shell has started the tests in the background."""
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        yield
        signal.signal(signal.SIGINT, before)

    def interrupted(self, **options):
        class Interrupting(Stored):
            def __getitem__(self, index):
                if self.read > 2 * T.size:  # what a checkpoint compares
                    signal.raise_signal(signal.SIGINT)
                return super().__getitem__(index)

        return fit(Interrupting(Y), threads=1, **options)

    def test_ctrl_c_returns_what_is_done(self, fits):
        found = self.interrupted()
        stopped = found.status == "interrupted"
        assert 0 < stopped.sum() < 77
        assert np.isnan(found.parameters[stopped]).all()
        np.testing.assert_allclose(
            found.parameters[~stopped], fits.parameters[~stopped], rtol=1e-8, atol=1e-9
        )
        assert found.failed["interrupted"] == stopped.sum()

    def test_a_checkpoint_goes_on(self, tmp_path):
        path = tmp_path / "fits.npz"
        self.interrupted(checkpoint=path)
        stored = Stored(Y)
        found = fit(stored, checkpoint=path)
        same(found, fit())
        assert stored.read < Y.size  # the first block is in the file
        again = Stored(Y)
        same(fit(again, checkpoint=path), found)
        assert again.read == 2 * T.size  # the first and the last fit, which are compared

    def test_the_checkpoint_of_other_fits_is_refused(self, tmp_path):
        path = tmp_path / "fits.npz"
        fit(checkpoint=path)
        for other in ({"p0": [1.0, 2.0, 0.0]}, {"data": 2 * Y}, {"max_iterations": 7}):
            with pytest.raises(ValueError, match=r"checkpoint=.* of another one"):
                fit(checkpoint=path, **other)
        path.write_bytes(path.read_bytes()[:-50])
        with pytest.raises(ValueError, match=r"The checkpoint .* is damaged"):
            fit(checkpoint=path)


@pytest.mark.parametrize(
    ("shape", "largest"), [((10,), 4), ((3, 5), 4), ((3, 5), 7), ((2, 3, 4), 12), ((2, 3), 100)]
)
def test_regions_cover_all_fits_in_order(shape, largest):
    numbers = np.arange(np.prod(shape))
    array = numbers.reshape(*shape, 1) * np.ones(2)
    parts = list(regions(shape, largest))
    assert max(region.size for region in parts) <= largest
    np.testing.assert_array_equal(np.concatenate([p.read(array)[:, 1] for p in parts]), numbers)
    assert [p.start for p in parts[1:]] == [p.stop for p in parts[:-1]]
