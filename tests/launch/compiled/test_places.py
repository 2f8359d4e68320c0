"""Machine code that is made on this machine is kept where no other user may write."""

import os
import struct
import tempfile
import time

import pytest
from cobre_kernels.machine import made
from cobre_kernels.machine.places import own_folder

NAME = "kernels-0123"


def writable_by_all(folder):
    folder.chmod(0o777)


def of_another_user(folder):
    if os.geteuid() != 0:
        pytest.skip("root alone can be another user")
    os.chown(folder, 65534, 65534)


def of_a_group(folder):
    if os.geteuid() != 0:
        pytest.skip("root alone can give a folder to any group")
    os.chown(folder, 0, 65534)
    folder.chmod(0o775)


def of_an_access_list(folder):
    """Let another user write by an access list: owner, that user, group, mask, others (acl(5))."""
    entries = (1, 7, -1), (2, 7, 65534), (4, 0, -1), (16, 7, -1), (32, 0, -1)
    packed = b"".join(struct.pack("<HHi", *entry) for entry in entries)
    try:
        os.setxattr(folder, "system.posix_acl_access", struct.pack("<I", 2) + packed)
    except (AttributeError, OSError) as error:
        pytest.skip(f"no access lists here: {error}")


def a_link(folder):
    aside = folder.with_name("aside")
    folder.rename(aside)
    folder.symlink_to(aside)


def read_only(folder):
    folder.chmod(0o500)
    if os.geteuid() == 0:
        pytest.skip("root writes to any folder")


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """Return the folder that is used if the folder in the cache cannot be used."""
    place = tmp_path / "temporary"
    place.mkdir()
    place.chmod(0o1777)
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(place))
    return place / f"cobre_comm-{os.geteuid()}"


@pytest.mark.parametrize("which", ["the user's", "the version's"])
@pytest.mark.parametrize(
    "share",
    [writable_by_all, of_another_user, of_a_group, of_an_access_list, a_link, read_only],
)
def test_a_folder_that_others_may_write_to_is_not_used(tmp_path, temporary, which, share):
    environ = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    folder = own_folder(environ, NAME)
    assert folder == tmp_path / "cache" / "cobre_comm" / NAME
    assert [path.stat().st_mode & 0o077 for path in (folder, folder.parent)] == [0, 0]
    share(folder if which == "the version's" else folder.parent)
    assert own_folder(environ, NAME) == temporary / NAME


def test_a_user_without_a_home_has_a_temporary_folder(tmp_path, temporary):
    (tmp_path / "file").touch()
    environ = {"XDG_CACHE_HOME": str(tmp_path / "file")}
    folder = own_folder(environ, NAME)
    assert folder == temporary / NAME
    folder.parent.chmod(0o777)  # as if another user had made this folder
    other = own_folder(environ, NAME)
    assert other.parent.parent == temporary.parent
    assert other.parent.stat().st_mode & 0o077 == 0


def test_the_latest_versions_are_kept(tmp_path):
    folder = tmp_path / "kernels-now"
    folder.mkdir()
    for age in range(20):
        older = folder.with_name(f"kernels-{age}")
        older.mkdir()
        os.utime(older, (time.time() - age - 1,) * 2)
    made._forget_old_versions(folder)
    kept = {path.name for path in tmp_path.glob("kernels-*")}
    assert kept == {folder.name, *(f"kernels-{age}" for age in range(7))}


def test_a_version_in_use_is_kept_however_old_it_is(tmp_path, monkeypatch):
    file = made.file_of_this_machine()
    folder = tmp_path / "kernels-used"
    folder.mkdir()
    (folder / file.name).write_bytes(file.read_bytes())
    os.utime(folder, (1, 1))
    monkeypatch.setattr(made, "_own_folder", lambda: folder)
    assert made._own() == folder / file.name
    for version in range(20):
        newer = tmp_path / f"kernels-{version}"
        newer.mkdir()
        os.utime(newer, (time.time() - 60,) * 2)
    made._forget_old_versions(newer)
    assert folder.exists()


def test_a_named_folder_is_used_unless_others_may_write_to_it(tmp_path, monkeypatch):
    file = made.file_of_this_machine()
    named = tmp_path / file.name
    named.write_bytes(file.read_bytes())
    monkeypatch.setenv(made.CHOSEN, str(tmp_path))
    assert made.file_of_this_machine() == named
    tmp_path.chmod(0o777)
    assert made.file_of_this_machine() != named
