"""Settings are parsed once and strictly; a key never shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from snellen.errors import SettingsError
from snellen.settings import (
    Endpoint,
    EndpointOptions,
    ModelSettings,
    Settings,
    cache_folder,
    encoder_path,
    endpoint_of,
    load_settings,
)

WHOLE = """
[models.judge]
url = "http://127.0.0.1:8000/v1"
model = "served"
key_env = "JUDGE_KEY"
family = "Qwen"
license = "open"
released = "2026-02"
revision = "r1"
quantization = "fp8"
price_in_usd = 0.5
price_cached_in_usd = 0.1
price_out_usd = 2
concurrency = 8
requests_per_minute = 600
tokens_per_minute = 90000
timeout_s = 30
[models.judge.headers]
X-Team = "eyes"
[models.judge.params]
temperature = 0.2
max_tokens = 50
"""


def written(folder: Path, text: str) -> Path:
    file = folder / "mine.toml"
    file.write_text(text, encoding="utf-8")
    return file


def test_every_key_of_the_settings_page_is_read(tmp_path: Path) -> None:
    """A table names address, prices, limits, headers and parameters."""
    [model] = load_settings(written(tmp_path, WHOLE)).models.values()
    assert model == ModelSettings(
        url="http://127.0.0.1:8000/v1",
        model="served",
        key_env="JUDGE_KEY",
        family="Qwen",
        license="open",
        released="2026-02",
        revision="r1",
        quantization="fp8",
        price_in_usd=0.5,
        price_cached_in_usd=0.1,
        price_out_usd=2.0,
        concurrency=8,
        requests_per_minute=600.0,
        tokens_per_minute=90000.0,
        timeout_s=30.0,
        headers={"X-Team": "eyes"},
        params={"temperature": 0.2, "max_tokens": 50},
    )


@pytest.mark.parametrize(
    ("text", "found", "hint"),
    [
        ("[model.x]", "unknown key `model`", "did you mean `models`?"),
        ('[models.x]\nurll = "a"', "unknown key `urll`", "did you mean `url`?"),
        ('[models.x]\nkey = "secret"', "unknown key `key`", "key_env"),
        ('[models.x]\nconcurrency = "many"', "concurrency", "settings page"),
        ("[models.x\n", "cannot be read", "TOML"),
        ("models = 3", "`models` is no table", "[models.NAME]"),
        ("[models]\nx = 3", "[models.x] is no table", "[models.NAME]"),
        ("[models.x]\ntimeout_s = 0", "`timeout_s` is 0", "above 0"),
        ("[models.x]\nconcurrency = -3", "`concurrency` is -3", "above 0"),
        ("[models.x]\nrequests_per_minute = 0", "`requests_per_minute` is 0", "above 0"),
        ("[models.x]\ntokens_per_minute = nan", "`tokens_per_minute` is nan", "above 0"),
        ("[models.x]\nprice_in_usd = -1", "`price_in_usd` is -1", "at least 0"),
        ("[models.x]\nprice_out_usd = inf", "`price_out_usd` is inf", "at least 0"),
    ],
)
def test_a_wrong_file_is_one_error_that_names_the_place(
    tmp_path: Path, text: str, found: str, hint: str
) -> None:
    """Unknown keys come with the nearest valid one."""
    with pytest.raises(SettingsError) as caught:
        load_settings(written(tmp_path, text))
    assert found in caught.value.message
    assert "mine.toml" in caught.value.message
    assert hint in caught.value.hint


def test_free_of_charge_and_a_mark_at_the_start(tmp_path: Path) -> None:
    """A price of 0 is a price, and an editor's mark before the text is no part of it."""
    settings = load_settings(written(tmp_path, "\ufeff[models.x]\nprice_in_usd = 0\n"))
    assert settings.models["x"].price_in_usd == 0


def test_a_file_that_is_not_there_is_an_error_only_when_it_was_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`./snellen.toml` is optional."""
    monkeypatch.chdir(tmp_path)
    assert load_settings() == Settings()
    with pytest.raises(SettingsError, match="cannot be read"):
        load_settings(tmp_path / "none.toml")
    (tmp_path / "snellen.toml").write_text("[models.a]\n", encoding="utf-8")
    assert list(load_settings().models) == ["a"]


def test_what_a_command_says_wins_over_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Address, key, concurrency and single parameters; the rest is the table's."""
    monkeypatch.setenv("JUDGE_KEY", " from-variable\n")
    settings = load_settings(written(tmp_path, WHOLE))
    plain = endpoint_of(EndpointOptions("judge"), settings)
    assert (plain.url, plain.model, plain.key) == (
        "http://127.0.0.1:8000/v1",
        "served",
        "from-variable",
    )
    wish = EndpointOptions(
        "judge", "http://127.0.0.1:9/v1", key="given", concurrency=3, params={"temperature": 1}
    )
    other = endpoint_of(wish, settings)
    assert (other.url, other.key, other.concurrency) == ("http://127.0.0.1:9/v1", "given", 3)
    assert other.params == {"temperature": 1, "max_tokens": 50}
    assert (other.price_out_usd, other.timeout_s) == (2.0, 30.0)


def test_a_name_without_an_address_lists_the_names_that_have_one(tmp_path: Path) -> None:
    """The hint says what can be written where."""
    settings = load_settings(written(tmp_path, '[models.a]\nurl = "http://127.0.0.1:1"\n'))
    with pytest.raises(SettingsError, match="no URL for `b`") as caught:
        endpoint_of(EndpointOptions("b"), settings)
    assert "named there: a" in caught.value.hint


def test_a_variable_that_is_not_set_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its name, and how to set it."""
    monkeypatch.delenv("MY_KEY", raising=False)
    with pytest.raises(SettingsError, match="the variable MY_KEY"):
        endpoint_of(EndpointOptions("a", "http://127.0.0.1:1", key_env="MY_KEY"), Settings())


def test_a_variable_that_is_empty_is_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """An endpoint of one's own may need none."""
    monkeypatch.setenv("MY_KEY", "")
    wish = EndpointOptions("a", "http://127.0.0.1:1", key_env="MY_KEY")
    assert endpoint_of(wish, Settings()).key == ""


def test_blanks_around_a_key_are_no_part_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither from a variable nor as it was typed."""
    monkeypatch.setenv("MY_KEY", " sk-1 \n")
    for wish in (
        EndpointOptions("a", "http://127.0.0.1:1", key_env="MY_KEY"),
        EndpointOptions("a", "http://127.0.0.1:1", key="sk-1\n"),
    ):
        assert endpoint_of(wish, Settings()).key == "sk-1"


def test_no_key_shows_in_what_is_printed() -> None:
    """Neither keys nor headers, of a wish or of an endpoint."""
    wish = EndpointOptions("a", "http://127.0.0.1:1", key="CANARY")
    end = Endpoint("a", "u", "m", key="CANARY", headers={"X-Api-Key": "CANARY"})
    assert "CANARY" not in repr((wish, end))


def test_the_cache_has_a_place_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable wins, then the user's cache folder."""
    monkeypatch.setenv("SNELLEN_CACHE", str(tmp_path / "a"))
    assert cache_folder() == tmp_path / "a"
    monkeypatch.delenv("SNELLEN_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "b"))
    assert cache_folder() == tmp_path / "b" / "snellen"


def test_another_encoder_can_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """None stands for the bundled one."""
    monkeypatch.delenv("SNELLEN_ENCODER", raising=False)
    assert encoder_path() is None
    monkeypatch.setenv("SNELLEN_ENCODER", "/models/x")
    assert encoder_path() == Path("/models/x")
