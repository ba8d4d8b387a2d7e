from __future__ import annotations

import pytest

from windlass._core.hints import own_hint


@pytest.mark.parametrize(
    "said, meant",
    [
        ("GET /api/projects lists those of yours.", "client.projects() lists those of yours."),
        ("GET /projects has them in pages.", "client.projects() has them in pages."),
        ("GET /api/projects/(pid)/models lists them.", "client.models(project) lists them."),
        (
            "GET /api/projects/(pid)/cache lists its keys.",
            'client.request("GET", "/projects/(pid)/cache") lists its keys.',
        ),
        ("GET /api/jobs lists yours.", "client.jobs() lists yours."),
        ("GET /api/jobs/(id) shows its `result`.", "client.job(job) shows its `result`."),
        ("Wait for GET /api/jobs/01m8m to end.", 'Wait for client.job("01m8m") to end.'),
        ("Read GET /api/jobs/(id)/events instead.", 'Read client.request("GET", "/jobs/(id)/events") instead.'),
        ("DELETE /api/jobs/(id) cancels a job.", "client.cancel(job) cancels a job."),
        ("End it: DELETE /api/jobs/01m8m.", 'End it: client.cancel("01m8m").'),
        (
            "DELETE /api/jobs/01m8m/record removes it.",
            'client.request("DELETE", "/jobs/01m8m/record") removes it.',
        ),
        ("GET /api/models/(mid) lists its artifacts.", "client.artifacts(model) lists its artifacts."),
        (
            "DELETE /api/models/(mid)/tables/(aid) first.",
            'client.request("DELETE", "/models/(mid)/tables/(aid)") first.',
        ),
        ("Begin with POST /api/remotes/(sid)/videos.", "Begin with session.video(…)."),
        ("Make another one: POST /api/links.", "Make another one: client.link(path)."),
        (
            "POST /api/remotes, or POST /api/remotes/(sid)/login for an open session.",
            "client.open(…), or session.login(…) for an open session.",
        ),
        ("Log in with POST /remotes/(sid)/login, then.", "Log in with session.login(…), then."),
        ("Leave out If-None-Match to replace it.", "Leave out exclusive=True to replace it."),
        ("GET / says where to begin.", "GET / says where to begin."),
    ],
)
def test_hints_name_what_this_client_has(said: str, meant: str) -> None:
    assert own_hint(said) == meant
