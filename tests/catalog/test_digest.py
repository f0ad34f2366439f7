from __future__ import annotations

import re

from planner.catalog import digest


def fresh(monkeypatch, directory):
    monkeypatch.setattr(digest, "DATA", directory)
    return digest.catalog_sha256.__wrapped__()


def test_the_digest_is_a_sha256_and_stable():
    assert re.fullmatch(r"[0-9a-f]{64}", digest.catalog_sha256())
    assert digest.catalog_sha256() == digest.catalog_sha256.__wrapped__()


def test_it_changes_with_contents_and_names_only(monkeypatch, tmp_path):
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "a.json").write_bytes(b'{"x": 1}\n')
    (tmp_path / "gpus.json").write_bytes(b"[]")
    first = fresh(monkeypatch, tmp_path)
    (tmp_path / "notes.txt").write_text("not data")
    (tmp_path / "models" / "a.json").write_bytes(b'{"x": 1}\r\n')
    assert fresh(monkeypatch, tmp_path) == first
    (tmp_path / "models" / "a.json").write_bytes(b'{"x": 2}\n')
    second = fresh(monkeypatch, tmp_path)
    (tmp_path / "models" / "a.json").rename(tmp_path / "models" / "b.json")
    third = fresh(monkeypatch, tmp_path)
    assert len({first, second, third}) == 3
