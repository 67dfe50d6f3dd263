"""`build.toml`: what it may hold, and the nearest name where it is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from snellen.builders.options import DedupOptions, SegmentOptions
from snellen.construction.capprobe import CAPPROBE
from snellen.construction.config import BuildConfig, load_config
from snellen.construction.roles import cast
from snellen.errors import SettingsError
from snellen.settings import ModelSettings, Settings


def load(folder: Path, text: str, **models: ModelSettings) -> BuildConfig:
    path = folder / "build.toml"
    path.write_text(text, encoding="utf-8")
    return load_config(path, [CAPPROBE], settings=Settings(models))


def test_without_a_file_all_is_at_its_default() -> None:
    """No file: no model in any role, and the defaults of the contract."""
    assert load_config(None, [CAPPROBE], settings=Settings()) == BuildConfig()
    assert (DedupOptions().across, DedupOptions().within) == (0.90, 0.85)


def test_sections_and_roles_are_read(tmp_path: Path) -> None:
    """Options by section; one table a role, or several models that share it."""
    found = load(
        tmp_path,
        """
        seed = 7
        [roles.describer]
        model = "a"
        url = "http://127.0.0.1:1/v1"
        [[roles.questioner]]
        model = "a"
        url = "http://127.0.0.1:1/v1"
        [[roles.questioner]]
        model = "a"
        url = "http://127.0.0.1:2/v1"
        params = {temperature = 1.0}
        [segment]
        max_regions = 4
        [dedup]
        global = 0.8
        """,
    )
    assert found.seed == 7
    assert found.options[SegmentOptions].max_regions == 4
    assert found.options[DedupOptions].across == 0.8
    seats = cast(found).seats
    assert [seat.label for seat in seats["questioner"]] == ["a", "a#2"]
    assert seats["describer"][0].role == "describer/a"


def test_a_named_model_brings_its_settings(tmp_path: Path) -> None:
    """A name of snellen.toml gives address, prices and parameters; what stands here wins."""
    named = ModelSettings(
        url="http://127.0.0.1:3/v1", model="served", price_in_usd=1.0,
        params={"temperature": 0.5, "top_p": 0.9},
    )  # fmt: skip
    text = '[roles.describer]\nmodel = "big"\nparams = {temperature = 0.1}\n'
    bound = cast(load(tmp_path, text, big=named)).bindings["describer/big"]
    assert (bound.endpoint.model, bound.endpoint.price_in_usd) == ("served", 1.0)
    assert dict(bound.endpoint.params) == {"temperature": 0.1, "top_p": 0.9}


def test_an_embeddings_role_has_the_name_that_the_option_gives(tmp_path: Path) -> None:
    """`embeddings = "qwen"` makes `qwen` a role; without it that name is unknown."""
    role = '[roles.qwen]\nmodel = "e"\nurl = "http://127.0.0.1:1/v1"\n'
    assert "qwen" in load(tmp_path, role + '[dedup]\nembeddings = "qwen"\n').roles
    with pytest.raises(SettingsError, match="unknown key `qwen`"):
        load(tmp_path, role)


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("sed = 1", "unknown key `sed`", "seed"),
        ("[segmnt]\nmax_regions = 1", "unknown key `segmnt`", "segment"),
        ("[segment]\nmax_region = 1", "unknown key `max_region`", "max_regions"),
        ("[dedup]\nlocale = 1", "unknown key `locale`", "local"),
        ("[segment]\nsource = 'magic'", "Invalid enum value 'magic'", ""),
        ("[dedup]\nglobal = 1.5", "<= 1", ""),
        ("[roles.describr]\nmodel = 'a'", "unknown key `describr`", "describer"),
        ("[roles.describer]\nmodl = 'a'", "unknown key `modl`", "model"),
        ("[roles.describer]\nurl = 'http://h/v1'", "names no model", ""),
        ("roles = 3", "is no table", ""),
        ("seed = 'a'", "`seed` is 'a'", ""),
        ("seed =", "cannot be read", ""),
    ],
)
def test_what_is_wrong_is_named_with_the_nearest_name(
    tmp_path: Path, text: str, message: str, hint: str
) -> None:
    """An unknown key, a value out of range, a role without a model: each is said."""
    with pytest.raises(SettingsError) as caught:
        load(tmp_path, text)
    assert message in caught.value.message
    assert hint in caught.value.hint


def test_a_role_without_an_address_is_an_error(tmp_path: Path) -> None:
    """A model that no settings know needs its URL here."""
    config = load(tmp_path, '[roles.describer]\nmodel = "a"\n')
    with pytest.raises(SettingsError, match="no URL for `a`"):
        cast(config)
