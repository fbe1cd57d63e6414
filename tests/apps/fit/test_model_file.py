"""model.json is read as it was written; errors in a damaged one name the field."""

import json

import numpy as np
import pytest

from cfgd.apps.fit.columns import NumberColumn, TextColumn
from cfgd.apps.fit.model import Model, read_model

COLUMNS = (NumberColumn("a", 1.5), TextColumn("ü \x1b", "base", ("x", "y")))
MODELS = {
    "squared": Model(
        "t", "squared", (), "mean", COLUMNS, np.array([0.1, 1 / 3, -2e-300, 4.0]), None, {"l2": 0.5}
    ),
    "logistic": Model(
        "t", "logistic", (0.0, 2.5), "refuse", COLUMNS, np.arange(4.0), np.ones(4), {}
    ),
    "multinomial": Model(
        "t",
        "multinomial",
        ("u", "v", "w"),
        "drop",
        COLUMNS,
        np.arange(12.0).reshape(4, 3),
        np.ones((4, 3)),
        {"status": None},
    ),
}


@pytest.mark.parametrize("loss", MODELS)
def test_a_model_is_read_bit_for_bit(tmp_path, loss):
    model, path = MODELS[loss], tmp_path / "model.json"
    model.save(path)
    loaded = read_model(path)
    np.testing.assert_array_equal(loaded.coefficients, model.coefficients)
    np.testing.assert_array_equal(loaded.errors, model.errors)
    for name in ("target", "loss", "labels", "missing", "columns", "facts"):
        assert getattr(loaded, name) == getattr(model, name)


def change(saved, place, value):
    *path, last = place
    for key in path:
        saved = saved[key]
    if value is DELETED:
        del saved[last]
    else:
        saved[last] = value


DELETED = object()
DAMAGES = [
    (("format",), "cfgd model 2", "format must be 'cfgd model 1', got 'cfgd model 2'"),
    (("format",), DELETED, "the field 'format' of the part is missing"),
    (("facts",), DELETED, "the field 'facts' of the part is missing"),
    (("more",), 1, "the field 'more' of the part is unknown"),
    (("target",), 3, "target must be text, got 3"),
    (("missing",), "zero", "missing must be 'refuse' or 'drop' or 'mean', got 'zero'"),
    (("labels",), ["u"], "labels must be at least 2 labels for the loss multinomial, got 1"),
    (("labels", 1), "u", "labels must be distinct, and all texts or all numbers"),
    (("labels", 1), 3, "labels must be distinct, and all texts or all numbers"),
    (("columns",), [], "columns must be at least one and have different names"),
    (("columns", 0, "kind"), "date", "columns[0].kind must be 'number' or 'text', got 'date'"),
    (("columns", 0, "mean"), None, "columns[0].mean must be a number, got None"),
    (("columns", 0, "mean"), float("nan"), "columns[0].mean must be a finite number, got nan"),
    (("columns", 1, "levels"), ["x"], "terms must be 3, as many as the columns give, got 4"),
    (
        ("columns", 1, "levels"),
        ["x", "base"],
        "the base and the levels of the column 'ü \\x1b' must be distinct",
    ),
    (("target",), "\ud800", "target must be text, got '\\ud800'"),
    (("labels", 1), "\ud800", "labels[1] must be text, got '\\ud800'"),
    (("terms", 0, "term"), "b", "terms[0].term must be 'a', got 'b'"),
    (("terms", 0, "coefficient"), [1.0], "terms[0].coefficient must be 3 numbers, got 1"),
    (
        ("terms", 2, "coefficient", 1),
        float("inf"),
        "terms[2].coefficient[1] must be a finite number, got inf",
    ),
    (("terms", 3, "standard error"), None, "terms[3].standard error must be 3 numbers, got null"),
    (("terms", 3), 7, "terms[3] must be an object, got 7"),
]


@pytest.mark.parametrize(("place", "value", "message"), DAMAGES)
def test_errors_of_a_damaged_model_name_the_field(tmp_path, place, value, message):
    path = tmp_path / "model.json"
    MODELS["multinomial"].save(path)
    saved = json.loads(path.read_text(encoding="utf-8"))
    change(saved, place, value)
    path.write_text(json.dumps(saved), encoding="utf-8")
    with pytest.raises(ValueError, match="not a valid model") as error:
        read_model(path)
    assert str(error.value) == f"{path} is not a valid model: {message}."


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "line 1 is not JSON (Expecting property name enclosed in double quotes)"),
        (b"\xff\xff", "it is not JSON"),
        (b"[]", "it must be an object, got a list"),
    ],
)
def test_files_that_are_not_models_are_errors(tmp_path, content, message):
    path = tmp_path / "model.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="not a valid model") as error:
        read_model(path)
    assert str(error.value) == f"{path} is not a valid model: {message}."
