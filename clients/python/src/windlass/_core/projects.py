from __future__ import annotations

from typing import Optional

from .api import Api, escape


async def create_project(api: Api, name: str, description: Optional[str]) -> str:
    body = {"name": name, **({} if description is None else {"description": description})}
    return str((await api.json("POST", "/projects", body=body))["id"])


async def create_model(api: Api, project: str, name: str, model_type: str) -> str:
    body = {"name": name, "model-type": model_type}
    return str((await api.json("POST", f"/projects/{escape(project)}/models", body=body))["id"])
