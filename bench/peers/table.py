# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The results of peers.py as a Markdown table for each work, and as bar charts."""

import datetime
import json
import pathlib
import platform
import statistics
import sys

NO_PEER = ("bare",)  # what no loader can pass
UNIT = {"jpeg": "images/s", "resume": "s to the next batch"}
# Row, works, our side, the peers that it is compared with (none: all of them), and the bar of the ratio.
BARS = (
    ("raw samples, default settings, against the best peer",
     ("1k", "10k", "110k", "1k_shuffled", "10k_shuffled", "110k_shuffled"), "penstock", (), 1.0),
    ("from Python, NumPy arrays of 1 KB, against the best Python peer", ("1k_shuffled",), "penstock_python", (), 1.2),
    ("restart in mid-epoch, 1 million samples", ("resume",), "penstock", ("streaming",), 20),
    ("restart in mid-epoch, 1 million samples", ("resume",), "penstock", ("torch",), 20),
    ("photos to normalised batches", ("jpeg",), "penstock", ("dali",), 1.5),
    ("photos to normalised batches", ("jpeg",), "penstock", ("ffcv",), 1.5),
    ("photos to normalised batches, PyTorch with PIL", ("jpeg",), "penstock", ("torch",), 3.0),
)


def value(result, work):
    """Samples per second, or seconds until the next batch after a restart."""
    return result["first_batch_seconds"] if work == "resume" else result["samples"] / result["seconds"]


def median(results, work, of=None):
    return statistics.median(of(result) if of else value(result, work) for result in results)


def ratio(ours, theirs, work):
    """How many times as fast as theirs ours is: the median over the rounds that both have."""
    by_round = {b.get("round", number): value(b, work) for number, b in enumerate(theirs)}
    quotients = [value(a, work) / by_round[a.get("round", number)] for number, a in enumerate(ours)
                 if a.get("round", number) in by_round]
    return statistics.median(1 / q if work == "resume" else q for q in quotients or [float("nan")])


def spread(results, work):
    values = [value(result, work) for result in results]
    return f"{min(values):,.4g} to {max(values):,.4g}"


def rows(work, peers):
    """The fastest first."""
    for peer in sorted(peers, key=lambda peer: median(peers[peer], work), reverse=work != "resume"):
        results = peers[peer]
        ours = f"{ratio(peers['penstock'], results, work):.3g}" if "penstock" in peers else ""
        line = [peer, f"{median(results, work):,.4g}", spread(results, work), ours]
        if work != "resume":
            line += [f"{median(results, work, lambda r: r['first_batch_seconds']):.3g}",
                     f"{median(results, work, lambda r: 1e6 * r['cpu_seconds'] / r['samples']):.3g}",
                     f"{median(results, work, lambda r: r['memory_mb']):.0f} "
                     f"({median(results, work, lambda r: r['own_memory_mb']):.0f})"]
        yield line + ["default" if peer == "penstock" else str(results[0]["workers"])]


def settings(results):
    """How each loader was set, and its versions: a line for each kind of work."""
    found = {}
    for work, peers in results.items():
        for peer, measured in peers.items():
            kind = "photos" if work == "jpeg" else "restart" if work == "resume" else "samples"
            versions = ", ".join(f"{name} {version}" for name, version in measured[0]["versions"].items())
            found.setdefault((peer, kind), [peer, kind, measured[0]["settings"], versions])
    return [found[key] for key in sorted(found)]


def faults(work, peers):
    """Peers that did not read what the others read."""
    if work == "resume":
        return
    checks = {peer: results[0]["check"] for peer, results in peers.items()}
    usual = statistics.median(checks.values()) if work == "jpeg" else statistics.mode(checks.values())
    for peer, check in checks.items():
        if abs(check - usual) > 0.5 if work == "jpeg" else check != usual:
            yield f"{peer} read other samples than most: checksum {check} instead of {usual}"


def bars(results):
    """A line for each bar."""
    for what, works, ours, peers, bar in BARS:
        for work in works:
            found = results.get(work, {})
            others = [p for p in (peers or found) if p in found and not p.startswith("penstock") and p not in NO_PEER]
            if ours not in found or not others:
                yield [what, work, "", f"{bar}", "", "not measured"]
                continue
            if ours == "penstock_python":
                others = [p for p in others if p != "libtorch"]
            best = min(others, key=lambda peer: ratio(found[ours], found[peer], work))
            reached = ratio(found[ours], found[best], work)
            yield [what, work, best, f"{bar}", f"{reached:.3g}", "pass" if reached >= bar else "MISS"]


def markdown(head, lines):
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, ["---"] * len(head), *lines]) + "\n\n"


def chart(path, work, peers):
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": work}  # text stays text, and equal data equal files
    from matplotlib import pyplot

    order = sorted(peers, key=lambda peer: median(peers[peer], work), reverse=work == "resume")
    figure, axes = pyplot.subplots(figsize=(7, 0.8 + 0.3 * len(order)), layout="constrained")
    values = [median(peers[peer], work) for peer in order]
    ends = [[v - min(value(r, work) for r in peers[p]) for p, v in zip(order, values)],
            [max(value(r, work) for r in peers[p]) - v for p, v in zip(order, values)]]
    colours = ["#c0504d" if peer.startswith("penstock") else "#7f8fa6" for peer in order]
    axes.barh(order, values, xerr=ends, color=colours)
    axes.set_xscale("log")
    axes.set_xlabel(UNIT.get(work, "samples/s") + ", median and range, logarithmic")
    axes.set_title(work)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def machine():
    """The processors, the system and the day."""
    lines = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    processors = f"{len(names)} x {names[0]}" if names else platform.machine()
    return f"{processors}, {platform.system()} {platform.release()}, {datetime.date.today()}"


def write(folder, results, missing, where):
    """FOLDER/peers.md, and FOLDER/<work>.svg for each work that was measured; `where`: see `machine`."""
    results = {work: peers for work, peers in results.items() if peers}
    text = f"# Loaders side by side\n\n{where}\n\n"
    text += markdown(["what", "work", "best peer", "bar", "ratio", "verdict"], bars(results))
    head = ["first batch, s", "CPU, us per sample", "memory, MB (without files)"]
    for work, peers in results.items():
        text += f"## {work}\n\n![{work}]({work}.svg)\n\n"
        text += markdown(["loader", UNIT.get(work, "samples/s"), "range", "Penstock is faster by",
                          *([] if work == "resume" else head), "workers"], rows(work, peers))
        for fault in faults(work, peers):
            text += f"* {fault}\n"
        for peer, why in missing.get(work, {}).items():
            text += f"* not measured: {peer}: {why}\n"
        text += "\n"
        chart(folder / f"{work}.svg", work, peers)
    text += "## How they were set\n\n" + markdown(["loader", "work", "settings", "versions"], settings(results))
    (folder / "peers.md").write_text(text, encoding="utf-8")


def main():
    """table.py FOLDER: the table and the charts of FOLDER/peers.json again."""
    folder = pathlib.Path(sys.argv[1])
    known = json.loads((folder / "peers.json").read_text(encoding="utf-8"))
    write(folder, known["results"], known["missing"], known.get("machine") or machine())


if __name__ == "__main__":
    main()
