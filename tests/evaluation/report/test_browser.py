"""The page in a real browser: headless Chromium, at the width of a desk and of a telephone."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess

import pytest

from sf3d_envs.evaluation import evaluate
from sf3d_envs.evaluation.report import pair_pictures, write_report

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine")

MEASURE = """
<script>
window.addEventListener("load", () => setTimeout(() => {
  const rect = e => e.getBoundingClientRect();
  const box = e => [rect(e).left, rect(e).right, rect(e).width, rect(e).height].map(Math.round);
  const all = s => [...document.querySelectorAll(s)];
  for (const d of all("details")) d.open = true;
  const video = document.querySelector("video");
  const found = {
    inner: window.innerWidth,
    page: document.documentElement.scrollWidth,
    figures: all("figure").map(box),
    drawings: all("figure svg").map(box),
    scrolls: all(".scroll").map(box),
    tables: all("table").map(box),
    texts: all("p, li, dd, h2").map(box),
    smallest: Math.min(...all("p, li, td, th, dd, figcaption").map(e => parseFloat(getComputedStyle(e).fontSize))),
    drawn: Math.min(...all("figure svg text").map(e => rect(e).height)),
    headings: all("h2").map(e => e.textContent),
    video: video && [video.videoWidth, video.videoHeight, video.duration, video.error && video.error.message],
    requests: performance.getEntriesByType("resource").map(e => e.name.slice(0, 30)),
  };
  const out = document.createElement("pre");
  out.id = "measured";
  out.textContent = JSON.stringify(found);
  document.body.append(out);
}, 300));
</script>
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A report with everything in it, the video cut short."""
    folder = tmp_path_factory.mktemp("browser")
    slugs = ["reference", "mu018", "mu005", "gradeN045", "gradeN045-mu018"]
    result = evaluate(
        ["idm17", "constant"], out=folder / "out", conditions=slugs, worlds=2, horizon_s=24.0, rich=2, threads=1
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pair_pictures, "LONGEST_S", 1.0)
        report = write_report(result.out)
    assert report.pair is not None
    copy = folder / "page.html"
    copy.write_text(report.html.read_text().replace("</body>", MEASURE + "</body>"))
    return copy


def look(page, width, height=900):
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", "--virtual-time-budget=8000"]
    command += [f"--window-size={width},{height}", f"--user-data-dir={page.parent / f'profile-{width}'}", page.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    found = re.search(r'<pre id="measured">(.*?)</pre>', done.stdout, re.DOTALL)
    assert found, done.stderr[-2000:]
    return json.loads(html.unescape(found[1]))


@pytest.mark.parametrize("width", [1280, 500])
def test_it_reads_well(page, width):
    seen = look(page, width)
    assert seen["inner"] == width
    assert seen["page"] <= width, "the page scrolls sideways"
    assert seen["headings"][0] == "In short"
    assert len(seen["headings"]) == 12
    for left, right, wide, high in (*seen["figures"], *seen["scrolls"], *seen["texts"]):
        assert 0 <= left < right <= width
        assert wide > 100
        assert high > 10
    assert len(seen["drawings"]) == 12
    assert all(wide >= 500 and high >= 100 for _, _, wide, high in seen["drawings"])
    assert len(seen["tables"]) == len(seen["scrolls"]) == 8
    assert all(high > 50 for *_, high in seen["tables"])
    assert seen["smallest"] >= 12.0
    assert seen["drawn"] >= 8.0, "text in a drawing is too small to read"
    across, down, seconds, error = seen["video"]
    assert error is None
    assert (across, down, round(seconds)) == (960, 360, 1)
    assert [name for name in seen["requests"] if not name.startswith("data:")] == []
