"""A reader for scripts/follow_soak: python reader.py PATH INTERVAL_MS KEYS.

Watches the snapshot at PATH, in which the keys key:0 to key:KEYS-1 all have the number of the
generation as text. Prints "generation N" when it reads a later one than before. If it finds another
value than expected, it prints both and fails. Runs until it is killed.
"""

import sys
import time

import nuthatch

# Seconds between two groups of lookups. Six readers share the processors with the follower.
PAUSE = 0.001


def read(snapshot: nuthatch.Snapshot, keys: int) -> int:
    """Returns the generation of a snapshot."""
    generation = int(snapshot["key:0"])
    for key in range(1, keys):
        if key == keys // 2:
            # The follower may replace the file here: the snapshot stays readable.
            time.sleep(PAUSE)
        found = int(snapshot[f"key:{key}"])
        if found != generation:
            raise ValueError(f"key:{key}: expected {generation}, found {found}")
    return generation


def run(path: str, interval: float, keys: int) -> None:
    """Reads until standard output is closed."""
    last = 0
    with nuthatch.watch_snapshot(path, interval=interval) as watch:
        while True:
            generation = read(watch.current, keys)
            if generation < last:
                raise ValueError(f"key:0: expected {last} or more, found {generation}")
            if generation > last:
                print(f"generation {generation}", flush=True)
            last = generation


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit("usage: python reader.py PATH INTERVAL_MS KEYS")
    try:
        run(sys.argv[1], int(sys.argv[2]) / 1000, int(sys.argv[3]))
    except (KeyError, ValueError, nuthatch.Error) as error:
        print(error, flush=True)
        sys.exit(1)
