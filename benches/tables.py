"""Makes Markdown tables of what the benchmark programs measured; used by ./run."""

import json
import sys
from pathlib import Path

folder = Path(sys.argv[1])


def read(name):
    return json.loads((folder / f"{name}.json").read_text().strip().splitlines()[-1])


def row(*cells):
    print("| " + " | ".join(str(cell) for cell in cells) + " |")


def header(*cells):
    row(*cells)
    row(*["---"] + ["---:"] * (len(cells) - 1))


print("What a call costs here (CPU of the process, best and median block)\n")
header("", "min ns", "median ns")
for figure in read("engine"):
    row(figure["name"].strip(), f"{figure['cpu_ns_min']:,.0f}", f"{figure['cpu_ns_median']:,.0f}")

counted = read("instructions")
print("\nInstructions of one call (callgrind)\n")
header("", "instructions")
names = {
    "input": "the value a caller hands over, made and dropped",
    "bare": "bare: value in, no validation, no guard",
    "floor": "string floor: look up, parse, validate, call, serialise",
    "guarded": "steadyhand: value in, outcome out",
    "guarded_text": "steadyhand: text in, text out",
    "guarded_over_bare": f"steadyhand over bare (target {counted['limit']:,})",
}
for key, name in names.items():
    row(name, f"{counted[key]:,}")

figures = [(f["name"], f["cpu_ns_min"] / 1e3, f["cpu_ns_median"] / 1e3) for f in read("peers")]
figures += [(f["name"], f["us_min"], f["us_median"]) for f in read("toolnode")]
for title, batch in [("One call through each, JSON text in and out", False), ("A batch of 100 through each", True)]:
    chosen = [figure for figure in figures if ("batch" in figure[0]) == batch]
    least = {name.split(",")[0]: low for name, low, _ in chosen}
    print(f"\n{title}\n")
    header("", "min µs", "median µs", "÷ floor", "÷ steadyhand")
    for name, low, median in chosen:
        ratios = [f"{low / least[of]:,.1f}" for of in ("string floor", "steadyhand")]
        row(name.split(",")[0], f"{low:,.2f}", f"{median:,.2f}", *ratios)
