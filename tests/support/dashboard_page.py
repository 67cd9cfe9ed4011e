#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Looks at a dashboard's page in a headless Chromium.

    dashboard_page.py check          is Chromium here?
    dashboard_page.py URL [ended]    says what is wrong with the page; with `ended`, of a run that has ended
    dashboard_page.py URL NAME       writes NAME_light.png, NAME_dark.png and NAME_phone.png
"""

import sys

import browser

# Each text that can be seen and has less contrast than WCAG 2.2 AA asks for, with its contrast.
PALE = """(() => {
  const numbers = c => c.match(/[\\d.]+/g).map(Number);
  const light = c => {
    const [r, g, b] = c.map(v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
  };
  const found = [];
  const all = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (all.nextNode()) {
    const e = all.currentNode.parentElement;
    if (!all.currentNode.data.trim() || !e.checkVisibility() || e.tagName == 'SCRIPT') continue;
    let behind = e;
    while (behind && numbers(getComputedStyle(behind).backgroundColor)[3] === 0) behind = behind.parentElement;
    const a = light(numbers(getComputedStyle(e).color)), b = light(numbers(getComputedStyle(behind).backgroundColor));
    const contrast = Math.max(a, b) / Math.min(a, b);
    if (contrast < 4.5) found.push(e.textContent + ': ' + contrast);
  }
  return found;
})()"""


def look(page, url):
    faults = []

    def expect(true, what):
        if not true:
            faults.append(what)

    page.open(url)
    page.wait_for("document.querySelectorAll('canvas').length && document.getElementById('verdict').textContent && "
                  "points.length > 2")
    pixel = page.run("[...document.querySelector('canvas').getContext('2d').getImageData(0, 0, 2, 1).data]")
    expect(pixel == [(pixel[0] + k) % 256 if k < 3 else 255 for k in range(4)] +
           [(pixel[0] + 3 + k) % 256 if k < 3 else 255 for k in range(4)], f"pixels of the contact sheet: {pixel}")
    expect(page.run("[...document.querySelectorAll('#stages th')].map(e => e.textContent).join()") ==
           "generated(4096),map,batch(8, tail keep),workers(1)", "the stages")
    expect("%" in page.run("document.querySelectorAll('#stages tr')[1].textContent"), "the cost of a stage")
    expect(page.run("performance.getEntriesByType('resource').every(e => e.name.startsWith(location.origin))"),
           "something is loaded from elsewhere")
    backgrounds = {}
    for width in (1000, 360):
        for scheme in ("light", "dark"):
            page.show(width, 800, scheme)
            which = f"{scheme}, {width} pixels wide: "
            pale = page.run(PALE)
            expect(not pale, f"{which}too pale: {pale}")
            wide = page.run("document.documentElement.scrollWidth")
            expect(wide <= width, f"{which}the page is {wide} pixels wide")
            backgrounds[scheme] = page.run("getComputedStyle(document.body).backgroundColor")
    expect(backgrounds["light"] != backgrounds["dark"], "dark is as light")
    page.show(1000, 800)

    reached = []
    for _ in range(20):
        page.press("Tab")
        here = page.run("(e => e == document.body ? '' : [e.id || e.className || e.tagName, "
                        "getComputedStyle(e).outlineStyle].join())(document.activeElement)")
        if not here or here in reached[:1]:
            break
        reached.append(here)
        expect(here.endswith("solid"), f"nobody sees that the focus is at {here}")
        if here.startswith("moment"):
            page.press("ArrowLeft")
            expect(page.run("!follow && !!document.querySelector('#rate line')"), "the arrow keys choose no moment")
            page.press("End")
            expect(page.run("follow"), "End does not follow the run")
        elif here.startswith("SUMMARY"):
            page.press("Enter")
    for part in ("moment", "SUMMARY", "scroll", "plan"):
        expect(any(one.startswith(part) for one in reached), f"the keyboard does not reach {part}: {reached}")
    expect(page.wait_for("document.querySelectorAll('#rows tr').length"), "the table has no rows")
    for node in page.call("Accessibility.getFullAXTree")["nodes"]:
        role = node.get("role", {}).get("value")
        if role in ("slider", "image", "group", "region", "table") and not node.get("ignored"):
            name = node.get("name", {}).get("value", "")
            expect(name or role in ("table", "group"), f"a {role} without a name")
    expect(page.run("document.getElementById('verdict').role") == "status", "the verdict is not read out")
    expect(not page.complaints, f"the console says: {page.complaints}")
    return faults


def main():
    if sys.argv[1] == "check":
        return 0 if browser.program() else 1
    with browser.Browser() as page:
        if len(sys.argv) == 2:
            faults = look(page, sys.argv[1])
            print("\n".join(faults))
            return 1 if faults else 0
        page.open(sys.argv[1])
        if sys.argv[2] == "ended":
            page.wait_for("document.getElementById('state').textContent.includes('has ended')")
            return 0
        page.wait_for("points.length > 2 && document.querySelectorAll('canvas').length")
        for name, width, scheme in (("light", 1000, "light"), ("dark", 1000, "dark"), ("phone", 360, "light")):
            page.show(width, 800, scheme)
            page.show(width, page.run("document.documentElement.scrollHeight"), scheme)
            page.picture(f"{sys.argv[2]}_{name}.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
