"""The examples of the README, one after the other, and that of the guide."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Dict

import pytest

from windlass import Client

from .conftest import Service

README = Path(__file__).parent.parent / "README.md"
GUIDE = README.parent.parent.parent / "docs" / "guide.md"


def test_the_examples_run(
    service: Service,
    client: Client,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("pandas")
    add_host(service, "lab")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "day.csv").write_text(
        "second,temperature,sky\n"
        + "".join(f"{n},{n / 100},{'rain' if n % 7 == 0 else 'clear'}\n" for n in range(2_000)),
        "utf-8",
    )
    frames = tmp_path / "frames"
    frames.mkdir()
    with service.open(client) as session:
        draw = "ffmpeg -v error -f lavfi -i testsrc=duration=0.2:size=64x48 %03d.png"
        session.run(draw, cwd=str(frames)).wait().check_returncode()
    texts = [README.read_text("utf-8"), GUIDE.read_text("utf-8")]
    for mine, here in {
        "ada": service.account,
        "~/.ssh/id_ed25519": str(service.key),
        "/tmp/frames": str(frames),
    }.items():
        assert mine in texts[0]
        texts = [text.replace(mine, here) for text in texts]
    for text, count in zip(texts, (5, 1)):
        names: Dict[str, Any] = {}
        examples = re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)
        assert len(examples) == count
        for example in examples:
            exec(compile(example, "page", "exec"), names)
        names["client"].close()
    said = capsys.readouterr().out
    for expected in (
        "stdout 3\n",
        "stderr done\n",
        "0 1\n2\n3\n done\n",
        "later\n",
        "Linux\n",
        "799.0",
        "rain    286",
        "invalid_input",
    ):
        assert expected in said, said
    assert (tmp_path / "run.mp4").read_bytes()[4:8] == b"ftyp"


def add_host(service: Service, name: str) -> None:
    """The same host by another name."""
    with Client(service.url, user=service.user, password=service.password) as administrator:
        if name not in [host["name"] for host in administrator.request("GET", "/hosts", limit=1000)["items"]]:
            known = administrator.request("GET", f"/hosts/{service.host}")
            same = {field: known[field] for field in ("address", "port", "agent", "private")}
            administrator.request("POST", "/hosts", {"name": name, **same, "trust": "now"})
