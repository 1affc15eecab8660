# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The index file of a large directory: tables against plain searching, and files that are not what they should be."""

from __future__ import annotations

import json
import os
import random
import resource
import stat
import subprocess
import time

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.host_local import commands, index, indexed, store
from ansible_collections.nodenet.cni.plugins.module_utils.host_local.addresses import Address, parse_address

DAY_NS = 86_400 * 1_000_000_000
HIGHEST = {32: "255.255.255.%d", 128: "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ff%02x"}
OWNER = b"c%d\r\neth0"


def table_of(bits, numbers, sums=None, holder=False):
    """A table of these addresses, whose checksums are those of their numbers if not given."""
    numbers = sorted(numbers)
    keys = b"".join(number.to_bytes(bits // 8, "big") for number in numbers)
    sums = sums or [index.checksum(str(number).encode()) for number in numbers]
    return index.Table(index.kind(bits, holder), keys, b"".join(sums))


@pytest.mark.parametrize("bits", [32, 128])
class TestTable:
    @pytest.fixture(params=["low", "middle", "high"])
    def base(self, request, bits):
        """The first of 64 neighbouring numbers: at either end of all addresses, and where keys repeat their bytes."""
        top = 1 << bits
        return {"low": 0, "middle": int("01" * (bits // 8), 16), "high": top - 64}[request.param]

    def draws(self, base, count=60):
        draw = random.Random(base % 1_000_003 + 7)
        for _round in range(count):
            yield draw, sorted(draw.sample(range(base, base + 64), draw.choice([0, 1, 5, 32, 60, 64])))

    def test_finds_what_is_there(self, bits, base):
        for _draw, numbers in self.draws(base):
            table = table_of(bits, numbers)
            assert len(table) == len(numbers)
            for number in range(base, base + 64):
                position = table.find(number.to_bytes(bits // 8, "big"))
                assert position == (numbers.index(number) if number in numbers else -1)
                if position >= 0:
                    assert table.name(position) == str(Address(bits, number))
                    assert table.sum(position) == index.checksum(str(number).encode())

    def test_first_gap_is_the_first_number_that_is_not_there(self, bits, base):
        for draw, numbers in self.draws(base):
            table = table_of(bits, numbers)
            for _pair in range(20):
                start, end = sorted(draw.choices(range(base, base + 64), k=2))
                wanted = next((number for number in range(start, end + 1) if number not in numbers), None)
                assert table.first_gap(start, end) == wanted

    def test_nothing_lies_behind_the_end_of_a_range(self, bits, base):
        for end in (base, base + 63):
            assert table_of(bits, []).first_gap(end + 1, end) is None
            assert table_of(bits, [base, base + 63]).first_gap(end + 1, end) is None

    def test_without_leaves_out_just_these(self, bits, base):
        for draw, numbers in self.draws(base):
            going = sorted(draw.sample(range(len(numbers)), draw.choice([0, len(numbers) // 2, len(numbers)])))
            left = [number for position, number in enumerate(numbers) if position not in going]
            table = table_of(bits, numbers).without(going)
            assert (table.keys, table.sums) == (table_of(bits, left).keys, table_of(bits, left).sums)
            assert table.number == index.kind(bits)

    def test_with_sum_sees_whole_checksums_only(self, bits, base):
        """Checksums of few different bytes are found across the borders of their neighbours as well."""
        draw = random.Random(3)
        for _round in range(60):
            sums = [bytes(draw.choice(b"\0\1") for _byte in range(4)) for _number in range(40)]
            table = table_of(bits, range(base, base + 40), sums)
            for wanted in {*sums, b"\0\1\0\1", b"\1\1\1\1"}:
                found = [position for position, one in enumerate(sums) if one == wanted]
                assert list(table.with_sum(wanted)) == found


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("10.1.0.2", 0),
        ("fd00::2", 1),
        ("10.1.0.2.holder", 2),
        ("fd00::2.holder", 3),
        ("::", 1),
        ("255.255.255.255", 0),
        ("FD00::2", None),
        ("fd00:0::2", None),
        ("::ffff:10.1.0.2", None),
        ("010.1.0.2", None),
        ("10.1.0", None),
        ("cafe", None),
        (".holder", None),
        ("10.1.0.2.holder.holder", None),
        ("10.1.0.2.Holder", None),
    ],
)
def test_only_canonical_names_have_a_place(name, number):
    found = index.place(name)
    assert (None if found is None else found[0]) == number
    if found is not None:
        assert index.Table(found[0], found[1], b"\0\0\0\0").name(0) == name


# --- the file -------------------------------------------------------------------------------------------------------


@pytest.fixture
def net(tmp_path):
    """An open network directory."""
    (tmp_path / "net").mkdir()
    fd = os.open(str(tmp_path / "net"), os.O_RDONLY | os.O_DIRECTORY)
    yield fd
    os.close(fd)


@pytest.fixture
def file(tmp_path, net):
    """The path of an index that is good."""
    assert save(net)
    return tmp_path / ".nodenet-net~index"


def entries_of(names):
    entries = [[], [], [], []]
    for position, name in enumerate(names):
        number, key = index.place(name)
        entries[number].append((key, index.checksum(OWNER % position), 1000 + position, name))
    return entries


NAMES = ["10.1.0.9", "10.1.0.2", "fd00::2", "10.1.0.2.holder", "fd00::3.holder", "::", "0.0.0.0"]
ODD = ["FD00::7", "10.1", "cafe", ":", ".holder", "010.1.0.1.holder"]


def save(net, names=None, odd=None, read_at=None, mtime=5, ctime=6):
    names, odd = NAMES if names is None else names, ODD if odd is None else odd
    read_at = time.time_ns() if read_at is None else read_at
    return index.save(net, "net", mtime, ctime, read_at, entries_of(names), list(odd))


@pytest.mark.parametrize("odd", [[], ODD], ids=["plain", "odd"])
@pytest.mark.parametrize(
    "names",
    [[], NAMES, NAMES[:1], [one for one in NAMES if "holder" in one], [one for one in NAMES if ":" in one]],
    ids=["none", "all", "one", "holders", "v6"],
)
def test_what_is_saved_is_loaded(net, names, odd):
    read_at = time.time_ns()
    assert save(net, names, odd, read_at)
    found = index.load(net, "net")
    assert (found.mtime, found.ctime, found.read_at, found.odd) == (5, 6, read_at, odd)
    assert found.change_times() == {name: 1000 + position for position, name in enumerate(names)}
    assert len(found) == len(names)
    for position, name in enumerate(names):
        assert list(found.with_content(OWNER % position)) == [name]
        table, at = found.position(name)
        assert (table.name(at), table.sum(at)) == (name, index.checksum(OWNER % position))
    assert found.position("10.1.0.77") is None
    assert found.position("FD00::7") is None
    kept = {one[3] for table in found.entries(set(names[::2])) for one in table}
    assert kept == set(names[1::2])
    # what is kept can be saved again
    assert index.save(net, "net", 5, 6, read_at, found.entries(set()), odd)
    assert index.load(net, "net").change_times() == found.change_times()


def test_another_network_has_another_index(net, file):
    assert index.load(net, "net") is not None
    assert index.load(net, "ne") is None
    assert index.load(net, "net~") is None


def test_another_directory_in_the_same_place_has_no_index(tmp_path, file):
    """Two data dirs may hold links to directories that lie side by side, and both are the same network's."""
    (tmp_path / "other").mkdir()
    fd = os.open(str(tmp_path / "other"), os.O_RDONLY)
    try:
        assert index.load(fd, "net") is None
    finally:
        os.close(fd)


def test_too_many_odd_names_make_no_index(tmp_path, net):
    assert save(net, odd=["cafe%02x" % number for number in range(128)])
    before = (tmp_path / ".nodenet-net~index").read_bytes()
    assert not save(net, odd=["cafe%02x" % number for number in range(129)])
    assert (tmp_path / ".nodenet-net~index").read_bytes() == before
    assert sorted(os.listdir(str(tmp_path))) == [".nodenet-net~index", "net"]


def test_a_file_that_is_cut_off_or_longer_is_none(net, file):
    data = file.read_bytes()
    assert len(data) > 200
    tables = data.index(b"\n") + 1 + len("\n".join(ODD))
    tables += sum(len(entry[0]) + len(entry[1]) for table in entries_of(NAMES) for entry in table)
    for length in range(len(data)):
        file.write_bytes(data[:length])
        assert index.load(net, "net") is None, length
        without_times = index.load(net, "net", lambda _found: True)
        assert (without_times is None) == (length < tables), length
    for more in (b"\0", b"\n", data):
        file.write_bytes(data + more)
        assert index.load(net, "net") is None
    file.write_bytes(data)
    assert index.load(net, "net") is not None


def test_a_file_with_a_wrong_bit_is_none(net, file):
    """But for the case of a digit of the checksum, which changes nothing."""
    data = file.read_bytes()
    whole = index.load(net, "net").change_times()
    unseen = 0
    for at in range(len(data)):
        for bit in range(8) if at < 200 else [at % 8]:
            file.write_bytes(data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :])
            found = index.load(net, "net")
            if found is not None:
                unseen += 1
                assert found.change_times() == whole
    assert unseen <= 8


def test_only_what_is_read_must_be_right(net, file):
    whole = index.load(net, "net")
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    seen = []
    assert index.load(net, "net", lambda one: bool(seen.append(one))) is None
    found = index.load(net, "net", lambda one: not seen.append(one))
    for one in (found, seen[0]):
        assert [(table.keys, table.sums) for table in one.tables] == [(one.keys, one.sums) for one in whole.tables]
        assert (one.odd, one.mtime, one.ctime, one.read_at) == (whole.odd, whole.mtime, whole.ctime, whole.read_at)


@pytest.mark.parametrize("what", ["rest of another", "pieces", "noise", "zeros"])
def test_a_file_of_pieces_is_none(net, file, what):
    data = file.read_bytes()
    draw = random.Random(1)
    for _round in range(200):
        cut = draw.randrange(1, len(data) - 1)
        file.write_bytes(
            {
                "rest of another": data[:cut] + bytes(reversed(data[cut:])) + b"x",
                "pieces": data[cut:] + data[:cut],
                "noise": bytes(draw.randrange(256) for _byte in range(cut)),
                "zeros": data[:cut] + b"\0" * (len(data) - cut),
            }[what]
        )
        assert index.load(net, "net") is None


def test_an_index_of_another_boot_is_none(net, file):
    with open("/proc/sys/kernel/random/boot_id", "rb") as stream:
        boot_id = stream.read().strip()
    data = file.read_bytes()
    assert data.count(boot_id) == 1
    file.write_bytes(data.replace(boot_id, b"01234567-89ab-cdef-0123-456789abcdef"))
    assert index.load(net, "net") is None


def test_an_index_of_the_future_is_none(net):
    """The clock was set back: the times that are to come have been before."""
    assert save(net, read_at=time.time_ns() + DAY_NS)
    assert index.load(net, "net") is None
    assert save(net, read_at=time.time_ns() - DAY_NS)
    assert index.load(net, "net") is not None


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_an_index_that_others_may_write_is_none(net, file, mode):
    file.chmod(mode)
    assert index.load(net, "net") is None
    file.chmod(0o644)
    assert index.load(net, "net") is not None


def test_an_index_of_somebody_else_is_none(net, file):
    if os.geteuid() != 0:
        pytest.skip("not run: giving a file away needs root")
    os.chown(str(file), 65534, -1)
    assert index.load(net, "net") is None


def _link(path):
    os.rename(str(path), str(path) + ".real")
    os.symlink(path.name + ".real", str(path))


def _other(make):
    def change(path):
        path.unlink()
        make(str(path))

    return change


OTHERS = {
    "link": _link,
    "dangling": _other(lambda path: os.symlink("nothing", path)),
    "fifo": _other(os.mkfifo),
    "directory": _other(os.mkdir),
    "huge": _other(lambda path: (open(path, "wb").close(), os.truncate(path, 1 << 43))),
}


@pytest.mark.parametrize("what", OTHERS)
def test_what_is_no_file_is_none(net, file, what):
    OTHERS[what](file)
    assert index.load(net, "net") is None


@pytest.mark.parametrize("what", OTHERS)
def test_saving_puts_a_good_one_in_its_place_if_that_is_possible(tmp_path, net, file, what):
    OTHERS[what](file)
    assert save(net) == (what != "directory")
    assert (index.load(net, "net") is None) == (what == "directory")
    assert not (tmp_path / ".nodenet-net~index.new").exists()


@pytest.mark.parametrize("mode", ["regular", "link", "fifo"])
def test_what_a_killed_call_or_a_stranger_left_is_no_hindrance_for_ever(tmp_path, net, mode):
    staged = tmp_path / ".nodenet-net~index.new"
    {"regular": lambda: staged.write_bytes(b"x" * 100_000), "link": lambda: staged.symlink_to("net")}.get(
        mode, lambda: os.mkfifo(str(staged))
    )()
    saved = save(net)
    assert saved == (mode == "regular")
    assert (index.load(net, "net") is not None) == saved
    # what opens a place for files beside the directory sweeps it
    with store.Store(str(tmp_path), "net") as opened, opened.lock(5):
        opened.beside()
    assert not os.path.lexists(str(staged))
    assert save(net)


# --- calls ----------------------------------------------------------------------------------------------------------


class Node:
    """A data dir; calls on it, whose directories are all large ones."""

    def __init__(self, root, ranges):
        self.root = root
        self.ranges = ranges
        self.index = root / ".nodenet-net~index"

    def call(self, command, container, root=None):
        config = {
            "cniVersion": "1.0.0",
            "name": "net",
            "ipam": {"type": "host-local", "dataDir": str(root or self.root), "ranges": self.ranges},
        }
        environ = {
            "CNI_COMMAND": command,
            "CNI_CONTAINERID": container,
            "CNI_IFNAME": "eth0",
            "CNI_NETNS": "/x/y",
            "CNI_PATH": "/",
        }
        done = commands.run(environ, json.dumps(config).encode())
        return done.rc, done.stdout, done.stderr

    def fill(self, addresses, directory=None):
        directory = directory or self.root / "net"
        directory.mkdir(parents=True, exist_ok=True)
        for number, address in enumerate(addresses):
            (directory / address).write_bytes(OWNER % number)

    def make_index(self, clock, root=None):
        """Let it be written: a call that changes nothing in a quiet directory does."""
        clock.quiet()
        assert self.call("DEL", "nobody", root) == (0, "", "")

    def give_out(self, name):
        """ADD, CHECK, DEL and CHECK of a new container; return its address."""
        rc, stdout, stderr = self.call("ADD", name)
        assert (rc, stderr) == (0, ""), stdout
        assert self.call("CHECK", name) == (0, "", "")
        assert self.call("DEL", name) == (0, "", "")
        assert self.call("CHECK", name)[0] == 1
        return json.loads(stdout)["ips"][0]["address"].split("/")[0]


class Clock:
    """Our clock, which may run before the one that files are stamped by: then every directory is a quiet one."""

    def __init__(self, monkeypatch):
        self.ahead_ns = 0
        real = time.time_ns
        monkeypatch.setattr(index, "_MAX_SKEW_NS", 1 << 60)
        monkeypatch.setattr(time, "time_ns", lambda: real() + self.ahead_ns)

    def quiet(self):
        time.sleep(0.012)
        self.ahead_ns += 1_200_000_000


@pytest.fixture
def clock(monkeypatch):
    monkeypatch.setattr(store, "_LARGE", -1)
    monkeypatch.setattr(indexed, "_WORTH_FILES", 4)
    return Clock(monkeypatch)


@pytest.fixture
def node(tmp_path):
    node = Node(tmp_path / "networks", [[{"subnet": "10.1.0.0/27"}]])
    node.fill([f"10.1.0.{n}" for n in range(2, 22)])
    return node


@pytest.mark.parametrize("bits", [32, 128])
@pytest.mark.parametrize("last", [None, 254, 255])
def test_a_range_may_reach_to_the_last_address_of_all(tmp_path, clock, bits, last):
    spell = HIGHEST[bits]
    subnet = {32: "255.255.255.0/24", 128: spell % 0 + "/120"}[bits]
    only = {"subnet": subnet, "rangeStart": spell % 250, "rangeEnd": spell % 255, "gateway": spell % 1}
    node = Node(tmp_path / "networks", [[only]])
    taken = [str(parse_address(spell % n)) for n in range(250, 255)]
    node.fill(taken)
    if last:
        (node.root / "net" / "last_reserved_ip.0").write_text(spell % last)
    node.make_index(clock)
    assert node.index.exists()
    assert node.give_out("high") == str(parse_address(spell % 255))
    (node.root / "net" / (spell % 255)).write_bytes(b"x")
    assert "no IP addresses available" in node.call("ADD", "one-too-many")[1]


def calls_go_well(node, clock, room=True):
    for number in range(3):
        clock.quiet()
        assert node.call("CHECK", "c3") == (0, "", "")
        assert node.call("CHECK", "nobody")[0] == 1
        if room:
            assert node.give_out(f"new{number}") == f"10.1.0.{22 + number}"
        else:
            assert "no space left on device" in node.call("ADD", "new")[1]
        assert node.call("DEL", "nobody") == (0, "", "")
        if room:
            assert node.call("DEL", f"c{number + 4}") == (0, "", "")
            assert node.call("CHECK", f"c{number + 4}")[0] == 1
    left = [name for name in os.listdir(str(node.root)) if name.endswith(".new")]
    assert left == []


@pytest.mark.parametrize("what", OTHERS)
def test_calls_do_without_an_index(node, clock, what):
    node.make_index(clock)
    assert node.index.exists()
    OTHERS[what](node.index)
    calls_go_well(node, clock)


def test_calls_do_without_an_index_where_none_can_be_written_whole(node, clock):
    """The limit is a short write, as is a disk that is full after the first bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200, hard))
    try:
        calls_go_well(node, clock)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not node.index.exists()
    node.make_index(clock)
    assert node.index.exists()


def test_calls_do_without_an_index_where_nobody_may_write(node, clock):
    if os.geteuid() == 0:
        pytest.skip("not run: root may write everywhere")
    node.root.chmod(0o555)
    try:
        calls_go_well(node, clock)
    finally:
        node.root.chmod(0o755)
    assert not node.index.exists()


@pytest.fixture
def mount():
    """A function that mounts a fresh file system."""
    if os.geteuid() != 0:
        pytest.skip("not run: mounting a file system needs root")
    places = []

    def mount(place, options):
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", str(place)], check=True)
        places.append(str(place))

    yield mount
    for place in reversed(places):
        subprocess.run(["umount", place], check=True)


def test_a_full_disk(node, clock, mount):
    mount(node.root, "size=256k")
    node.fill([f"10.1.0.{n}" for n in range(2, 22)])
    with open(str(node.root / "filler"), "wb", buffering=0) as stream:
        assert stream.write(b"x" * (1 << 20)) < 1 << 20
    calls_go_well(node, clock, room=False)
    assert not node.index.exists()
    (node.root / "filler").unlink()
    node.make_index(clock)
    assert node.index.exists()


@pytest.mark.parametrize("parent", ["ro", "rw"])
def test_a_directory_that_is_a_mount_point(node, clock, mount, parent):
    """What lies beside it is on another file system, whose times may be those of another machine."""
    mount(node.root, "size=256k")
    (node.root / "net").mkdir()
    mount(node.root / "net", "size=1m")
    node.fill([f"10.1.0.{n}" for n in range(2, 22)])
    subprocess.run(["mount", "-o", "remount," + parent, str(node.root)], check=True)
    calls_go_well(node, clock)
    assert os.listdir(str(node.root)) == ["net"]


def test_a_link_to_a_directory_has_its_index_beside_the_directory(node, clock, tmp_path):
    real = tmp_path / "elsewhere" / "real"
    node.fill([f"10.1.0.{n}" for n in range(2, 10)], real)
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "net").symlink_to(real)
    node.root = tmp_path / "links"
    node.make_index(clock)
    assert os.listdir(str(tmp_path / "links")) == ["net"]
    assert stat.S_ISREG(os.lstat(str(tmp_path / "elsewhere" / ".nodenet-net~index")).st_mode)
    assert node.give_out("new") == "10.1.0.10"


def test_two_links_into_one_place(node, clock, tmp_path):
    """Both directories are of a network of the same name, and their files may be as old to the tick."""
    nodes = []
    for number in range(2):
        one = Node(tmp_path / f"links{number}", node.ranges)
        one.root.mkdir()
        (tmp_path / "elsewhere" / f"real{number}").mkdir(parents=True)
        (one.root / "net").symlink_to(tmp_path / "elsewhere" / f"real{number}")
        nodes.append(one)
    for address in [f"10.1.0.{n}" for n in range(2, 22)]:
        for number in range(2):
            (tmp_path / "elsewhere" / f"real{number}" / address).write_bytes(
                b"c%d.%s\r\neth0" % (number, address.encode())
            )
    for _again in range(2):
        for number, one in enumerate(nodes):
            one.make_index(clock)
            for n in range(2, 22):
                assert one.call("CHECK", f"c{number}.10.1.0.{n}")[0] == 0
                assert one.call("CHECK", f"c{1 - number}.10.1.0.{n}")[0] == 1
                # a duplicate is found through the index alone
                assert "duplicate" in one.call("ADD", f"c{number}.10.1.0.{n}")[1]
