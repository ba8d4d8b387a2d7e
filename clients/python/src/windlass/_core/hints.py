"""Hints of the service name requests and members of JSON, as they are for programs of any language."""

from __future__ import annotations

import re
from typing import Optional

#: What they say, and what it is called in this client.
_WORDS = (
    (r"^Send a user name and password \(HTTP Basic\).*", "Log in again: windlass login URL, or give another token."),
    (r"\?parents=true", "parents=True"),
    (r"Leave out If-None-Match", "Leave out exclusive=True"),
    (r'"on-bad-frame": "skip"', 'on_bad_frame="skip"'),
    (r'"content-type": ', "media_type="),
    (r'"agent": true', "agent=True"),
    (r'"agent": false', "agent=False"),
    (r'"(images|pattern|first|last|step|agent|encode)"', r"\1"),
    (r"GET …/metadata", "client.table(…).info()"),
    # Some leave out what all begin with.
    (r"\b(GET|POST|PUT|DELETE) /(?!api/)(?=\w)", r"\1 /api/"),
    (r"GET /api/projects(?![\w/?])", "client.projects()"),
    (r"GET /api/projects/\(pid\)/models(?![\w/?])", "client.models(project)"),
    (r"GET /api/models/\(mid\)(?![\w/)])", "client.artifacts(model)"),
    (r"GET /api/jobs(?![\w/?])", "client.jobs()"),
    (r"GET /api/jobs/\(id\)(?![\w/])", "client.job(job)"),
    (r"GET /api/jobs/(\w+)(?![\w/)])", r'client.job("\1")'),
    (r"DELETE /api/jobs/\(id\)(?![\w/])", "client.cancel(job)"),
    (r"DELETE /api/jobs/(\w+)(?![\w/)])", r'client.cancel("\1")'),
    (r"POST /api/links", "client.link(path)"),
    (r"POST /api/remotes/\(sid\)/login", "session.login(…)"),
    (r"POST /api/remotes/\(sid\)/browse/\(path\)", "session.browse(path)"),
    (r"POST /api/remotes/\(sid\)/videos(?![\w/])", "session.video(…)"),
    (r"POST /api/remotes\b(?!/)", "client.open(…)"),
    (r"DELETE /api/remotes/\(sid\)", "client.session(sid).close()"),
    # What has no method of its own.
    (r"\b(GET|POST|PUT|DELETE) /api(/[^\s,;]*[^\s,;.:])", r'client.request("\1", "\2")'),
)


def own_hint(hint: Optional[str]) -> Optional[str]:
    """A hint of the service in words of this client."""
    if hint is None:
        return None
    for said, instead in _WORDS:
        hint = re.sub(said, instead, hint)
    return hint
