"""Writes a made-up week into the history of calls, for pictures: buckets of trends and marks of changes, no calls."""
import math
import random
import sqlite3
import sys
import time

random.seed(7)
WIDTHS = {60_000: 120, 900_000: 192, 7_200_000: 168}
# name: calls a minute, share of errors, typical time in ms, trips
TOOLS = {
    "weather": (2.2, 0.01, 140),
    "web_search": (0.8, 0.02, 1600),
    "home_lights": (1.4, 0.08, 190),
    "home_scene": (0.3, 0.05, 420),
    "notes_find": (2.8, 0.05, 40),
    "calculator": (1.1, 0.0, 1),
    "send_mail": (0.15, 0.0, 250),
}


def put(number):
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def bucket(micros):
    if micros < 8:
        return micros
    exponent = micros.bit_length() - 1
    return min((exponent - 2) * 8 + (micros >> (exponent - 3) & 7), 255)


def histogram(times):
    counts = {}
    for one in times:
        counts[bucket(one)] = counts.get(bucket(one), 0) + 1
    out, last = b"", 0
    for index in sorted(counts):
        out += put(index - last) + put(counts[index])
        last = index
    return out


path = [name for name in sys.argv[1:] if "history" in name][0]
now = int(time.time() * 1000)
with sqlite3.connect(path) as db:
    numbers = {}
    for name in TOOLS:
        db.execute("INSERT OR IGNORE INTO tools (name, source) VALUES (?, ?)", (name, name))
        numbers[name] = db.execute("SELECT id FROM tools WHERE name = ?", (name,)).fetchone()[0]
    for width, steps in WIDTHS.items():
        last = now - now % width
        for step in range(1, steps):
            start = last - step * width
            day = 0.55 + 0.45 * math.sin(start / 86_400_000 * 2 * math.pi + 1)
            all_tools = [0] * 7
            all_times = []
            for name, (rate, errors, typical) in TOOLS.items():
                mean = rate * width / 60_000 * (0.4 + day)
                calls = min(int(random.gauss(mean, math.sqrt(mean) * 0.8) + 0.5), 4000)
                if calls <= 0:
                    continue
                is_bad = name == "home_lights" and start > now - 9 * 60_000 and width == 60_000
                slow = 2.3 if name == "web_search" and start > now - 3_600_000 else 1.0
                failed = sum(random.random() < (0.6 if is_bad else errors) for _ in range(calls))
                sample = [max(1, int(1000 * typical * slow * random.lognormvariate(0, 0.35))) for _ in range(min(calls, 300))]
                retries = failed + int(random.random() < 0.2)
                row = [calls, failed, int(failed * 0.2), 0, 0, retries, 0]
                trips = 1 if is_bad and 6 * 60_000 < now - start < 7.2 * 60_000 else 0
                db.execute("INSERT OR REPLACE INTO buckets VALUES (?,?,?,?,?,?,?,?,?,?,?,?)", (width, numbers[name], start, *row, trips, histogram(sample)))
                all_tools = [a + b for a, b in zip(all_tools, row)]
                all_times += sample
                all_tools[6] = 0
            db.execute("INSERT OR REPLACE INTO buckets VALUES (?,?,?,?,?,?,?,?,?,?,?,?)", (width, 0, start, *all_tools, 0, histogram(all_times)))
    marks = [
        (now - 5 * 86_400_000, "start", "Steadyhand 0.1.0 started"),
        (now - 2 * 86_400_000, "config", "Configuration reloaded, generation 5"),
        (now - 26_000_000, "config", "Configuration reloaded, generation 6"),
        (now - 9 * 60_000 - 20_000, "config", "Configuration reloaded, generation 7"),
        (now - 31 * 60_000, "tools", "Tools of calendar changed"),
    ]
    db.executemany("INSERT INTO marks (at_ms, kind, text) VALUES (?,?,?)", marks)
