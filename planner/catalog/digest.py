"""One hash over all facts, so that a plan can say which catalog it was made with."""

from __future__ import annotations

import hashlib
from functools import cache

from planner.catalog.read import DATA


@cache
def catalog_sha256() -> str:
    """Hash the catalog's data files: names and contents, in the order of their paths (hexadecimal SHA-256).

    Line ends are taken as written in the repository; files that are not data (caches, editors' leftovers) do not count.
    """
    digest = hashlib.sha256()
    files = sorted((path.relative_to(DATA).as_posix(), path) for path in DATA.rglob("*") if path.suffix in {".json", ".toml"})
    for name, path in files:
        content = path.read_bytes().replace(b"\r\n", b"\n")
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()
