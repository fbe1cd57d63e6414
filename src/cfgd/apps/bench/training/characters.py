"""Prediction of the next character of a text by a dense network over an embedded window."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from cfgd.apps.bench.training.problem import (
    TrainingProblem,
    cross_entropy,
    dense,
    dense_init,
    error_rate,
)

WINDOW, EMBEDDING, HIDDEN = 8, 8, 64

# Abraham Lincoln at Gettysburg, 1863, and his second inaugural address, 1865, in lower case
TEXT = (
    "four score and seven years ago our fathers brought forth on this continent, a new nation, "
    "conceived in liberty, and dedicated to the proposition that all men are created equal. "
    "now we are engaged in a great civil war, testing whether that nation, or any nation so "
    "conceived and so dedicated, can long endure. we are met on a great battle-field of that war. "
    "we have come to dedicate a portion of that field, as a final resting place for those who "
    "here gave their lives that that nation might live. it is altogether fitting and proper that "
    "we should do this. but, in a larger sense, we can not dedicate - we can not consecrate - we "
    "can not hallow - this ground. the brave men, living and dead, who struggled here, have "
    "consecrated it, far above our poor power to add or detract. the world will little note, nor "
    "long remember what we say here, but it can never forget what they did here. it is for us the "
    "living, rather, to be dedicated here to the unfinished work which they who fought here have "
    "thus far so nobly advanced. it is rather for us to be here dedicated to the great task "
    "remaining before us - that from these honored dead we take increased devotion to that cause "
    "for which they gave the last full measure of devotion - that we here highly resolve that "
    "these dead shall not have died in vain - that this nation, under god, shall have a new birth "
    "of freedom - and that government of the people, by the people, for the people, shall not "
    "perish from the earth. "
    "on the occasion corresponding to this four years ago all thoughts were anxiously directed to "
    "an impending civil war. all dreaded it, all sought to avert it. while the inaugural address "
    "was being delivered from this place, devoted altogether to saving the union without war, "
    "insurgent agents were in the city seeking to destroy it without war - seeking to dissolve "
    "the union and divide effects by negotiation. both parties deprecated war, but one of them "
    "would make war rather than let the nation survive, and the other would accept war rather "
    "than let it perish, and the war came. "
    "fondly do we hope, fervently do we pray, that this mighty scourge of war may speedily pass "
    "away. yet, if god wills that it continue until all the wealth piled by the bondsman's two "
    "hundred and fifty years of unrequited toil shall be sunk, and until every drop of blood "
    "drawn with the lash shall be paid by another drawn with the sword, as was said three "
    "thousand years ago, so still it must be said the judgments of the lord are true and "
    "righteous altogether. "
    "with malice toward none, with charity for all, with firmness in the right as god gives us to "
    "see the right, let us strive on to finish the work we are in, to bind up the nation's "
    "wounds, to care for him who shall have borne the battle and for his widow and his orphan, to "
    "do all which may achieve and cherish a just and lasting peace among ourselves and with all "
    "nations."
)


def characters(steps: int) -> TrainingProblem:
    """Return the problem; the last fifth of the text is the test data."""
    letters = sorted(set(TEXT))
    codes = np.array([letters.index(letter) for letter in TEXT], dtype=np.int32)
    X = np.lib.stride_tricks.sliding_window_view(codes[:-1], WINDOW).copy()
    y = codes[WINDOW:]
    train = 4 * len(y) // 5
    sizes = (WINDOW * EMBEDDING, HIDDEN, len(letters))

    def init(key: Any) -> dict[str, Any]:
        first, second = jax.random.split(key)
        return {
            "embedding": jax.random.normal(first, (len(letters), EMBEDDING)),
            "dense": dense_init(second, sizes),
        }

    def network(params: dict[str, Any], x: Any) -> Any:
        # A product with a one-hot matrix: unlike an index, its derivative needs no scatter.
        embedded = jax.nn.one_hot(x, len(letters)) @ params["embedding"]
        return dense(params["dense"], embedded.reshape(len(x), -1))

    return TrainingProblem(
        "characters",
        f"next character ({len(letters)} classes) of a text by Lincoln from the {WINDOW} before it,"
        f" {train} training and {len(y) - train} test positions, embedding of size {EMBEDDING},"
        f" hidden layer of {HIDDEN}",
        init,
        lambda params, x, y: cross_entropy(network(params, x), y),
        lambda params: error_rate(network(params, jnp.asarray(X[train:])), y[train:]),
        X[:train],
        y[:train],
        batch=64,
        steps=steps,
        error_is="fraction of wrong characters",
    )
