"""Which files a path means, and their bytes: decompressed, and as UTF-8."""

from __future__ import annotations

import codecs
import contextlib
import difflib
import glob
import hashlib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Literal

import pyarrow as pa

from trueup.errors import BadInput, ConfigError, IncompleteScan, SideError, Unreachable
from trueup.model.inputs import InputFile

BLOCK_BYTES = 1 << 20
_Codec = Literal["gzip", "zstd", "zip", ""]
_COMPRESSED: dict[bytes, _Codec] = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"PK\x03\x04": "zip",
}
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def files_of(pattern: str) -> list[Path]:
    """The files that a path or a glob names, sorted; SideError where there is none."""
    path = Path(pattern).expanduser()
    if path.is_dir():
        raise SideError(f"{pattern} is a folder.", hint=f"Name its files, for example {pattern.rstrip('/')}/*.csv.")
    if path.exists():
        return [path]
    found = sorted(Path(name) for name in glob.glob(str(path), recursive=True))  # noqa: PTH207  takes absolute patterns
    found = [each for each in found if each.is_file()]
    if not found:
        raise SideError(f"{pattern}: no such file.", hint=_nearest(path))
    return found


def _nearest(path: Path) -> str:
    folder = path.parent
    if not folder.is_dir():
        return f"There is no folder {folder}."
    try:
        names = sorted(each.name for each in folder.iterdir() if each.is_file())
    except PermissionError:
        return f"The folder {folder} may not be read."
    close = difflib.get_close_matches(path.name, names, n=3) or names[:3]
    return f"In {folder} there is {', '.join(close)}." if close else f"The folder {folder} has no files."


@contextlib.contextmanager
def unchanged(path: Path) -> Iterator[None]:
    """Raises IncompleteScan where the file was written to while it was read."""
    before = state_of(path)
    yield
    check_unchanged(path, before)


def check_unchanged(path: Path, before: tuple[int, int, int]) -> None:
    """Raises IncompleteScan where the file is not as it was. before: what `state_of` said."""
    if state_of(path) != before:
        raise IncompleteScan(f"{path.name} changed while it was read.", hint="Read it again when it is complete.")


def fingerprint(path: Path) -> InputFile:
    """The file's size and hash as it lies there; IncompleteScan where it was written to meanwhile."""
    try:
        with unchanged(path), path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as failure:
        raise unreadable(path, failure) from failure
    stat = path.stat()
    return InputFile(path.name, stat.st_size, digest, stat.st_mtime_ns // 1_000)


def state_of(path: Path) -> tuple[int, int, int]:
    """Inode, size and time of the last change: what moves when a file is written to."""
    try:
        stat = path.stat()
    except OSError as failure:
        raise unreadable(path, failure) from failure
    return stat.st_ino, stat.st_size, stat.st_mtime_ns


def unreadable(path: Path, failure: OSError) -> SideError:
    """The error for a file that the operating system does not give."""
    if isinstance(failure, PermissionError):
        return Unreachable(f"{path} may not be read.", hint="Ask for permission to read it.")
    return SideError(f"{path} can't be read: {failure.strerror or 'input error'}.", hint="Check that it is there.")


def head(path: Path, size: int = 8) -> bytes:
    """The first bytes as they are on disk."""
    try:
        with path.open("rb") as file:
            return file.read(size)
    except OSError as failure:
        raise unreadable(path, failure) from failure


def blocks(path: Path) -> Iterator[bytes]:
    """The bytes, decompressed (gzip, zstd, or a zip of one file; known by its first bytes)."""
    start = head(path)
    codec: _Codec = ""
    codec = next((name for magic, name in _COMPRESSED.items() if start.startswith(magic)), codec)
    try:
        with _opened(path, codec) as stream:
            while block := stream.read(BLOCK_BYTES):
                yield block
    except PermissionError as failure:
        raise unreadable(path, failure) from failure
    except (OSError, EOFError, zipfile.BadZipFile) as failure:
        if not codec:
            raise SideError(f"{path} can't be read: input error.", hint="Check that it is there.") from failure
        raise BadInput(
            f"{path.name} is damaged or ends early: its {codec} data can't be unpacked to the end.",
            hint="Fetch the file again.",
        ) from failure


@contextlib.contextmanager
def _opened(path: Path, codec: _Codec) -> Iterator[Any]:
    if codec == "zip":
        with zipfile.ZipFile(path) as archive:
            members = [each for each in archive.infolist() if not each.is_dir()]
            if len(members) != 1:
                raise BadInput(f"{path.name} holds {len(members)} files.", hint="Unpack it and name the file you mean.")
            member: IO[bytes]
            with archive.open(members[0]) as member:
                yield member
    elif codec:
        with pa.OSFile(str(path), "rb") as file, pa.CompressedInputStream(file, codec) as stream:
            yield stream
    else:
        with path.open("rb") as plain:
            yield plain


def utf8(path: Path, encoding: str) -> Iterator[bytes]:
    """The bytes as UTF-8 without a byte order mark; a mark outranks the declared default.

    Raises BadInput with the byte offset of what the encoding can't mean.
    """
    decoder: codecs.IncrementalDecoder | None = None
    offset, plain = 0, False
    for block in blocks(path):
        first = decoder is None
        if decoder is None:
            name, offset = _encoding(block, encoding, path)
            decoder, plain = codecs.getincrementaldecoder(name)("strict"), name == "utf-8"
        unmarked = block[offset:] if first else block
        text = _decoded(decoder, unmarked, offset, path)
        offset += len(unmarked)
        yield unmarked if plain else (text.removeprefix("\ufeff") if first else text).encode()
    if decoder is not None:
        rest = _decoded(decoder, b"", offset, path, final=True)
        yield b"" if plain else rest.encode()


def _encoding(block: bytes, encoding: str, path: Path) -> tuple[str, int]:
    try:
        declared = codecs.lookup(encoding).name
    except LookupError:
        raise ConfigError(f"{encoding!r} is not an encoding.", hint="For example utf-8, cp1252 or latin-1.") from None
    if declared != "utf-8":
        return declared, 0
    for mark, name in _MARKS:
        if block.startswith(mark):
            return name, len(mark) if name == "utf-8" else 0
    if b"\x00" in block[:4_096]:
        raise BadInput(
            f"{path.name} is not text: there is a zero byte at offset {block.index(0)}.",
            hint='If it is UTF-16 without a mark, declare encoding="utf-16-le".',
        )
    return declared, 0


def _decoded(decoder: codecs.IncrementalDecoder, block: bytes, offset: int, path: Path, *, final: bool = False) -> str:
    waiting = decoder.getstate()[0]
    try:
        return decoder.decode(block, final)
    except UnicodeDecodeError as failure:
        at = offset - len(waiting) + failure.start
        raise BadInput(
            f"{path.name} is not {failure.encoding}: byte offset {at:,} is no character.",
            hint='Declare the encoding it was written in, for example encoding="cp1252".',
        ) from failure
