"""Devices and collectors that are killed with SIGKILL: nothing acknowledged is lost, nothing is drawn twice, the end is the same.

Each test starts one process, which forks the ones that die: importing anew for each would take minutes.
"""

import json
import sys
from pathlib import Path

import pytest

import warm

pytestmark = [pytest.mark.journey, pytest.mark.skipif(sys.platform == "win32", reason="forks and kills by signal")]

PATIENCE = 240  # seconds until a process that hangs is given up; no test waits for it to pass
HERE = Path(__file__).parent

FORKING = """
import json, os, signal, sqlite3, sys, traceback
from collections import Counter
import numpy as np
sys.path.insert(0, sys.argv[1])
from campaigns import *
from kveil.collect.manifest import Manifest
from kveil.collect.report import Report
from kveil.collect.collector import Status
folder = sys.argv[2]

def start(work):
    '''A child that runs work(say), and the lines that it says.'''
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(ours)
        try:
            work(lambda line: os.write(theirs, (line + "\\n").encode()))
        except BaseException:
            os.write(theirs, traceback.format_exc().encode())
        os._exit(0)
    os.close(theirs)
    return child, os.fdopen(ours)

def ended(child, lines):
    '''What else it said; waits until it is gone.'''
    said = [line.rstrip("\\n") for line in lines]
    os.waitpid(child, 0)
    assert not any("Traceback" in line for line in said), said
    return said
"""


def run(script, *arguments):
    done = warm.run(FORKING + script, HERE, *arguments, cwd=HERE, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


DEVICE = """
STEPS = ["before BEGIN IMMEDIATE", "before INSERT INTO", "after INSERT INTO", "after UPDATE device", "before COMMIT",
         "after COMMIT", "after sending", "before UPDATE spend", "after UPDATE spend"]
signed = make_collector().open(make_campaign(), *OPEN)

class Watched(sqlite3.Connection):
    reach, begun = staticmethod(lambda name: None), ""
    def execute(self, sql, *args):
        words = " ".join(sql.split()[:2])
        self.begun = words if words.startswith("BEGIN") else self.begun
        words += " of reading" * (words == "COMMIT" and self.begun == "BEGIN")
        self.reach("before " + words)
        result = super().execute(sql, *args)
        self.reach("after " + words)
        return result

connect = sqlite3.connect
def watched(place, *args, **more):   # the file only: the vault counts one draw on a ledger in memory
    return connect(place, *args, **more, **({"factory": Watched} if place != ":memory:" else {}))
sqlite3.connect = watched

for step in STEPS:
    path = os.path.join(folder, step.replace(" ", "-") + ".db")
    make_device(path).close()

    def work(say):
        client = make_device(path)
        def reach(name):
            if name == step:
                say("reached")
                while True:
                    signal.pause()
        Watched.reach = staticmethod(reach)
        report = client.answer([signed], [0.5, 0.5])
        say("sent " + report.hex())      # out of the process as soon as it exists
        reach("after sending")
        client.acknowledged(signed.hash)

    child, lines = start(work)
    said = []
    for line in lines:
        said.append(line.strip())
        if line == "reached\\n":
            break
    os.kill(child, signal.SIGKILL)
    said += ended(child, lines)
    after = make_device(path)
    rows = [spend.report.hex() for spend in after.history()]
    again = after.answer([signed], [0.1, 0.2]).hex()
    now = [spend.report.hex() for spend in after.history()]
    print(json.dumps({"step": step, "said": said, "rows": rows, "again": again, "now": now, "left": str(after.remaining())}))
"""


def test_a_device_killed_at_any_step_sends_the_same_bytes_again_or_has_sent_nothing(tmp_path):
    steps = run(DEVICE, tmp_path)
    assert len(steps) == 9
    for told in steps:
        assert "reached" in told["said"], told["step"]
        sent = [line.split()[1] for line in told["said"] if line.startswith("sent")]
        is_durable = told["step"] in ("after COMMIT", "after sending", "before UPDATE spend", "after UPDATE spend")
        assert len(told["rows"]) == is_durable, told["step"]
        assert sent in ([], told["rows"]), "nothing leaves that is not stored"
        assert told["now"] == [told["again"]]
        assert told["rows"] in ([], [told["again"]]), "what was stored is sent again as it is"
        assert told["left"] == "3"


AT_ONCE = """
signed = make_collector().open(make_campaign(), *OPEN)
path = os.path.join(folder, "device.db")
go, gone = os.pipe()

def work(say):
    os.close(gone)
    os.read(go, 1)   # returns when the parent closes its end: all answer at once, and the ledger is not made yet
    say(make_device(path).answer([signed], [0.5, 0.5]).hex())

children = [start(work) for _ in range(8)]
os.close(gone)
said = [ended(*child) for child in children]
print(json.dumps({"said": said, "rows": [spend.report.hex() for spend in make_device(path).history()]}))
"""


def test_eight_processes_of_one_device_at_once_make_one_report(tmp_path):
    (told,) = run(AT_ONCE, tmp_path)
    assert len(told["rows"]) == 1
    assert told["said"] == [told["rows"]] * 8


CAMPAIGN = """
PEOPLE, CHUNK = 60, 6
terms = dict(protocol="refine", center=[0] * 5, epsilon=4, min_reports=PEOPLE // 2, n=PEOPLE)

def reports_of(manifest):
    '''Reports of nobody, the same for every run.'''
    rng = np.random.default_rng(manifest.number)
    asked = [manifest.queries[i] for i in rng.integers(len(manifest.queries), size=PEOPLE)]
    return [Report(query.id, rng.bytes(16), int(rng.integers(query.M))).to_bytes() for query in asked]

def last(place):
    collector = make_collector(place)
    (campaign,) = collector.campaigns()
    manifest = Manifest.from_bytes(collector.manifests(campaign)[-1].body)
    state = collector.state(campaign)
    collector.dispose()
    return campaign, manifest, state

def submitting(place, manifest, reports):
    def work(say):
        collector = make_collector(place)
        for number, report in reports:
            say(f"{number} {collector.submit(manifest.hash, report).name}")
        collector.dispose()
    return work

def decoding(place, campaign):
    def work(say):
        collector = make_collector(place, chunk=CHUNK)
        save = collector._storage.save_checkpoint
        def saved(*args):
            save(*args)
            say("checkpoint")
        collector._storage.save_checkpoint = saved
        collector.close(campaign)
        collector.next_manifest(campaign, *OPEN)
        say("decoded")
        collector.dispose()
    return work

def lived(work, until):
    '''What was said: all of it by this process, or, with `until`, so many lines by a child and what it said until its end.'''
    said = []
    if not until:
        work(said.append)
        return said
    def mortal(say):
        lines = iter(range(until))
        def say_or_wait(line):   # it may work on after its last line, and is killed there: however slow this process is
            while next(lines, None) is None:
                signal.pause()
            say(line)
        work(say_or_wait)
    child, lines = start(mortal)
    for line in lines:
        said.append(line.strip())
        if len(said) == until:
            os.kill(child, signal.SIGKILL)
            break
    return said + ended(child, lines)

def campaign_at(place, kills):
    '''A campaign whose collector is killed as often as `kills` says; what was acknowledged, and what it ended with.'''
    make_collector(place).open(make_campaign(**terms), *OPEN)
    acked, deaths = {}, Counter()
    campaign, manifest, state = last(place)
    while state[1] != "done":
        everyone = list(enumerate(reports_of(manifest)))
        while left := [(i, report) for i, report in everyone if (manifest.hash, i) not in acked]:
            until = kills.pop("submit " + str(manifest.number), 0)
            overlap = [one for one in everyone if (manifest.hash, one[0]) in acked][-5:]   # some come twice
            for line in lived(submitting(place, manifest, overlap + left), until):
                number, status = line.split()
                assert status in ("NEW", "SAME"), line
                acked[manifest.hash, int(number)] = everyone[int(number)][1]
            deaths["submit"] += until > 0
        number = manifest.number
        while state[1] != "done" and manifest.number == number:
            until = kills.pop("decode " + str(number), 0) or kills.pop("again " + str(number), 0)
            said = lived(decoding(place, campaign), until)
            deaths["decode"] += until > 0 and "decoded" not in said
            campaign, manifest, state = last(place)
    collector = make_collector(place)
    with collector._storage._reading() as db:
        joined = "report JOIN round ON round.id = round_id"
        rows = db.exec_driver_sql(f"SELECT manifest_hash, report_id, query, idx FROM {joined}").all()
        sums = db.exec_driver_sql("SELECT round_id, task, statistic FROM checkpoint WHERE is_done ORDER BY 1, 2").all()
    kept = Counter((name, Report(query, bytes(report_id), idx).to_bytes().hex()) for name, report_id, query, idx in rows)
    promised = Counter((name, report.hex()) for (name, _), report in acked.items())
    bodies = [signed.body.decode() for signed in collector.manifests(campaign)]
    end = [bodies, [[a, b, bytes(c).hex()] for a, b, c in sums], collector.result(campaign).to_json()]
    return {"exactly once": kept == promised and set(kept.values()) == {1}, "deaths": dict(deaths), "end": end}

KILLS = {"submit 1": 10, "submit 2": 40, "submit 3": 1, "submit 4": 55, "decode 1": 1, "again 1": 4, "decode 2": 3, "again 2": 12,
         "decode 3": 5, "decode 4": 2}
calm, killed = (campaign_at(os.path.join(folder, name), kills) for name, kills in (("calm.db", {}), ("killed.db", KILLS)))
print(json.dumps({"calm": calm, "killed": killed}))
"""


def test_a_collector_killed_ten_times_has_every_acknowledged_report_once_and_the_same_result(tmp_path):
    """Four times while it takes reports in, six times while it decodes; an undisturbed run has the same manifests and sums."""
    (told,) = run(CAMPAIGN, tmp_path)
    calm, killed = told["calm"], told["killed"]
    assert calm["exactly once"]
    assert calm["deaths"] == {"submit": 0, "decode": 0}
    assert killed["exactly once"]
    assert killed["deaths"] == {"submit": 4, "decode": 6}
    assert killed["end"] == calm["end"]
    assert len(calm["end"][0]) == 4


SEVERAL = """
place = os.path.join(folder, "collector.db")
signed = make_collector(place).open(make_campaign(), *OPEN)
reports = [Report(0, i.to_bytes(16, "big"), i % 4).to_bytes() for i in range(60)]
def work(say):
    collector = make_collector(place)
    for first in range(0, 60, 6):
        for status in collector.submit_many(signed.hash, reports[first : first + 6]):
            say(status.name)
children = [start(work) for _ in range(3)]
said = Counter(line for child in children for line in ended(*child))
with make_collector(place)._storage._reading() as db:
    n = db.exec_driver_sql("SELECT COUNT(*) FROM report").scalar()
print(json.dumps({"said": said, "n": n}))
"""


def test_three_intakes_at_once_store_every_report_once(tmp_path):
    (told,) = run(SEVERAL, tmp_path)
    assert told == {"said": {"NEW": 60, "SAME": 120}, "n": 60}
