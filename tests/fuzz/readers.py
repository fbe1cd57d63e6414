"""Every reader of files that others may have written: valid files, their damages, their use."""

import base64
import contextlib
import dataclasses
import functools
import gzip
import io
import shutil
import traceback
import warnings
from pathlib import Path

import jax.numpy as jnp
import mutations
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv, feather

import cfgd
from cfgd._core.files import NotWrittenError
from cfgd.apps.fit.columns import NumberColumn, TextColumn
from cfgd.apps.fit.model import Model, read_model
from cfgd.apps.fit.prediction import predict
from cfgd.apps.fit.run import FitOptions, ProgressReporter, fit
from cfgd.apps.reproduce.experiments.network_runs import Curve, is_curve
from cfgd.apps.reproduce.report.claim import Case, Outcome
from cfgd.apps.reproduce.report.result import ExperimentResult, load_results
from cfgd.apps.reproduce.run_cache import RunCache
from cfgd.solve import checkpoint_file

MEMORY = 100e6  # bytes that a reader may take
SOURCE = Path(cfgd.__file__).parent


@dataclasses.dataclass
class Reader:
    """A reader under test.

    `files` are valid files, `read` uses one of them, `edit` damages one with knowledge of its
    format.
    """

    files: list[Path]
    read: object
    edit: object = mutations.damaged

    def mutate(self, n):
        """Write the n-th damaged file and return it."""
        random = mutations.generator(n)
        file = self.files[n % len(self.files)]
        change = self.edit if random.integers(2) else mutations.damaged
        victim = file.with_name(f"damaged-{file.name}")
        victim.write_bytes(change(file.read_bytes(), random))
        return victim

    def problem(self, n):
        """Return what is wrong with the outcome of the n-th mutation, or None."""
        return outcome(self.read, self.mutate(n))


def outcome(read, path):
    """Return None for a normal result or an error that cfgd itself raises, in one sentence."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            read(path)
    except (ValueError, NotWrittenError) as error:
        raised_in = traceback.extract_tb(error.__traceback__)[-1].filename
        message = str(error)
        if not Path(raised_in).is_relative_to(SOURCE):
            return f"raised in {raised_in}: {error!r}"
        if not message.endswith(".") or "\n" in message or len(message) > 2000:
            return f"not one sentence: {error!r}"
    except Exception as error:
        return "".join(traceback.format_exception(error)[-3:])
    return None


# ------------------------------------------------------------------------------------- tables


def columns():
    random = np.random.default_rng(0)
    x, kind = random.normal(size=120), random.choice(["a", "b", "c"], 120)
    return {"x": x, "kind": kind, "y": 2 * x + (kind == "a") + random.normal(size=120)}


def noise(width):
    return np.random.default_rng(1).normal(size=(120, width))


def fit_table(path):
    fit(FitOptions(path, "y", memory=MEMORY, missing="drop"), ProgressReporter())


def table(folder, ending):
    path, data = folder / f"data.{ending}", pa.table(columns())
    if ending == "csv":
        csv.write_csv(data, path)
    elif ending == "csv.gz":
        with gzip.open(path, "wb") as file:
            csv.write_csv(data, file)
    elif ending == "parquet":
        pq.write_table(data, path, row_group_size=50)
    elif ending == "feather":
        feather.write_feather(data, path, chunksize=70, compression="uncompressed")
        other = folder / "packed.feather"
        feather.write_feather(data, other, compression="lz4")
        return Reader([path, other], fit_table, arrow_numbers)
    else:
        np.savez_compressed(path, **columns())
        np.savez(folder / "stored.npz", X=np.asfortranarray(noise(3)), y=columns()["y"])
        return Reader([path, folder / "stored.npz"], fit_table, mutations.edited_npz)
    return Reader([path], fit_table, {"csv": text_of_csv}.get(ending, arrow_numbers))


def arrow_numbers(raw, random):
    """Replace an aligned integer, as offsets, lengths and counts are in Arrow's files."""
    raw, size = bytearray(raw), int(random.choice([4, 8]))
    at = int(random.integers(len(raw) // size)) * size
    value = int(random.choice([0, 1, 7, 2**16, 2**31 - 16, 2**31 - 1, -1, -(2**31)]))
    raw[at : at + size] = value.to_bytes(size, "little", signed=True)
    return bytes(raw)


def text_of_csv(raw, random):
    """Replace a field of a CSV file."""
    lines = raw.split(b"\n")
    i = int(random.integers(len(lines)))
    fields = lines[i].split(b",")
    odd = [b"", b'"', b"\xff", b"1e999", b"nan", b"x" * 300, b"9" * 400, b'"a\nb"', b"\x00", b",,"]
    fields[int(random.integers(len(fields)))] = odd[int(random.integers(len(odd)))]
    lines[i] = b",".join(fields)
    return b"\n".join(lines)


# ------------------------------------------------------------------------------------- Blocks


def blocks(folder, ending):
    random = np.random.default_rng(1)
    X, y = random.normal(size=(120, 3)), random.integers(2, size=120).astype(float)
    path, edit = folder / f"rows.{ending}", mutations.edited_npz
    y_file = folder / "y.npy"
    np.save(y_file, y)
    given = {"y": [y_file]} if ending == "npy" else {}
    if ending == "npy":
        np.save(path, X)
        edit = odd_npy
    elif ending == "npz":
        np.savez(path, X=X, y=y, sample_weight=np.ones(120))
    else:
        edit, given = arrow_numbers, {"target": "y"}
        pq.write_table(pa.table({"a": X[:, 0], "b": X[:, 1], "y": y}), path)

    def read(path):
        stream = cfgd.Blocks([path], l2=1.0, memory=MEMORY, **given).stream
        stream.evaluate(np.zeros(stream.model.dimension))

    return Reader([path], read, edit)


def odd_npy(raw, random):
    return mutations.odd_header(random)


# ------------------------------------------------------------------------------------- JSON files


def models(folder):
    number, text = NumberColumn("x", 0.5), TextColumn("kind", "a", ("b", "c"))
    known = ("mean", (number, text))
    found = [
        Model("y", "squared", (), *known, np.arange(4.0), np.ones(4), {"l2": 0.5}),
        Model("y", "logistic", ("=no", "yes"), *known, np.arange(4.0), None, {}),
        Model("y", "multinomial", (0.0, 1.0, 5.0), *known, np.ones((4, 3)), np.ones((4, 3)), {}),
    ]
    data, files = folder / "data.csv", []
    csv.write_csv(pa.table(columns()), data)
    for model in found:
        files.append(folder / f"{model.loss}.json")
        model.save(files[-1])

    def read(path):
        predict(read_model(path), data, folder / "out.csv", MEMORY, lambda rows: None)

    return Reader(files, read, mutations.edited_json)


def solutions(folder):
    X = np.random.default_rng(2).normal(size=(20, 3))
    f = cfgd.LeastSquares(X, X @ [1.0, 2.0, 3.0] + 0.1)
    one = cfgd.minimize(f, np.zeros(3))
    several = cfgd.sweep(f, np.zeros((2, 3)), cfgd.Auto())
    files = [folder / "one.json", folder / "several.json"]
    for solution, file in zip((one, several), files, strict=True):
        solution.to_json(file)

    def read(path):
        solution = cfgd.Solution.from_json(path)
        repr(solution), solution.message, solution.success
        if not isinstance(solution.status, cfgd.Status):
            for part in solution:
                repr(part)
        solution.to_json(folder / "again.json")

    return Reader(files, read, mutations.edited_json)


PNG = b"\x89PNG\r\n\x1a\n and more"
SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><path d="M 0 0 L 1 1"/></svg>'


def parts(folder):
    case = Case("a case", 1.0, 2, 3, True)
    outcome = Outcome("says", "figure 1", "at most 4", (1.0, 2.0), 1.5, 1.0, "holds", "", (case,))
    key = {"size": "quick", "seeds": 2, "data": None, "version": "1"}
    result = ExperimentResult(
        *(
            "fig1",
            "title",
            "where",
            "about",
            "missing",
            "conclusion",
            key,
            (outcome,),
            {"a": [1, 2]},
        ),
        *(("note",), ((("panel", SVG),),), base64.b64encode(PNG).decode(), 2.0),
    )
    result.save(folder)
    said = []

    def read(path):
        place = folder / "read"
        shutil.rmtree(place, ignore_errors=True)
        (place / "parts").mkdir(parents=True)
        shutil.copy(path, place / "parts" / "fig1.json")
        for found in load_results(place, said.append).values():
            found.write_png(place)
        if said and ("\n" in said[-1] or not said.pop().endswith(".")):
            raise AssertionError(f"not one sentence: {said}")

    return Reader([folder / "parts" / "fig1.json"], read, mutations.edited_json)


def cached_runs(folder):
    curve = Curve(np.arange(5.0), np.ones(5), np.arange(2.0), np.ones(2), np.array(1.5))
    cache = RunCache(folder, "long", {})

    def run():
        return {name: np.asarray(part) for name, part in curve._asdict().items()}

    cache.get_or_run("a", run, is_curve)
    (file,) = cache.folder.iterdir()
    valid = folder / "curve.npz"
    shutil.copy(file, valid)

    def read(path):
        shutil.copy(path, file)
        arrays, _ = cache.get_or_run("a", run, is_curve)
        Curve(**arrays).at(3)

    return Reader([valid], read, mutations.edited_npz)


# ------------------------------------------------------------------------------------- checkpoints


def valley(x):
    return jnp.sum((x[1:] - x[:-1] ** 2) ** 2) + jnp.sum((1 - x) ** 2)


@functools.cache
def problems():
    random = np.random.default_rng(3)
    B = random.normal(size=(6, 6))
    quadratic = cfgd.Quadratic(B @ B.T + np.eye(6), random.normal(size=6))
    linear = cfgd.LinearModel(random.normal(size=(40, 6)), random.integers(2, size=40), l2=0.1)
    return {
        "compiled": (quadratic, cfgd.AdaptiveTerminal(gamma=-0.2, lag=3)),
        "cg": (quadratic, cfgd.Auto()),
        "lbfgs": (valley, cfgd.Auto()),
        "lm": (linear, cfgd.Auto()),
    }


def resume(path, most=12):
    name = path.stem.removeprefix("damaged-")
    objective, method = problems()[name]
    with contextlib.suppress(FileNotFoundError):
        checkpoint_file.previous_path(path).unlink()
    options = {"max_iterations": most, "checkpoint": path, "tolerance": 1e-14}
    return cfgd.minimize(objective, np.full(6, 0.5), method, **options)


def checkpoints(folder):
    files = [folder / f"{name}.npz" for name in problems()]
    for file in files:
        resume(file, 4)
    return Reader(files, resume, edited_checkpoint)


def edited_checkpoint(raw, random):
    """Edit the content of a checkpoint and give it a valid checksum."""
    if random.integers(4) == 0:
        return mutations.edited_npz(raw, random)
    meta, arrays = checkpoint_file.read(io.BytesIO(raw))
    kind = random.integers(3)
    if kind == 0:
        mutations.edit_json(meta, random)
    elif kind == 1:
        mutations.edit_json(meta["tree"], random)
    else:
        arrays = list(arrays)
        arrays[int(random.integers(len(arrays)))] = mutations.odd_array(random)
    buffer = io.BytesIO()
    checkpoint_file.put(buffer, meta, arrays)
    return buffer.getvalue()


READERS = {
    "model.json": models,
    "Solution JSON": solutions,
    "checkpoint": checkpoints,
    "parts of reproduce": parts,
    "runs of reproduce": cached_runs,
    **{
        ending.upper(): functools.partial(table, ending=ending)
        for ending in ("csv", "csv.gz", "parquet", "feather", "npz")
    },
    **{
        f"Blocks of {ending.upper()}": functools.partial(blocks, ending=ending)
        for ending in ("npy", "npz", "parquet")
    },
}


def reader(name, folder):
    """Return a reader after a test that it takes the files as they were written."""
    found = READERS[name](folder)
    for file in found.files:
        copy = file.with_name(f"damaged-{file.name}")
        shutil.copy(file, copy)
        problem = outcome_of_valid(found.read, copy)
        assert problem is None, problem
    return found


def outcome_of_valid(read, path):
    try:
        read(path)
    except Exception as error:
        return "".join(traceback.format_exception(error))
    return None
