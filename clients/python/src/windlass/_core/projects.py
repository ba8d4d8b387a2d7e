from __future__ import annotations

from typing import List, Optional

from ..records import Artifact, Model, Project
from .api import Api, escape
from .jobs import list_all


async def create_project(api: Api, name: str, description: Optional[str]) -> str:
    body = {"name": name, **({} if description is None else {"description": description})}
    return str((await api.json("POST", "/projects", body=body))["id"])


async def create_model(api: Api, project: str, name: str, model_type: str) -> str:
    body = {"name": name, "model-type": model_type}
    return str((await api.json("POST", f"/projects/{escape(project)}/models", body=body))["id"])


async def list_projects(api: Api) -> List[Project]:
    return [Project.from_json(item) async for item in list_all(api, "/projects", {})]


async def list_models(api: Api, project: str) -> List[Model]:
    return [Model.from_json(item) async for item in list_all(api, f"/projects/{escape(project)}/models", {})]


async def list_artifacts(api: Api, model: str) -> List[Artifact]:
    path = f"/models/{escape(model)}"
    return [Artifact.from_json(item) async for item in list_all(api, path, {}, items="artifacts")]
