"""The fit of another library, as a script: `python tables_rivals.py FILE TARGET LIBRARY`.

It reads the file with pandas and fits a linear or logistic model without a penalty to 80 % of the
rows, as `cfgd fit` does. It imports nothing of cfgd.
"""

from __future__ import annotations

import sys

OTHERS = ["y", "label"]


def main(path: str, target: str, library: str) -> None:
    """Read the file and fit the model; the imports are part of the measured time."""
    import pandas as pd

    table = pd.read_csv(path)
    m = len(table) * 4 // 5
    X, y = table.drop(columns=OTHERS).to_numpy()[:m], table[target].to_numpy()[:m]
    if library == "scikit-learn":
        from sklearn.linear_model import LinearRegression, LogisticRegression

        if target == "y":
            LinearRegression().fit(X, y)
        else:  # its fastest solver for few columns; C = inf means no penalty
            LogisticRegression(C=float("inf"), solver="newton-cholesky", tol=1e-6).fit(X, y)
        return
    import statsmodels.api as sm

    X = sm.add_constant(X)
    found = sm.OLS(y, X).fit() if target == "y" else sm.Logit(y, X).fit(disp=0)
    print(found.bse[0])  # statsmodels computes standard errors on access


if __name__ == "__main__":
    main(*sys.argv[1:])
