"""How a session is named to its user."""

import pytest

from backend.accounts.browsers import UNKNOWN, describe_browser

CHROMIUM = "Mozilla/5.0 ({}) AppleWebKit/537.36 (KHTML, like Gecko) {} Safari/537.36"


@pytest.mark.parametrize(
    ("user_agent", "name"),
    [
        ("Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0", "Firefox on Linux"),
        ("Mozilla/5.0 (Android 15; Mobile; rv:145.0) Gecko/145.0 Firefox/145.0", "Firefox on Android"),
        (CHROMIUM.format("Windows NT 10.0; Win64; x64", "Chrome/142.0.0.0"), "Chrome on Windows"),
        (CHROMIUM.format("Windows NT 10.0; Win64; x64", "Chrome/142.0.0.0") + " Edg/142.0.0.0", "Edge on Windows"),
        (CHROMIUM.format("Linux; Android 10; K", "SamsungBrowser/28.0 Chrome/130.0"), "Samsung Internet on Android"),
        (CHROMIUM.format("X11; CrOS x86_64 14541.0.0", "Chrome/142.0.0.0"), "Chrome on ChromeOS"),
        (
            "Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) "
            "Version/18.6 Mobile/15E148 Safari/604.1",
            "Safari on iPhone",
        ),
        (
            "Mozilla/5.0 (iPad; CPU OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) "
            "CriOS/142.0.0.0 Mobile/15E148 Safari/604.1",
            "Chrome on iPad",
        ),
        (
            "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) "
            "Version/26.0 Safari/605.1.15",
            "Safari on Mac",
        ),
        ("python-httpx2/2.0", UNKNOWN),
        ("Your bank's app <b>", UNKNOWN),
        ("", UNKNOWN),
    ],
)
def test_name(user_agent: str, name: str) -> None:
    assert describe_browser(user_agent) == name
