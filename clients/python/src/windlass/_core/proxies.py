from __future__ import annotations

from typing import Optional
from urllib.request import getproxies, proxy_bypass

import httpx


def find_proxy(url: str) -> Optional[str]:
    """Host and port of the proxy that the environment names for an address, if any; without its password."""
    address = httpx.URL(url)
    proxies = getproxies()
    given = proxies.get(address.scheme) or proxies.get("all")
    if not given or proxy_bypass(address.host):
        return None
    try:
        proxy = httpx.URL(given if "://" in given else f"http://{given}")
    except httpx.InvalidURL:
        return None
    return proxy.netloc.decode("ascii")
