"""Texts that would be markup or script, were they not shown as texts; `pwn()` is what none of them may reach."""

from playwright.async_api import Page

MARKUP = [
    "<script>pwn()</script>",
    "<script src=//x.example/p.js></script>",
    "<ScRiPt>pwn()</sCrIpT>",
    "<scr<script>ipt>pwn()</script>",
    "<img src=x onerror=pwn()>",
    '<img src="x" onerror="pwn()" />',
    "<img/src=x/onerror=pwn()>",
    "<svg onload=pwn()>",
    "<svg><script>pwn()</script></svg>",
    "<svg><animate onbegin=pwn() attributeName=x dur=1s>",
    "<svg><a xlink:href=javascript:pwn()><text>x</text></a></svg>",
    "<math><mi//xlink:href='data:x,<script>pwn()</script>'>",
    "<iframe src=javascript:pwn()></iframe>",
    "<iframe srcdoc='<script>parent.pwn()</script>'></iframe>",
    "<object data=javascript:pwn()></object>",
    "<embed src=javascript:pwn()>",
    "<body onload=pwn()>",
    "<details open ontoggle=pwn()>x</details>",
    "<video><source onerror=pwn()></video>",
    "<input autofocus onfocus=pwn()>",
    "<form action=javascript:pwn()><button>x</button></form>",
    "<a href=javascript:pwn()>x</a>",
    "<base href=//x.example/>",
    "<link rel=stylesheet href=//x.example/x.css>",
    "<meta http-equiv=refresh content='0;url=//x.example'>",
    "<style>*{display:none}</style>",
    "<div style=position:fixed;inset:0>x</div>",
    "<template><script>pwn()</script></template>",
    "<noscript><p title='</noscript><img src=x onerror=pwn()>'>",
    "<!--<img src=x onerror=pwn()>-->",
    "--><script>pwn()</script>",
    "]]><script>pwn()</script>",
    '"><script>pwn()</script>',
    "' onmouseover='pwn()",
    "&lt;script&gt;pwn()&lt;/script&gt;",
    "&#60;img src=x onerror=pwn()&#62;",
    "\\u003cscript\\u003epwn()\\u003c/script\\u003e",
    "${pwn()} {{pwn()}} #{pwn()}",
    "\u202e<script>pwn()</script>",
]
MARKDOWN = [
    "[x](javascript:pwn())",
    "[x](JaVaScRiPt:pwn())",
    "[x](java\tscript:pwn())",
    "[x](&#106;avascript:pwn())",
    "[x](data:text/html,<script>pwn()</script>)",
    "[x](vbscript:pwn())",
    "[x](//x.example 'a\" onmouseover=\"pwn()')",
    "![x](javascript:pwn())",
    "![x](https://x.example/track.png)",
    "<javascript:pwn()>",
    "[x]: javascript:pwn()\n\n[x]",
    "```html\n<script>pwn()</script>\n```",
    "`<img src=x onerror=pwn()>`",
    "| <img src=x onerror=pwn()> |\n|---|\n| <script>pwn()</script> |",
]
CORPUS = MARKUP + MARKDOWN
ELEMENTS = "script, iframe, object, embed, style, base, form:not(.widget form), img, video, math, link, meta, template"
ATTRIBUTES = "[style], [srcdoc], [onerror], [onload], [onclick], [onmouseover], [onfocus], [ontoggle], [onbegin]"


async def arm(page: Page) -> None:
    await page.add_init_script("window.reached = []; window.pwn = () => { window.reached.push(1); };")
