import pytest

from localcloud.storage.operation import Kind, ObjectName, ends_upload, name_in_metadata, parse_operation

UPLOAD = "/upload/storage/v1/b/b/o"


@pytest.mark.parametrize(
    ("method", "path", "query", "kind", "target"),
    [
        ("GET", "/storage/v1/b/b/o/a%2Fb", "", Kind.READ, ObjectName("b", "a/b")),
        ("GET", "/download/storage/v1/b/b/o/a", "alt=media", Kind.READ, ObjectName("b", "a")),
        ("DELETE", "/storage/v1/b/b/o/a", "", Kind.DELETE, ObjectName("b", "a")),
        ("PATCH", "/storage/v1/b/b/o/x%2Fcompose", "", Kind.UPDATE, ObjectName("b", "x/compose")),
        ("POST", "/storage/v1/b/b/o/a/compose", "", Kind.WRITE, ObjectName("b", "a")),
        ("POST", "/storage/v1/b/s/o/a/rewriteTo/b/d/o/c", "", Kind.COPY, ObjectName("d", "c")),
        ("POST", UPLOAD, "uploadType=multipart", Kind.UPLOAD, ObjectName("b", "")),
        ("POST", UPLOAD, "uploadType=resumable&name=a%2Fb", Kind.RESUMABLE_START, ObjectName("b", "a/b")),
        ("PUT", UPLOAD, "uploadType=resumable&upload_id=1&name=a", Kind.RESUMABLE_CHUNK, ObjectName("b", "a")),
        ("GET", "/storage/v1/b/b/o", "prefix=a", Kind.OTHER, None),
    ],
)
def test_a_request_is_understood(method: str, path: str, query: str, kind: Kind, target: ObjectName | None) -> None:
    operation = parse_operation(method, path, query)
    assert (operation.kind, operation.target) == (kind, target)


def test_a_copy_has_a_source() -> None:
    operation = parse_operation("POST", "/storage/v1/b/s/o/a%2F1/rewriteTo/b/d/o/c", "")
    assert operation.source == ObjectName("s", "a/1")


@pytest.mark.parametrize(
    ("header", "ends"),
    [
        (None, True),
        ("bytes 0-99/100", True),
        ("bytes 0-99/200", False),
        ("bytes 0-99/*", False),
        ("bytes */100", True),
        ("nonsense", False),
    ],
)
def test_the_last_chunk_of_an_upload_is_recognized(header: str | None, ends: bool) -> None:
    assert ends_upload(header) is ends


def test_metadata_that_is_no_object_has_no_name() -> None:
    assert [name_in_metadata(text) for text in (b'{"name": "a"}', b"[]", b"{", b"")] == ["a", "", "", ""]
