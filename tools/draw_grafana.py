#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""draw_grafana.py PROMETHEUS_URL PICTURE.png [SECONDS]: draws the panels of docs/grafana.json from what a Prometheus
answers to their queries, over the last so many seconds. It is not Grafana: Chromium draws the same expressions, at the
same places, plainly."""

import json
import pathlib
import re
import sys
import tempfile
import time
import urllib.parse
import urllib.request

import check_grafana
from source_tree import ROOT

sys.path.insert(0, str(ROOT / "tests" / "support"))
import browser  # noqa: E402

PAGE = r"""<!doctype html><meta charset="utf-8"><style>
body { margin: 8px; font: 12px system-ui, sans-serif; background: #f4f5f5; color: #24292e; display: grid; gap: 6px;
  grid-template-columns: repeat(24, 1fr); grid-auto-rows: 20px; }
div { background: #fff; border: 1px solid #dcdfe3; padding: 6px; overflow: hidden; position: relative; }
b { font-weight: 600; } svg { display: block; width: 100%; height: calc(100% - 3.4em); }
p { margin: 0; white-space: nowrap; } .big { font-size: 20px; margin-top: 8px; } i { font-style: normal; color: #5a6470; }
</style><body><script>
const panels = @PANELS@, colours = ['#2f7ed8', '#d9822b', '#3d9a50', '#b0413e', '#7a52a3', '#5d6d7e', '#c2a000', '#00838f'];
const steps = (n, all) => { const [s, u] = all.find(x => n >= x[0]) || all[all.length - 1]; return +(n / s).toPrecision(3) + u; };
const metric = [[1e9, ' G'], [1e6, ' M'], [1e3, ' k'], [1, ' ']];
function words(n, unit) {
  if (unit == 's') return steps(n, [[1, ' s'], [1e-3, ' ms'], [1e-6, ' us'], [1e-9, ' ns']]);
  if (unit == 'percentunit') return +(100 * n).toPrecision(3) + ' %';
  if (unit == 'bytes' || unit == 'Bps') return steps(n, metric) + 'B' + (unit == 'Bps' ? '/s' : '');
  return n < 1e4 ? +n.toPrecision(n < 1000 ? 3 : 4) + unit.replace(/^suffix:|^short$|^none$/, '').replace('reqps', ' /s') :
    steps(n, metric) + unit.replace(/^suffix: ?|^short$|^none$/, '').replace('reqps', '/s');
}
const draw = (parent, name, given) => {
  const e = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const k in given) e.setAttribute(k, given[k]);
  parent.append(e);
  return e;
};
const add = (parent, name, text, style) => {
  const e = document.createElement(name);
  e.textContent = text;
  e.className = style || '';
  parent.append(e);
  return e;
};
for (const { title, type, unit, stacking, at, times, series } of panels) {
  const box = add(document.body, 'div', '');
  box.style.gridArea = `${at.y + 1} / ${at.x + 1} / span ${at.h} / span ${at.w}`;
  add(add(box, 'p', ''), 'b', title);
  if (type == 'stat') {
    for (const s of series.slice(0, 2)) {
      const p = add(box, 'p', '', 'big');
      add(p, 'i', (series.length > 1 || s.name.startsWith('rank') ? s.name + ' ' : ''));
      p.append(words(s.values.filter(v => v != null).pop() || 0, unit));
      if (series.length > 1) p.style.fontSize = '14px';
    }
    continue;
  }
  const svg = draw(box, 'svg', { viewBox: '0 0 600 100', preserveAspectRatio: 'none' }), n = times.length;
  const x = i => 600 * i / (n - 1);
  if (type == 'heatmap') {
    const all = series.sort((a, b) => Number(a.name.replace('+Inf', 'Infinity')) - Number(b.name.replace('+Inf', 'Infinity')));
    const cells = all.map((s, k) => s.values.map((v, i) => Math.max(0, (v || 0) - (k ? all[k - 1].values[i] || 0 : 0))));
    const most = Math.max(...cells.flat()), high = 100 / all.length;
    cells.forEach((row, k) => row.forEach((v, i) => v > 0 && draw(svg, 'rect', { x: x(i), width: 600 / n + 0.5,
      y: 100 - (k + 1) * high, height: high, fill: '#c2410c', 'fill-opacity': (v / most) ** 0.5 })));
    add(box, 'p', 'from ' + words(Number(all[0].name), 's') + ' below to a minute above, each row is twice as long', 'note');
    continue;
  }
  const sums = times.map((_, i) => series.reduce((a, s) => a + (s.values[i] || 0), 0)), below = times.map(() => 0);
  const high = series.map(s => s.values.map((v, i) => v == null ? null :
    stacking == 'none' ? v : (below[i] += v) / (stacking == 'percent' ? sums[i] || 1 : 1)));
  const top = stacking == 'percent' ? 1 : Math.max(1e-12, ...high.flat()), y = v => 98 - 94 * v / top;
  high.map((values, k) => {
    const line = values.map((v, i) => v == null ? null : `${x(i).toFixed(1)},${y(v).toFixed(1)}`).filter(p => p).join(' ');
    if (!line) return;
    const first = values.findIndex(v => v != null), last = values.length - 1 - [...values].reverse().findIndex(v => v != null);
    if (stacking != 'none')
      draw(svg, 'polygon', { points: `${line} ${x(last)},98 ${x(first)},98`, fill: colours[k % 8] });
    draw(svg, 'polyline', { points: line, fill: 'none', stroke: colours[k % 8], 'stroke-width': 1.5,
      'vector-effect': 'non-scaling-stroke' });
    if (stacking != 'none') svg.prepend(...[...svg.children].slice(-2));  // the lower ones in front
  });
  const legend = add(box, 'p', high.flat().some(v => v > 0) ?
    'to ' + words(stacking == 'percent' ? 1 : top, stacking == 'percent' ? 'percentunit' : unit) + ': ' : 'none: ');
  series.forEach((s, k) => {
    add(legend, 'b', ' \u25a0 ').style.color = colours[k % 8];
    legend.append(s.name);
  });
}
</script>"""


def ask(prometheus, expression, begin, end, step):
    query = urllib.parse.urlencode({"query": expression, "start": begin, "end": end, "step": step})
    with urllib.request.urlopen(f"{prometheus}/api/v1/query_range?{query}", timeout=30) as answer:
        return json.load(answer)["data"]["result"]


def main():
    prometheus, picture = sys.argv[1].rstrip("/"), sys.argv[2]
    seconds = int(sys.argv[3]) if len(sys.argv) > 3 else 300
    end = int(time.time())
    step = max(1, seconds // 150)
    times = list(range(end - seconds, end + 1, step))
    panels = []
    for panel in json.loads(check_grafana.PATH.read_text(encoding="utf-8"))["panels"]:
        series = []
        for target in panel["targets"]:
            expression = check_grafana.plain(target["expr"]).replace("[1m]", f"[{max(10, 4 * step)}s]")
            for one in ask(prometheus, expression, times[0], times[-1], step):
                values = {int(float(t)): float(v) for t, v in one["values"] if v not in ("NaN", "+Inf")}
                name = re.sub(r"\{\{(\w+)\}\}", lambda m, l=one["metric"]: l.get(m[1], ""), target["legendFormat"])
                series.append({"name": name.strip(), "values": [values.get(t) for t in times]})
        field = panel["fieldConfig"]["defaults"]
        panels.append({"title": panel["title"], "type": panel["type"], "unit": field["unit"], "at": panel["gridPos"],
                       "stacking": field.get("custom", {}).get("stacking", {}).get("mode", "none"), "times": times,
                       "series": series})
    with tempfile.TemporaryDirectory() as folder, browser.Browser() as page:
        path = pathlib.Path(folder) / "page.html"
        path.write_text(PAGE.replace("@PANELS@", json.dumps(panels).replace("<", "\\u003c")), encoding="utf-8")
        page.open(path.as_uri())
        page.wait_for("document.querySelectorAll('svg').length && document.readyState == 'complete'")
        page.show(1000, page.run("document.documentElement.scrollHeight"))
        page.picture(picture)
        print(f"{picture}: {len(panels)} panels", *page.complaints)


if __name__ == "__main__":
    main()
