"""Damaged copies of a file: flipped bits, cuts, inserted bytes, swapped blocks, edited values.

The n-th mutation depends on the seed and n alone, so that one that fails can be made again.
"""

import io
import json
import zipfile

import numpy as np

SEED = 20  # any other would do
# Values that replace those of a JSON file: other types, numbers that overflow, long and odd texts.
ODD_VALUES = [
    *(None, True, -1, 0, 3, 2**31, 2**63, 10**30, 10**400, -0.5, 1e308, 1e-320),
    *("", "nan", "x" * 300, "\ud800", "\x00\x1b[2J", "../../etc/passwd", "=HYPERLINK(1)"),
    *([], {}, [[]], {"a": 1}, [None], [1e308] * 5),
]


def damaged(raw, random):
    """Return the bytes with one damage that knows nothing of their meaning."""
    raw = bytearray(raw)
    kind, at = random.integers(6), int(random.integers(len(raw)))
    length = int(min(random.integers(1, 64), len(raw) - at))
    if kind == 0:
        raw[at] ^= 1 << int(random.integers(8))
    elif kind == 1:
        for place in random.integers(len(raw), size=8):
            raw[int(place)] ^= 1 << int(random.integers(8))
    elif kind == 2:
        del raw[at:]
    elif kind == 3:
        raw[at:at] = random.bytes(length)
    elif kind == 4:
        other = int(random.integers(len(raw)))
        a, b = raw[at : at + length], raw[other : other + length]
        raw[at : at + len(b)], raw[other : other + len(a)] = b, a
    else:
        raw[at : at + length] = random.choice([b"\x00", b"\xff", b"9"]) * length
    return bytes(raw)


def edit_json(value, random):
    """Change one entry of a tree of lists and dicts in place, chosen at random."""
    places = []

    def visit(node):
        for key in list(node) if isinstance(node, dict) else range(len(node)):
            places.append((node, key))
            if isinstance(node[key], dict | list):
                visit(node[key])

    visit(value)
    node, key = places[int(random.integers(len(places)))]
    kind = random.integers(4)
    if kind == 0:
        del node[key]
    elif kind == 1 and isinstance(node, dict):
        node[f"{key}2"] = node[key]
    elif kind == 2 and isinstance(node[key], int | float) and not isinstance(node[key], bool):
        node[key] = node[key] * int(random.choice([-1, 10, 10**6])) + 1
    else:
        node[key] = ODD_VALUES[int(random.integers(len(ODD_VALUES)))]


def edited_json(raw, random):
    value = json.loads(raw)
    for _ in range(int(random.integers(1, 4))):
        if value:
            edit_json(value, random)
    return json.dumps(value).encode()


SHAPES = [(), (0,), (3,), (2, 3), (0, 10**12), (3, 10**12), (10**30,), (-1, 2), (2, 2, 2)]
DTYPES = ["<f8", "<f4", "<i8", "|b1", "<c16", "<U3", "|S2", "<M8[s]", "|O", "<f2", "<U1000000000"]


def odd_header(random):
    """Return the bytes of a .npy file whose header claims a shape and dtype that it has not."""
    shape = SHAPES[int(random.integers(len(SHAPES)))]
    dtype = DTYPES[int(random.integers(len(DTYPES)))]
    text = (
        f"{{'descr': '{dtype}', 'fortran_order': {bool(random.integers(2))}, 'shape': {shape}, }}"
    )
    version, length = [(b"\x01\x00", 2), (b"\x02\x00", 4)][int(random.integers(2))]
    text = text.ljust(118) + "\n"
    size = len(text) if random.integers(4) else 2**30
    size = min(size, 2 ** (8 * length) - 1)
    head = b"\x93NUMPY" + version + size.to_bytes(length, "little")
    return head + text.encode() + random.bytes(int(random.integers(200)))


def odd_array(random):
    """Return an array that is valid, and not what is expected."""
    shape = [(), (0,), (1,), (3,), (2, 3), (120,), (120, 2)][int(random.integers(7))]
    dtype = ["f8", "f4", "i8", "?", "c16", "U3", "S2"][int(random.integers(7))]
    return np.zeros(shape, dtype) if random.integers(2) else np.full(shape, 3).astype(dtype)


def edited_npz(raw, random):
    """Change one member of an archive: its header, its array, or how it is compressed."""
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = list(members)[int(random.integers(len(members)))]
    kind, method = random.integers(5), zipfile.ZIP_STORED
    if kind == 0:
        members[name] = odd_header(random)
    elif kind == 1:
        buffer = io.BytesIO()
        np.save(buffer, odd_array(random))
        members[name] = buffer.getvalue()
    elif kind == 2:
        members[name] = damaged(members[name], random)
    elif kind == 3:
        members[name + str(random.integers(3))] = members.pop(name)
    else:
        members[name] = members[name] + bytes(10**6)
        method = [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA][random.integers(3)]
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for file, content in members.items():
            archive.writestr(file, content)
    return buffer.getvalue()


def generator(n):
    return np.random.default_rng([SEED, n])
