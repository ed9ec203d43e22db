"""Keys on disk."""

import os

import pytest
from campaigns import KEY

from kveil.errors import InvalidValue
from kveil.signing import SigningKey, is_signed


def test_a_key_is_saved_once_for_its_owner_and_loaded_again(tmp_path):
    path = tmp_path / "key"
    made = SigningKey.generate()
    made.save(path)
    assert os.stat(path).st_mode & 0o077 == 0
    again = SigningKey.load(path)
    assert again.public == made.public != SigningKey.generate().public
    assert is_signed(made.public, again.sign(b"x"), b"x")
    with pytest.raises(InvalidValue, match="never overwritten"):
        KEY.save(path)
    with pytest.raises(InvalidValue, match="cannot be written"):
        KEY.save(tmp_path / "no" / "folder")


@pytest.mark.parametrize("text", ["", "zz", "00" * 31, "00" * 33, "é" * 64, "another-key " + "00" * 32, "kveil-secret-key"])
def test_a_file_that_holds_no_key_is_refused(tmp_path, text):
    (tmp_path / "key").write_text(text, encoding="utf-8")
    with pytest.raises(InvalidValue, match="no signing key") as told:
        SigningKey.load(tmp_path / "key")
    assert "0000" not in str(told.value).replace(str(tmp_path), ""), "digits of a key that is cut short are secret, too"
    with pytest.raises(InvalidValue, match="no signing key"):
        SigningKey.load(tmp_path / "none")
    for secret in (b"", bytes(31), "x" * 32, None):
        with pytest.raises(InvalidValue, match="32 secret bytes"):
            SigningKey(secret)
