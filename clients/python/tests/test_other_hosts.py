"""A host that asks for a one-time code, and a batch system: where the machine has them."""

from __future__ import annotations

import os
import pty
import sys
from typing import List

import pytest

import windlass
from windlass import AsyncClient, Client, Prompt

from .conftest import Service

ACCOUNT = os.environ.get("WINDLASS_TEST_CODES", "")
needs_codes = pytest.mark.skipif(not ACCOUNT, reason="needs root and google-authenticator")


@needs_codes
def test_a_callback_answers(service: Service, client: Client) -> None:
    asked: List[Prompt] = []

    def answer(prompt: Prompt) -> str:
        asked.append(prompt)
        return str(service.control("next-code"))

    with client.open("codes", ACCOUNT, answer=answer) as session:
        assert session.run("echo in").wait().output == "in\n"
    assert [(prompt.text, prompt.echo) for prompt in asked] == [("Verification code: ", False)]


@needs_codes
def test_a_wrong_answer_leaves_no_session(client: Client) -> None:
    before = client.sessions()
    with pytest.raises(windlass.WindlassError) as raised:
        client.open("codes", ACCOUNT, answer=lambda prompt: "00000000")
    assert raised.value.code == "remote_authentication_failed"

    def give_up(prompt: Prompt) -> str:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        client.open("codes", ACCOUNT, answer=give_up)
    assert client.sessions() == before


@needs_codes
def test_without_a_callback_the_terminal_is_asked(service: Service) -> None:
    script = f"""
import windlass
with windlass.Client().open("codes", {ACCOUNT!r}) as session:
    print("output:", session.run("echo in").wait().output)
"""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, "-c", script])
    said = b""
    code = str(service.control("next-code")).encode()
    while True:
        try:
            piece = os.read(terminal, 1_000)
        except OSError:
            break
        said += piece
        if said.endswith(b"Verification code: "):
            os.write(terminal, code + b"\n")
    os.close(terminal)
    assert os.waitpid(pid, 0)[1] == 0, said
    assert b"output: in" in said and code not in said


@needs_codes
def test_without_a_terminal_it_says_what_to_do(client: Client) -> None:
    with pytest.raises(windlass.WindlassError) as raised:
        client.open("codes", ACCOUNT)
    assert raised.value.code == "answer_required" and "answer=" in str(raised.value)


@needs_codes
@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_coroutine_answers(service: Service) -> None:
    async def answer(prompt: Prompt) -> str:
        return str(service.control("next-code"))

    async with AsyncClient() as client:
        async with await client.open("codes", ACCOUNT, answer=answer) as session:
            assert (await (await session.run("echo in")).wait()).output == "in\n"


@pytest.mark.skipif("WINDLASS_TEST_SLURM" not in os.environ, reason="needs Slurm")
def test_a_batch_job(service: Service, client: Client) -> None:
    with service.open(client) as session:
        assert session.info().engines == ["slurm"]
        run = session.batch("echo out $WORD; echo err >&2; exit 3", env={"WORD": "x"}, cpus=1, time=60, name="batch")
        result = run.wait(timeout=100)
        assert (result.returncode, result.output, result.errors) == (3, "out x\n", "err\n")
        assert [line.text for line in run if line.stream == "stdout"] == ["out x"]
        job = client.job(run)
        assert (job.kind, job.name) == ("batch", "batch")
        assert job.batch is not None and job.batch.engine == "slurm"
        script = session.batch(script="#!/bin/sh\n#SBATCH --cpus-per-task 1\necho script\n", options=["--comment=x"])
        assert [line.text for line in script] == ["script"]
