from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from trainer.layout import Layout
from trainer.pieces import KINDS, Piece, copy_overlaps, uncovered

Shapes = list[tuple[int, ...]]
shapes = st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=3).map(tuple), min_size=1, max_size=5)
replicas = st.integers(1, 6)


def layout_of(shapes: Shapes) -> Layout:
    ordered = sorted(shapes, key=lambda shape: len(shape) < 2)
    sizes = [torch.Size(shape).numel() for shape in ordered if len(shape) >= 2]
    return Layout({f"p{number}": shape for number, shape in enumerate(ordered)}, decayed=sum(sizes))


def whole(layout: Layout) -> list[list[Piece]]:
    """As one process, or DDP, holds them."""
    return [
        [
            Piece(kind, name, 0, torch.Size(shape).numel(), torch.zeros(torch.Size(shape).numel()))
            for name, shape in layout.shapes.items()
            for kind in KINDS
        ]
    ]


def rows(layout: Layout, count: int) -> list[list[Piece]]:
    """As FSDP holds them: rows as torch.chunk cuts them, some replicas having none."""
    held: list[list[Piece]] = [[] for _ in range(count)]
    for piece in whole(layout)[0]:
        values = piece.values.view(layout.shapes[piece.name])
        start = 0
        for rank, part in enumerate(values.chunk(count)):
            flat = part.reshape(-1)
            held[rank].append(Piece(piece.kind, piece.name, start, start + flat.numel(), flat))
            start += flat.numel()
    return held


def ranges(layout: Layout, count: int) -> list[list[Piece]]:
    """As parameter servers hold them."""
    return [
        [
            Piece(kind, span.name, span.start, span.end, torch.zeros(span.end - span.start))
            for span in layout.spans(*layout.share(number, count))
            for kind in KINDS
        ]
        for number in range(count)
    ]


def held(layout: Layout, kind: str, count: int) -> list[list[Piece]]:
    return {"whole": lambda *_: whole(layout), "rows": rows, "ranges": ranges}[kind](layout, count)


cluster_shapes = st.tuples(st.sampled_from(["whole", "rows", "ranges"]), replicas)


@given(shapes, cluster_shapes, cluster_shapes)
def test_what_any_cluster_shape_wrote_any_other_restores_value_for_value(
    shapes: Shapes, one: tuple[str, int], other: tuple[str, int]
) -> None:
    layout = layout_of(shapes)
    # Every value of every kind differs, and is its own place.
    number = {key: place for place, key in enumerate((kind, name) for kind in KINDS for name in layout.shapes)}
    stored = [piece for own in held(layout, *one) for piece in own]
    for piece in stored:
        piece.values.copy_(torch.arange(piece.start, piece.end) + 1000 * (1 + number[piece.kind, piece.name]))

    for own in held(layout, *other):
        assert uncovered([piece.range for piece in own], [piece.range for piece in stored]) is None
        copy_overlaps(stored, own)

        for piece in own:
            expected = torch.arange(piece.start, piece.end) + 1000 * (1 + number[piece.kind, piece.name])
            assert torch.equal(piece.values, expected.float())


@given(shapes, cluster_shapes, st.data())
def test_a_piece_that_is_missing_is_noticed(shapes: Shapes, shape: tuple[str, int], data: st.DataObject) -> None:
    layout = layout_of(shapes)
    stored = [piece.range for own in held(layout, *shape) for piece in own if piece.start < piece.end]
    lost = data.draw(st.sampled_from(stored))

    lacking = uncovered([piece.range for piece in whole(layout)[0]], [piece for piece in stored if piece != lost])

    assert lacking is not None
    assert lacking[:3] == lost[:3]


@given(shapes, replicas)
def test_the_shares_of_servers_are_balanced_and_make_the_whole(shapes: Shapes, count: int) -> None:
    layout = layout_of(shapes)

    shares = [layout.share(number, count) for number in range(count)]

    assert [start for start, _ in shares[1:]] == [end for _, end in shares[:-1]]
    assert (shares[0][0], shares[-1][1]) == (0, layout.total)
    sizes = [end - start for start, end in shares]
    assert max(sizes) - min(sizes) <= 1
