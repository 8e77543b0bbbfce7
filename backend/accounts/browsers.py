"""What a browser calls itself, in words that its user recognises."""

_BROWSERS = (
    *(("Edg", "Edge"), ("OPR/", "Opera"), ("SamsungBrowser/", "Samsung Internet"), ("Firefox/", "Firefox")),
    *(("FxiOS/", "Firefox"), ("CriOS/", "Chrome"), ("Chrome/", "Chrome"), ("Safari/", "Safari")),
)
_SYSTEMS = (
    *(("iPhone", "iPhone"), ("iPad", "iPad"), ("Android", "Android"), ("CrOS", "ChromeOS")),
    *(("Windows", "Windows"), ("Macintosh", "Mac"), ("Linux", "Linux")),
)
UNKNOWN = "Another program"


def describe_browser(user_agent: str) -> str:
    """Returns a name such as “Firefox on Android”, made of our own words only: a header can say anything."""
    browser = next((name for mark, name in _BROWSERS if mark in user_agent), None)
    system = next((name for mark, name in _SYSTEMS if mark in user_agent), None)
    return " on ".join(filter(None, (browser, system))) or UNKNOWN
