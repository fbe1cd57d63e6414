# ruff: noqa: E501 - each expected message is one line
"""The output, the files and the error messages of `cfgd fit` and `cfgd predict`."""

import functools
import gzip
import json
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fit_tables import design, skewed_columns, targets, write
from pyarrow import csv, feather
from scipy.special import softmax
from typer.testing import CliRunner

from cfgd._core.extras import install_command
from cfgd.apps.cli import app
from cfgd.apps.fit.table_formats import ENDINGS

CSV = "a,b,y\n1,2,3\n2,5,4\n3,1,9\n"


def cfgd(*arguments):
    result = CliRunner().invoke(app, list(map(str, arguments)), env={"COLUMNS": "500"})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


@pytest.fixture
def data(tmp_path):
    return lambda loss: write_table(loss, tmp_path)


def write_table(loss, folder):
    random, columns, eta = skewed_columns()
    return write(folder / "data.csv", columns | {"y": targets(loss, random, eta)})


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """Fit once per loss; return the data file, the output folder, the exit code and the output."""

    @functools.cache
    def run(loss):
        path = write_table(loss, tmp_path_factory.mktemp("data"))
        out = path.parent / "out"
        options = (
            () if loss in ("squared", "logistic") else ("--loss", loss)
        )  # the others are the defaults
        return path, out, *cfgd("fit", path, "--target", "y", *options, "--out", out)

    return run


def test_fit_prints_results_and_writes_files(fitted):
    _, out, code, output = fitted("logistic")
    assert code == 0
    for text in (
        "Logistic regression of 'y' on 3 columns (because the target has two values), fitted to ",
        "The positive class is 'yes', the other one 'no'.",
        "the odds ratio is exp(coefficient).",
        "odds ratio",
        "rows of data.csv,",
        "held out for testing.",
        "kind = c & d",
        "standard error",
        "area under the ROC curve",
        "Collinearity is low: the condition number of the standardised columns is ",
        "The baseline predicts the class shares of the training rows for every row; on ",
        "The reference level is 'b' for 'kind'; the coefficients of other levels are relative to it.",
        "Converged in ",
        str(out / "model.json"),
    ):
        assert text in output
    files = ["coefficients.csv", "model.json", "report.html"]
    assert sorted(file.name for file in out.iterdir()) == files
    saved = json.loads((out / "model.json").read_text(encoding="utf-8"))
    assert saved["format"] == "cfgd model 1"
    assert f"{saved['terms'][0]['coefficient'][0]:.5g}" in output
    assert f"{saved['terms'][0]['standard error'][0]:.5g}" in output


@pytest.mark.slow
def test_fit_resumes_from_a_checkpoint(data, tmp_path):
    path, file = data("logistic"), tmp_path / "run.npz"
    call = ("fit", path, "--target", "y", "--checkpoint", file, "--out")
    assert cfgd(*call, tmp_path / "first")[0] == 0
    assert file.exists()
    assert cfgd(*call, tmp_path / "second")[0] == 0
    one, two = (
        json.loads((tmp_path / name / "model.json").read_text()) for name in ("first", "second")
    )
    assert one["terms"] == two["terms"]
    code, output = cfgd(*call, tmp_path / "third", "--l2", "3")
    assert code != 0
    assert "of another one" in output


@pytest.mark.slow
def test_two_processes_fit_the_same_model(fitted, tmp_path, capfd, monkeypatch):
    """Each process has a share of an odd number of rows; only the first one prints."""
    path, out, code, output = fitted("logistic")
    monkeypatch.setenv("COLUMNS", "500")
    assert cfgd("fit", path, "--target", "y", "--processes", "2", "--out", tmp_path)[0] == code
    printed = capfd.readouterr().out
    assert printed.count("Converged in") == output.count("Converged in") == 1
    one, two = (json.loads((of / "model.json").read_text()) for of in (out, tmp_path))
    assert [term["term"] for term in two["terms"]] == [term["term"] for term in one["terms"]]
    for a, b in zip(one["terms"], two["terms"], strict=True):
        for name in ("coefficient", "standard error"):
            np.testing.assert_allclose(b[name], a[name], 1e-8, 1e-12)


@pytest.mark.slow
def test_output_mentions_that_figures_show_a_sample(data, tmp_path, monkeypatch):
    for module in ("quality", "report_text"):
        monkeypatch.setattr(f"cfgd.apps.fit.{module}.SAMPLE", 20)
    _, output = cfgd("fit", data("logistic"), "--target", "y", "--out", tmp_path)
    assert (
        "The area under the ROC curve, average precision, calibration and the figures use only the first 20 of these rows."
        in output
    )


@pytest.mark.slow
def test_progress_is_shown_on_a_terminal(data, tmp_path):
    from rich.console import Console

    from cfgd.apps.fit.console import run_fit
    from cfgd.apps.fit.run import FitOptions

    for memory in (None, 2000.0):
        with open(tmp_path / "screen", "w", encoding="utf-8") as file:
            console = Console(file=file, force_terminal=True, width=120)
            run_fit(
                console, FitOptions(data("poisson"), "y", loss="poisson", memory=memory), tmp_path
            )
        screen = (tmp_path / "screen").read_text(encoding="utf-8")
        assert "━" in screen
        assert "%" in screen


READ = {
    ".csv": csv.read_csv,
    ".csv.gz": csv.read_csv,
    ".parquet": pq.read_table,
    ".feather": feather.read_table,
}


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["poisson", "logistic", "multinomial"])
def test_predictions_follow_from_the_coefficients(fitted, tmp_path, loss):
    path, folder, *_ = fitted(loss)
    saved = json.loads((folder / "model.json").read_text(encoding="utf-8"))
    table = csv.read_csv(path)
    X = design({name: table[name].to_numpy() for name in ("small", "kind", "large")})
    p = X @ np.array([term["coefficient"] for term in saved["terms"]])
    probabilities = softmax(np.column_stack([0 * p, p]) if loss == "logistic" else p, axis=1)
    for ending, read in READ.items():
        out = tmp_path / f"out{ending}"
        code, output = cfgd("predict", folder / "model.json", path, "-o", out)
        assert (code, output.splitlines()[0]) == (0, "240 predictions of 'y' written to:")
        found = read(out)
        if loss == "poisson":
            np.testing.assert_allclose(found["prediction"].to_numpy(), np.exp(p[:, 0]), rtol=1e-12)
            continue
        for label, probability in zip(saved["labels"], probabilities.T, strict=True):
            written = found[f"probability of {label}"].to_numpy()
            np.testing.assert_allclose(written, probability, rtol=1e-9, atol=1e-15)
        best = np.array(saved["labels"])[probabilities.argmax(1)]
        assert found["prediction"].to_pylist() == best.tolist()


def test_integer_labels_are_written_as_integers(data, tmp_path):
    random, columns, eta = skewed_columns()
    y = np.where(targets("logistic", random, eta) == "yes", 7, 3)
    path = write(tmp_path / "a.parquet", columns | {"y": y})
    cfgd("fit", path, "--target", "y", "--out", tmp_path)
    cfgd("predict", tmp_path / "model.json", path, "-o", tmp_path / "p.csv")
    first = (tmp_path / "p.csv").read_text().splitlines()
    assert first[0] == '"prediction","probability of 3","probability of 7"'
    assert {line.split(",")[0] for line in first[1:]} == {"3", "7"}


@pytest.mark.slow
@pytest.mark.parametrize("missing", ["drop", "mean"])
def test_predictions_treat_missing_values_as_the_fit_did(tmp_path, missing):
    random, columns, eta = skewed_columns()
    columns["large"][5] = np.nan
    path = write(tmp_path / "a.parquet", columns | {"y": targets("squared", random, eta)})
    cfgd("fit", path, "--target", "y", "--out", tmp_path, "--missing", missing)
    code, output = cfgd("predict", tmp_path / "model.json", path, "-o", tmp_path / "p.parquet")
    assert code == 0, output
    found = pq.read_table(tmp_path / "p.parquet")["prediction"]
    if missing == "drop":
        assert [i for i, value in enumerate(found.to_pylist()) if value is None] == [5]
        return
    saved = json.loads((tmp_path / "model.json").read_text(encoding="utf-8"))
    columns["large"][5] = saved["columns"][2]["mean"]
    w = np.array([term["coefficient"][0] for term in saved["terms"]])
    np.testing.assert_allclose(found.to_numpy(), design(columns) @ w, rtol=1e-12)


def lines(*rows):
    return "\n".join(rows) + "\n"


MANY = lines("a,y", *(f"t{i // 10},{i}" for i in range(12_000)))
NO_HOLD = ("--test", "0")
INVALID_FITS = {
    # file name, content, options, the message after "cfgd: "
    "a missing target": ("d.csv", CSV, ("--target", "z"), "--target: {path} has no column 'z', only 'a', 'b', 'y'."),
    "nothing to drop": ("d.csv", CSV, ("--drop", "z"), "--drop: {path} has no column 'z', only 'a', 'b', 'y'."),
    "the target dropped": ("d.csv", CSV, ("--drop", "y"), "--drop: 'y' is the target."),
    "no features": ("d.csv", "y\n1\n2\n", (), "{path} has no column besides the target 'y'."),
    "an empty file": ("d.csv", "", (), "{path} is empty."),
    "an empty archive": ("d.csv.gz", gzip.compress(b""), (), "{path} is empty."),
    "no rows": ("d.csv", "a,y\n", (), "{path} has no rows."),
    "duplicated names": ("d.csv", "a,a,y\n1,2,3\n", (), "{path} has more than one column 'a': rename all but one."),
    "a short line": ("d.csv", "a,y\n1,2\n3\n", (), "{path}: row 2 has 1 field where the header has 2: '3': a text with the separator in it must be in quotes, and a row that is none of the table must be deleted."),
    "a missing value": ("d.csv", "a,y\n1,2\n,3\n", (), "{path}: the column 'a' has a missing value in row 2: use --missing drop to leave out such rows, or --missing mean to impute the mean of the column."),
    "a missing value of the target": ("d.csv", "a,y\n1,2\n1,\n", (), "{path}: the column 'y' has a missing value in row 2: use --missing drop to leave out such rows."),
    "a target without a mean": ("d.csv", "a,y\n1,2\n1,\n", ("--missing", "mean"), "{path}: the column 'y' has a missing value in row 2: the target has no mean to impute, use --missing drop to leave out such rows."),
    "only rows with missing values": ("d.csv", "a,y\n,2\n1,\n", ("--missing", "drop"), "{path}: every row has a missing value, so no row is left."),
    "infinity": ("d.csv", "a,y\n1,2\ninf,3\n", (), "{path}: the column 'a' must be finite, got inf in row 2: --na inf takes it as missing."),
    "nothing that varies": ("d.csv", "a,b,y\n5,u,1\n5,u,2\n5,u,4\n", NO_HOLD, "{path}: no column varies in the training rows besides the target 'y': 'a', 'b'."),
    "a constant target": ("d.csv", "a,y\n1,5\n2,5\n", NO_HOLD, "{path}: the target 'y' is constant (5)."),
    "too many texts": ("d.csv", MANY, ("--rare", "0"), "{path}: the column 'a' has more than 1000 different texts, too many for categories: leave it out with --drop a, or pool rare ones with --rare."),
    "too few rows": ("d.csv", CSV, NO_HOLD, "{path}: 3 training rows do not determine 3 coefficients: add a penalty with --l2 or --cross-validate."),
    "a text for squares": ("d.csv", "a,y\n1,u\n2,v\n3,u\n", ("--loss", "squared", *NO_HOLD), "--loss squared: the target 'y' is a text; the losses for texts are logistic and multinomial."),
    "three labels": ("d.csv", "a,y\n1,u\n2,v\n3,w\n", ("--loss", "logistic", *NO_HOLD), "--loss logistic: the target 'y' must have two values, got 3: use --loss multinomial."),
    "too many labels": ("d.csv", lines("a,y", *(f"{i},t{i}" for i in range(200))), NO_HOLD, "the target 'y' has more than 100 different texts, too many for class labels."),
    "a negative count": ("d.csv", "a,y\n1,-2\n2,3\n3,4\n", ("--loss", "poisson", *NO_HOLD), "--loss poisson: the target 'y' must not be negative, got -2."),
    "a zero for gamma": ("d.csv", "a,y\n1,0\n2,3\n3,4\n", ("--loss", "gamma", *NO_HOLD), "--loss gamma: the target 'y' must be positive, got 0."),
    "both penalties": ("d.csv", CSV, ("--l2", "1", "--cross-validate"), "--l2 and --cross-validate: give one of them, not both."),
    "a negative penalty": ("d.csv", CSV, ("--l2", "-1"), "--l2 must be a number of at least 0, got -1."),
    "a share of rows": ("d.csv", CSV, ("--test", "1.5"), "--test must be a share from 0 to 0.9, got 1.5."),
    "no memory": ("d.csv", CSV, ("--memory", "0"), "--memory must be positive, got 0."),
    "an unknown loss": ("d.csv", CSV, ("--loss", "hinge"), "--loss must be one of squared, logistic, poisson, gamma, huber, multinomial, got 'hinge'."),
    "an unknown method": ("d.csv", CSV, ("--method", "adam"), "--method must be one of auto, adaptive_terminal, gradient_descent, got 'adam'."),
    "an unknown policy for missing values": ("d.csv", CSV, ("--missing", "zero"), "--missing must be one of refuse, drop, mean, got 'zero'."),
    "coordinate derivatives of streamed rows": ("d.csv", lines("a,y", *(f"{i * i},{i}" for i in range(40))), ("--method", "adaptive_terminal", "--memory", "1e-5"), "--method adaptive_terminal needs derivatives along every column, and the rows do not fit into --memory: use --method auto, which takes one pass over the rows for each gradient."),
    "an unknown format": ("d.xls", CSV, (), "{path}: the name must end in .csv, .tsv, .txt, .jsonl, .ndjson, .json (each also with .gz or .zst), .xlsx, .parquet, .feather, .npz."),
    "CSV named Excel": ("d.xlsx", CSV, (), "{path} is not Excel, as its name says: it begins with b'a,b,y\\n1,2,3\\n'."),
    "texts that are all different": ("d.csv", lines("a,y", *(f"t{i},{i}" for i in range(9))), (), "{path} has no column besides the target 'y' and ids or empty columns: 'a'."),
    "CSV named Parquet": ("d.parquet", CSV, (), "{path} is not Parquet, as its name says: it begins with b'a,b,y\\n1,2,3\\n'."),
    "gzip named CSV": ("d.csv", gzip.compress(CSV.encode()), (), "{path} is not CSV, as its name says: it is gzip."),
    "CSV named gzip": ("d.csv.gz", CSV, (), "{path} is not CSV, as its name says: it begins with b'a,b,y\\n1,2,3\\n'."),
    "truncated gzip": ("d.csv.gz", gzip.compress(CSV.encode())[:-12], (), "{path} is damaged: it cannot be decompressed."),
    "Feather named NPZ": ("d.npz", b"ARROW1\0\0 and more", (), "{path} is not NPZ, as its name says: it is Feather."),
    "a truncated archive": ("d.npz", b"PK\x03\x04 and no more", (), "{path} cannot be read as NPZ: File is not a zip file."),
}  # fmt: skip


@pytest.mark.parametrize("case", INVALID_FITS)
def test_invalid_fits_print_one_message_and_write_nothing(tmp_path, case):
    name, content, options, message = INVALID_FITS[case]
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    target = () if "--target" in options else ("--target", "y")
    code, output = cfgd("fit", path, *target, *options, "--out", tmp_path / "out")
    assert output == f"cfgd: {message.format(path=path)}\n"
    assert code == 2
    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_missing_files_and_folders_print_one_message(tmp_path):
    assert cfgd("fit", tmp_path / "x.csv", "--target", "y") == (
        2,
        f"cfgd: There is no file {tmp_path / 'x.csv'}.\n",
    )
    assert cfgd("fit", tmp_path, "--target", "y") == (
        2,
        f"cfgd: The folder {tmp_path} has no file of {', '.join(ENDINGS)}.\n",
    )


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"X": np.ones((3, 2)), "y": np.ones(4)}, ": 'X' has 3 rows and 'y' has 4."),
        (
            {"y": np.ones((2, 2, 2))},
            " cannot be read as NPZ: 'y' must be a vector or a matrix, got shape (2, 2, 2).",
        ),
        (
            {"y": np.ones(3, complex)},
            " cannot be read as NPZ: 'y' has dtype complex128, not of real numbers or texts.",
        ),
        (
            {"y": np.array([{}, None])},
            " cannot be read as NPZ: 'y.npy' is an array of dtype object, not of numbers or texts.",
        ),
    ],
)
def test_invalid_arrays_in_npz(tmp_path, arrays, message):
    path = tmp_path / "a.npz"
    np.savez(path, **arrays)
    code, output = cfgd("fit", path, "--target", "y", "--out", tmp_path / "out")
    assert (code, output) == (2, f"cfgd: {path}{message}\n")


def test_duplicate_names_in_npz(tmp_path):
    np.savez(tmp_path / "a.npz", X=np.ones((3, 2)), X_1=np.ones(3), y=np.arange(3))
    _, output = cfgd("fit", tmp_path / "a.npz", "--target", "y", "--out", tmp_path / "out")
    assert output.endswith("a.npz has more than one column 'X_1': rename all but one.\n")


@pytest.fixture
def model(fitted):
    return fitted("squared")[1] / "model.json"


INVALID_PREDICTIONS = {
    "other columns": ({"small": [1.0], "large": [2.0]}, "{path} has no column 'kind', which the model needs, only 'small', 'large'."),
    "another kind": ({"small": [1.0], "kind": [3.0], "large": [2.0]}, "{path}: the column 'kind' must be a text as in the training data, got a number."),
    "a text for a number": ({"small": ["u"], "kind": ["a"], "large": [2.0]}, "{path}: the column 'small' must be a number as in the training data, got 'u' in row 1."),
    "a missing value": ({"small": [1.0, None], "kind": ["a", "a"], "large": [2.0, 3.0]}, "{path}: the column 'small' has a missing value in row 2, and the model was fitted with --missing refuse."),
    "infinity": ({"small": [1.0, np.inf], "kind": ["a", "a"], "large": [2.0, 3.0]}, "{path}: the column 'small' must be finite, got infinity in row 2."),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("case", INVALID_PREDICTIONS)
def test_invalid_predictions_print_one_message_and_write_nothing(model, tmp_path, case):
    columns, message = INVALID_PREDICTIONS[case]
    path, out = tmp_path / "new.parquet", tmp_path / "p.csv"
    pq.write_table(pa.table(columns), path)
    before = sorted(tmp_path.iterdir())
    assert cfgd("predict", model, path, "-o", out) == (2, f"cfgd: {message.format(path=path)}\n")
    assert sorted(tmp_path.iterdir()) == before


def test_predictions_do_not_overwrite_their_input(model, data, tmp_path):
    path = data("squared")
    output = cfgd("predict", model, path, "-o", path)[1]
    assert output == f"cfgd: {path} is the data file: choose another name for the predictions.\n"
    output = cfgd("predict", model, path, "-o", model)[1]
    assert output == f"cfgd: {model} is the model file: choose another name for the predictions.\n"
    output = cfgd("predict", model, path, "-o", tmp_path / "p.npz")[1]
    assert output.endswith("the name must end in .csv, .csv.gz, .parquet or .feather.\n")


def test_a_missing_library_prints_one_message(data, monkeypatch):
    path = data("squared")
    for name in [name for name in sys.modules if name.startswith("cfgd.apps.fit")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    output = f"cfgd: `cfgd.apps.fit` needs pyarrow: {install_command('fit')}.\n"
    assert cfgd("fit", path, "--target", "y") == (2, output)


@pytest.mark.slow
def test_a_fit_that_does_not_converge_exits_with_1(data, tmp_path):
    _, columns, _ = skewed_columns()
    y = np.where(columns["large"] > 500, "up", "down")
    path = write(tmp_path / "a.parquet", columns | {"y": y})
    code, output = cfgd("fit", path, "--target", "y", "--out", tmp_path)
    assert code == 1
    assert "Not converged: the classes are separated." in output
