// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/cpp20.hpp>

#include <string_view>

namespace penstock::inline v0_1::detail {

/// The page of `dashboard`: everything it needs is in it. @NONCE@ stands for the number that lets its style
/// and its script work. It asks the server for `data` once a second while it is visible.
inline constexpr std::string_view dashboard_page = R"html(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Penstock</title>
<link rel="icon" href="data:,">
<style nonce="@NONCE@">
:root { --page: #fff; --card: #f3f5f8; --text: #1a1d21; --dim: #505a64; --line: #0b5cad; --rule: #c3cbd4;
  --bad: #a32c10; }
@media (prefers-color-scheme: dark) {
  :root { --page: #101317; --card: #191e25; --text: #e7eaee; --dim: #a8b2bd; --line: #79b8ff; --rule: #3d4752;
    --bad: #ffab8a; }
}
* { box-sizing: border-box; }
[hidden] { display: none !important; }
body { margin: 0 auto; max-width: 76rem; padding: 1rem; background: var(--page); color: var(--text);
  font: 1rem/1.45 system-ui, sans-serif; }
h1 { font-size: 1.25rem; margin: 0 0 .5rem; }
h2 { font-size: 1rem; margin: 0 0 .5rem; }
#state { color: var(--dim); font-weight: normal; }
#verdict { margin: 0 0 1rem; padding: .75rem; border-left: .3rem solid var(--line); background: var(--card); }
#verdict strong { display: block; }
main { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); }
section { background: var(--card); padding: .75rem; border-radius: .4rem; min-width: 0; }
section.wide { grid-column: 1 / -1; }
dl { display: grid; gap: .5rem 1rem; grid-template-columns: repeat(auto-fit, minmax(6.5rem, 1fr));
  margin: 0; }
dt, .note, th, figcaption, output { color: var(--dim); font-size: .875rem; font-weight: normal; }
dd { margin: 0; font-size: 1.25rem; overflow-wrap: anywhere; }
figure { margin: 0 0 .75rem; }
svg { display: block; width: 100%; height: 7rem; border-bottom: 1px solid var(--rule); }
polyline { fill: none; stroke: var(--line); stroke-width: 2; vector-effect: non-scaling-stroke; }
svg line { stroke: var(--dim); vector-effect: non-scaling-stroke; }
svg rect { fill: var(--line); }
input[type=range] { width: 100%; accent-color: var(--line); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: right; padding: .15rem .4rem; white-space: nowrap; font-variant-numeric: tabular-nums; }
th:first-child, td:first-child { text-align: left; white-space: normal; overflow-wrap: anywhere; }
tbody th { color: var(--text); font-size: 1rem; }
.bar { display: block; height: .5rem; min-width: 1px; background: var(--line); }
td.track { width: 30%; min-width: 3rem; }
@media (max-width: 40rem) { #stages .track, .scroll td.track { display: none;
  } th:first-child { min-width: 9rem; } }
.bad { color: var(--bad); }
pre { overflow-x: auto; font-size: .875rem; }
#pictures { display: flex; flex-wrap: wrap; gap: .4rem; }
canvas { width: 5.5rem; height: 5.5rem; object-fit: contain; image-rendering: pixelated;
  background: var(--page); }
summary { cursor: pointer; color: var(--line); }
:focus-visible { outline: 3px solid var(--line); outline-offset: 2px; }
</style>
</head>
<body>
<h1>Penstock <span id="state">connecting</span></h1>
<p id="verdict" role="status"></p>
<main>
<section class="wide" aria-label="Now"><dl id="now"></dl></section>
<section class="wide" aria-labelledby="over-time">
<h2 id="over-time">Throughput and stall over time</h2>
<figure><svg id="rate" viewBox="0 0 600 100" preserveAspectRatio="none" role="img"></svg><figcaption>
</figcaption></figure>
<figure><svg id="stall" viewBox="0 0 600 100" preserveAspectRatio="none" role="img"></svg><figcaption>
</figcaption></figure>
<label class="note" for="moment">Moment: arrow keys go second by second, End follows the run</label>
<input id="moment" type="range" min="0" max="0" value="0">
<output for="moment" id="said" aria-live="off"></output>
<details id="table"><summary>The last minute as a table</summary><div class="scroll" tabindex="0" role="group"
 aria-label="The last minute, second by second"><table><thead><tr><th scope="col">second</th>
<th scope="col">samples/s</th>
<th scope="col">bytes/s</th><th scope="col">stall</th><th scope="col">ready</th></tr></thead>
<tbody id="rows"></tbody></table></div></details>
</section>
<section class="wide" aria-labelledby="of-stages">
<h2 id="of-stages">The pipeline, and what each stage costs</h2>
<div class="scroll" tabindex="0" role="group" aria-labelledby="of-stages"><table><thead><tr>
<th scope="col">stage</th><th scope="col">share</th>
<td class="track"></td><th scope="col">a sample</th><th scope="col">samples</th></tr></thead>
<tbody id="stages"></tbody></table></div>
<details><summary>What the plan says of itself</summary><pre id="plan" tabindex="0"></pre></details>
</section>
<section aria-labelledby="of-time"><h2 id="of-time">Time of workers and loop since the start</h2>
<table><tbody id="times"></tbody></table></section>
<section aria-labelledby="of-waits"><h2 id="of-waits">How long the loop waited for a batch</h2>
<figure><svg id="waits" viewBox="0 0 600 100" preserveAspectRatio="none" role="img"></svg><figcaption>
</figcaption></figure></section>
<section id="storage" hidden aria-labelledby="of-storage"><h2 id="of-storage">Storage</h2><dl id="store"></dl>
<figure><svg id="latency" viewBox="0 0 600 100" preserveAspectRatio="none" role="img"></svg><figcaption>
</figcaption></figure></section>
<section id="cache" hidden aria-labelledby="of-cache"><h2 id="of-cache">Cache</h2><dl id="cached"></dl>
</section>
<section aria-labelledby="of-bad"><h2 id="of-bad">Bad samples</h2><dl id="bads"></dl></section>
<section id="sheet" class="wide" hidden aria-labelledby="of-sheet"><h2 id="of-sheet">Contact sheet</h2>
<div id="pictures" role="img" aria-labelledby="caption"></div><p id="caption" class="note"></p></section>
</main>
<noscript>This page needs JavaScript.</noscript>
<script nonce="@NONCE@">
'use strict';
const $ = id => document.getElementById(id), token = new URLSearchParams(location.search).get('token');
const kept = 600, shown = 60, bounds = i => 2 ** (i - 20);
let points = [], sheet = 0, follow = true, missed = 0, timer;

const in_units = (n, units) => {
  const [size, name] = units.find(u => n >= u[0] * 0.9995) || units[units.length - 1];
  const v = n / size;
  return (n ? v.toFixed(Number.isInteger(v) || v >= 99.95 ? 0 : v < 9.995 ? 2 : 1) : '0') +
    (name && ' ' + name);
};
const count = n => n < 1e4 ? String(Number.isInteger(n) ? n : n.toFixed(n < 100 ? 1 : 0)) :
  in_units(n, [[1e9, 'G'], [1e6, 'M'], [1e3, 'k']]);
const bytes = n => in_units(n, [[1e12, 'TB'], [1e9, 'GB'], [1e6, 'MB'], [1e3, 'kB'], [1, 'B']]);
const seconds = s => in_units(s, [[1, 's'], [1e-3, 'ms'], [1e-6, 'us'], [1e-9, 'ns']]);
const percent = x => (100 * x).toFixed(1) + ' %';
const clock = s => (s >= 3600 ? Math.floor(s / 3600) + ' h ' : '') + Math.floor(s / 60 % 60) + ' min ' +
  Math.floor(s % 60) + ' s';

function make(tag, text, ...inner) {
  const e = document.createElement(tag);
  if (text != null) e.textContent = text;
  e.append(...inner);
  return e;
}
function shape(name, attributes) {
  const e = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  return e;
}
function facts(id, list) {
  $(id).replaceChildren(...list.map(([name, value, bad]) => {
    const d = make('dd', value);
    if (bad) d.className = 'bad';
    return make('div', null, make('dt', name), d);
  }));
}
function row(name, ...cells) {
  const head = make('th', name);
  head.scope = 'row';
  return make('tr', null, head, ...cells.map(c => c instanceof Node ? c : make('td', c)));
}
function bar(share) {
  const cell = make('td'), b = make('span');
  cell.className = 'track';
  b.className = 'bar';
  b.style.width = 100 * share + '%';
  b.hidden = share <= 0;
  cell.append(b);
  return cell;
}
function describe(id, text) {
  $(id).setAttribute('aria-label', text);
  $(id).nextElementSibling.textContent = text;
}
function chart(id, at, top, words) {
  const wide = Math.max(shown, points.length), x = i => 600 * (wide - points.length + i) / (wide - 1);
  const chosen = Number($('moment').value);
  $(id).replaceChildren(shape('polyline', { points: points.map((p, i) => x(i).toFixed(1) + ',' +
    (98 - 96 * Math.min(1, p[at] / (top || 1))).toFixed(1)).join(' ') }));
  if (!follow) $(id).append(shape('line', { x1: x(chosen), x2: x(chosen), y1: 0, y2: 100 }));
  describe(id, words);
}
function histogram(id, counts, what) {
  const all = counts.reduce((a, b) => a + b, 0), most = Math.max(1, ...counts);
  const wide = 600 / Math.max(1, counts.length);
  const until = share => {
    let sum = 0;
    return counts.findIndex(c => (sum += c) >= share * all);
  };
  $(id).replaceChildren(...counts.map((c, i) => shape('rect', { x: i * wide + 1, width: Math.max(1, wide - 2),
    y: 100 - 98 * c / most, height: 98 * c / most })));
  const bound = i => i > 26 ? 'more than a minute' : 'at most ' + seconds(bounds(i));
  describe(id, all ? what + ': ' + count(all) + '; half took ' + bound(until(0.5)) + ', 99 % ' +
    bound(until(0.99)) +
    '; from ' + seconds(bounds(0)) + ' at the left, each bar is twice as long' : what + ': none yet');
}
function show_moment() {
  const m = $('moment'), p = points[follow ? points.length - 1 : m.value];
  if (!p) return;
  $('said').textContent = clock(p[1]) + ': ' + count(p[2]) + ' samples/s, ' + bytes(p[3]) + '/s, stall ' +
    percent(p[4]) +
    ', ' + p[5] + ' ready';
  m.setAttribute('aria-valuetext', $('said').textContent);
  const top = Math.max(...points.map(q => q[2])), now = points[points.length - 1];
  const past = ' over ' + clock(now[1] - points[0][1]);
  chart('rate', 2, top, 'Samples a second' + past + ': now ' + count(now[2]) + ', at most ' + count(top));
  chart('stall', 4, 1, 'Stall, the share of its time that the loop waits,' + past +
    ', from 0 to 100 %: now ' +
    percent(now[4]));
}
function show_stages(d) {
  const all = d.stages.reduce((a, s) => a + s.seconds, 0) || 1;
  const costs = (name, s) => row(name, percent(s.seconds / all), bar(s.seconds / all),
    seconds(s.samples && s.seconds / s.samples), count(s.samples));
  let next = 0;
  const named = d.plan.map(name => {
    const s = d.stages[next];
    if (!s || !name.startsWith(s.name)) return row(name, '', bar(0), '', '');
    ++next;
    return costs(name, s);
  });
  $('stages').replaceChildren(...named, ...d.stages.slice(next).map(s => costs(s.name, s)));
}
function show_sheet(s) {
  $('sheet').hidden = s.count == 0;
  const raw = atob(s.pixels), area = s.width * s.height;
  $('pictures').replaceChildren(...Array.from({ length: s.count }, (_, n) => {
    const c = make('canvas');
    c.width = s.width, c.height = s.height;
    const image = new ImageData(s.width, s.height);
    for (let i = 0; i < area; ++i) {
      for (let k = 0; k < 3; ++k)
        image.data[4 * i + k] = raw.charCodeAt((n * area + i) * s.channels + (s.channels == 3 ? k : 0));
      image.data[4 * i + 3] = 255;
    }
    c.getContext('2d').putImageData(image, 0, 0);
    return c;
  }));
  $('caption').textContent = 'The first ' + s.count + ' of ' + s.of + ' images' +
    (s.field && ' of the field ' + s.field) +
    ' in batch ' + s.step + ' of epoch ' + s.epoch;
}
function show(d) {
  if (d.points.length && points.length && d.points[0][0] <= points[points.length - 1][0]) points = [];
  const moved = Math.max(0, points.length + d.points.length - kept), m = $('moment'),
    chosen = Number(m.value) - moved;
  points = points.concat(d.points).slice(-kept);
  m.max = Math.max(0, points.length - 1);
  m.value = follow ? m.max : Math.max(0, chosen);
  const r = d.run, v = d.verdict, lately = points.slice(-10);
  const mean = i => lately.reduce((a, p) => a + p[i], 0) / Math.max(1, lately.length);
  $('state').textContent =
    d.ended ? 'the run has ended; these are its last values' : 'running for ' + clock(r.seconds);
  if ($('verdict').textContent != v.limit + v.advice)  // so that it is read out only when it changes
    $('verdict').replaceChildren(make('strong', v.limit), v.advice);
  facts('now', [['samples/s', count(mean(2))], ['bytes/s', bytes(mean(3))], ['stall', percent(v.stall)],
    ['workers busy', percent(v.busy)], ['batches ready', r.ready + ' of ' + r.depth], ['workers', r.workers],
    ['epoch, step', r.epoch + ', ' + count(r.step)], ['samples', count(r.samples)],
    ['delivered', bytes(r.bytes)], ['memory', bytes(r.held)]]);
  show_moment();
  if ($('table').open)
    $('rows').replaceChildren(...points.slice(-60).reverse().map(
      p => row(p[1].toFixed(0), count(p[2]), bytes(p[3]), percent(p[4]), p[5])));
  show_stages(d);
  $('plan').textContent = d.description;
  const shares = [
    ['workers: at work', r.busy, r.worker_seconds],
    ['workers: no room for more', r.no_room, r.worker_seconds],
    ['workers: waiting for input', r.no_input, r.worker_seconds],
    ['loop: waiting for a batch', r.stalled, r.seconds],
    ['loop: of it, for a slow sample', r.on_slow_sample, r.seconds],
    ['loop: waiting for a copy', r.for_copy, r.seconds]];
  $('times').replaceChildren(...shares.map(([name, part, all]) => {
    const share = all ? Math.min(1, part / all) : 0;
    return row(name, percent(share), bar(share));
  }));
  histogram('waits', d.waits, 'Waits');
  $('storage').hidden = r.requests + r.read == 0;
  facts('store', [['requests', count(r.requests)], ['read', bytes(r.read)], ['tried again', count(r.retries)],
    ['failed', count(r.failed), r.failed], ['asked to slow down', count(r.slow_downs), r.slow_downs],
    ['throttled', count(r.throttled)], ['hedged', count(r.hedges)]]);
  $('latency').parentElement.hidden = !d.latency.length;
  histogram('latency', d.latency, 'Requests');
  const looked = r.hits + r.fetched + r.uncached, held = r.kept_hits + r.kept + r.kept_uncached;
  $('cache').hidden = looked + held == 0;
  const cached = [['hits', percent(r.hits / looked)], ['fetched', count(r.fetched)],
    ['evicted', count(r.evicted)], ['past the cache', count(r.uncached)],
    ['damaged', count(r.corrupt), r.corrupt]];
  const in_memory = [['kept in memory', count(r.kept)], ['their bytes', bytes(r.kept_bytes)],
    ['shown again', count(r.kept_hits)], ['no room for', count(r.kept_uncached)]];
  facts('cached', [...(looked ? cached : []), ...(held ? in_memory : [])]);
  facts('bads', [['skipped', count(r.skipped), r.skipped], ['replaced', count(r.replaced), r.replaced],
    ['damaged, used in part', count(r.damaged), r.damaged]]);
  if (d.sheet) sheet = d.sheet_number, show_sheet(d.sheet);
}
async function ask() {
  clearTimeout(timer);
  if (document.hidden) return;
  let wait = 1000;
  try {
    const query = new URLSearchParams({ after: points.length ? points[points.length - 1][0] : 0, sheet });
    if (token) query.set('token', token);
    const answer = await fetch('data?' + query);
    if (!answer.ok) throw new Error(await answer.text());
    const d = await answer.json();
    show(d);
    missed = 0;
    if (d.ended) return;
  } catch (e) {
    wait = 2000;
    if (++missed > 1) $('state').textContent = 'no answer from the program; these are its last values';
  }
  clearTimeout(timer);
  timer = setTimeout(ask, wait);
}
$('moment').addEventListener('input', () => {
  follow = $('moment').value == $('moment').max;
  show_moment();
});
document.addEventListener('visibilitychange', ask);
ask();
</script>
</body>
</html>
)html";

}  // namespace penstock::inline v0_1::detail
