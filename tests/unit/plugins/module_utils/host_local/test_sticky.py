# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Sticky addresses: what a pod gets whose address is reserved, and what becomes of it, on real files."""

from __future__ import annotations

import json
import os
import time

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.host_local import commands
from ansible_collections.nodenet.cni.plugins.module_utils.host_local.addresses import parse_address
from ansible_collections.nodenet.cni.plugins.module_utils.host_local.snapshot import Snapshot
from ansible_collections.nodenet.cni.plugins.module_utils.host_local.sticky import static_id
from ansible_collections.nodenet.cni.plugins.module_utils.host_local.store import Store

POD = "IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=db-0;K8S_POD_INFRA_CONTAINER_ID=abc"
RESERVED = "static.shop.db-0\r\neth0"
V4 = [{"subnet": "10.9.0.0/29"}]
V6 = [{"subnet": "fd00:9::/120"}]


class Network:
    """A network directory with the reservation 10.9.0.5 of pod db-0 of namespace shop, and the plugin."""

    def __init__(self, data_dir):
        self.data_dir = str(data_dir)
        self.path = data_dir / "net"
        self.path.mkdir()
        self.ranges = [V4]
        self.sticky = True
        self.extra = {}
        self.plant("10.9.0.5", RESERVED)

    def plant(self, name, content, age_s=0.0):
        path = self.path / name
        path.write_bytes(content.encode())
        then = time.time() - age_s
        os.utime(str(path), (then, then))

    def held(self):
        names = (name for name in os.listdir(str(self.path)) if name != "lock" and not name.startswith("last_"))
        return {name: (self.path / name).read_bytes().decode() for name in names}

    def rotation(self):
        path = self.path / "last_reserved_ip.0"
        return path.read_text() if path.exists() else None

    def call(self, command, container="c1", ifname="eth0", args=POD, **more):
        ipam = {"type": "host-local", "dataDir": self.data_dir, "ranges": self.ranges}
        if self.sticky is not None:
            ipam["stickyStatic"] = self.sticky
        config = {"cniVersion": "1.1.0", "name": "net", "ipam": ipam}
        config.update(self.extra, **more)
        environ = {
            "CNI_COMMAND": command,
            "CNI_CONTAINERID": container,
            "CNI_IFNAME": ifname,
            "CNI_NETNS": "/var/run/netns/no-such-ns",
            "CNI_PATH": "/opt/cni/bin",
            "CNI_ARGS": args,
        }
        return commands.run(environ, json.dumps(config).encode())

    def add(self, *args, **kwargs):
        done = self.call("ADD", *args, **kwargs)
        assert done.rc == 0, done.stdout
        return [one["address"].split("/")[0] for one in json.loads(done.stdout)["ips"]]

    def fault(self, command, *args, **kwargs):
        done = self.call(command, *args, **kwargs)
        assert done.rc == 1, done.stdout
        document = json.loads(done.stdout)
        return document["code"], document["msg"]


@pytest.fixture
def net(tmp_path):
    return Network(tmp_path)


def test_a_pod_gets_its_reserved_address_again_and_again(net):
    for container in ("c1", "c2"):
        assert net.add(container) == ["10.9.0.5"]
        assert net.held() == {"10.9.0.5": RESERVED, "10.9.0.5.holder": container + "\r\neth0"}
        assert os.stat(str(net.path / "10.9.0.5.holder")).st_mode & 0o777 == 0o600
        assert net.call("CHECK", container).rc == 0
        assert net.fault("CHECK", "c9")[1] == "host-local: Failed to find address added by container c9"
        assert net.call("DEL", container).rc == 0
        assert net.held() == {"10.9.0.5": RESERVED}
        assert net.fault("CHECK", container)[0] == 999


def test_the_rotation_does_not_move(net):
    net.add("other", args="")
    before = net.rotation()
    assert before == "10.9.0.2"
    net.add("c1")
    assert net.rotation() == before


def test_another_container_has_to_wait(net):
    net.add("c1")
    code, msg = net.fault("ADD", "c2")
    assert code == 11
    assert msg == (
        "failed to allocate for range 0: "
        "10.9.0.5 is reserved for shop.db-0 and still held by container c1 interface eth0"
    )
    assert net.held()["10.9.0.5.holder"] == "c1\r\neth0"
    assert net.call("DEL", "c2").rc == 0
    assert net.held()["10.9.0.5.holder"] == "c1\r\neth0"


def test_a_second_add_of_the_same_container_is_a_duplicate(net):
    net.add("c1")
    text = "failed to allocate for range 0: 10.9.0.5 has been allocated to c1, duplicate allocation is not allowed"
    assert net.fault("ADD", "c1") == (999, text)
    assert net.fault("ADD", "c1", args=POD + ";IP=10.9.0.5") == (999, text)
    # also when the option went away meanwhile, or the pod is not named
    assert net.fault("ADD", "c1", args="") == (999, text)
    net.sticky = None
    assert net.fault("ADD", "c1") == (999, text)
    assert net.held() == {"10.9.0.5": RESERVED, "10.9.0.5.holder": "c1\r\neth0"}


def test_a_pod_that_has_an_address_of_the_set_gets_no_second_one(net):
    net.plant("10.9.0.3", "c1\r\neth0")
    assert "10.9.0.3 has been allocated to c1" in net.fault("ADD", "c1")[1]
    assert "10.9.0.5.holder" not in net.held()


@pytest.mark.parametrize(
    "args",
    [
        "",
        "IgnoreUnknown=1;K8S_POD_NAMESPACE=shop",
        "IgnoreUnknown=1;K8S_POD_NAME=db-0",
        "K8S_POD_NAMESPACE=;K8S_POD_NAME=db-0",
        "K8S_POD_NAMESPACE=shop;K8S_POD_NAME=db-1",
        "K8S_POD_NAMESPACE=Shop;K8S_POD_NAME=db-0",
        "K8S_POD_NAMESPACE=shop.db-0;K8S_POD_NAME=",
    ],
)
def test_others_are_served_from_the_pool(net, args):
    assert net.add("c1", args=args) == ["10.9.0.2"]
    assert net.held() == {"10.9.0.5": RESERVED, "10.9.0.2": "c1\r\neth0"}


def test_the_namespace_ends_at_the_first_dot(net):
    net.plant("10.9.0.6", "static.shop.a.b\r\neth0")
    assert net.add("c1", args="K8S_POD_NAMESPACE=shop.a;K8S_POD_NAME=b") == ["10.9.0.2"]
    assert net.add("c2", args="K8S_POD_NAMESPACE=shop;K8S_POD_NAME=a.b") == ["10.9.0.6"]
    assert static_id({"K8S_POD_NAMESPACE": "shop", "K8S_POD_NAME": "a.b"}) == "static.shop.a.b"
    assert static_id({}) == ""


def test_a_reservation_is_for_its_interface(net):
    assert net.add("c1", "net1") == ["10.9.0.2"]
    net.plant("10.9.0.6", "static.shop.db-0\r\nnet2")
    assert net.add("c1", "net2") == ["10.9.0.6"]
    assert net.add("c1", "eth0") == ["10.9.0.5"]
    assert net.call("DEL", "c1", "net2").rc == 0
    assert sorted(net.held()) == ["10.9.0.2", "10.9.0.5", "10.9.0.5.holder", "10.9.0.6"]


@pytest.mark.parametrize("sticky", [None, False])
def test_without_the_option_nothing_changes(net, sticky):
    net.sticky = sticky
    assert net.add("c1") == ["10.9.0.2"]
    assert net.held() == {"10.9.0.5": RESERVED, "10.9.0.2": "c1\r\neth0"}
    assert net.fault("ADD", "c2", args="K8S_POD_NAME=x")[1] == 'ARGS: unknown args ["K8S_POD_NAME=x"]'


def test_check_and_del_need_no_option(net):
    net.add("c1")
    net.sticky = None
    assert net.call("CHECK", "c1", args="").rc == 0
    assert net.call("DEL", "c1", args="").rc == 0
    assert net.held() == {"10.9.0.5": RESERVED}


@pytest.mark.parametrize("value", ["true", 1, [], {}])
def test_the_option_is_true_or_false(net, value):
    net.sticky = value
    code, msg = net.fault("ADD")
    assert code == 999
    assert "ipam.stickyStatic of type bool" in msg
    assert net.held() == {"10.9.0.5": RESERVED}
    net.plant("10.9.0.5.holder", "c1\r\neth0")
    assert net.call("DEL").rc == 0
    assert net.held() == {"10.9.0.5": RESERVED}


def test_each_range_set_for_itself(net):
    net.ranges = [V4, V6]
    assert net.add("c1") == ["10.9.0.5", "fd00:9::2"]
    assert net.held() == {
        "10.9.0.5": RESERVED,
        "10.9.0.5.holder": "c1\r\neth0",
        "fd00:9::2": "c1\r\neth0",
    }
    assert net.call("DEL", "c1").rc == 0
    net.plant("fd00:9::7", RESERVED)
    assert net.add("c2") == ["10.9.0.5", "fd00:9::7"]
    assert net.call("DEL", "c2").rc == 0
    assert net.held() == {"10.9.0.5": RESERVED, "fd00:9::7": RESERVED}


def test_of_several_reservations_in_a_set_the_lowest(net):
    net.plant("10.9.0.6", RESERVED)
    net.plant("10.9.0.4", RESERVED)
    assert net.add("c1") == ["10.9.0.4"]


def test_what_no_pod_may_have_is_not_given(net):
    (net.path / "10.9.0.5").unlink()
    net.plant("10.9.0.1", RESERVED)  # the gateway
    net.plant("10.9.1.7", RESERVED)  # outside the range
    net.plant("fd00:9::0007", RESERVED)  # another spelling reserves nothing
    net.ranges = [V4, V6]
    assert net.add("c1") == ["10.9.0.2", "fd00:9::2"]


def test_requested_addresses(net):
    net.plant("10.9.0.6", "static.shop.other\r\neth0")
    taken = "requested IP address 10.9.0.6 is not available in range set 10.9.0.1-10.9.0.6"
    assert taken in net.fault("ADD", args=POD + ";IP=10.9.0.6")[1]
    assert net.add("c1", args=POD + ";IP=10.9.0.4") == ["10.9.0.4"]
    assert net.rotation() == "10.9.0.4"
    assert net.call("DEL", "c1").rc == 0
    assert net.add("c1", args=POD + ";IP=10.9.0.5") == ["10.9.0.5"]
    assert net.held()["10.9.0.5.holder"] == "c1\r\neth0"
    assert net.call("DEL", "c1").rc == 0
    assert net.add("c1", runtimeConfig={"ips": ["10.9.0.5/29"]}) == ["10.9.0.5"]
    assert "10.9.0.5 is not available" in net.fault("ADD", "c2", args="IP=10.9.0.5")[1]
    assert "still held by container c1" in net.fault("ADD", "c2", args=POD + ";IP=10.9.0.5")[1]


def test_a_failing_add_gives_back_the_holder_file_alone(net):
    net.ranges = [V4, [{"subnet": "fd00:9::/126", "rangeEnd": "fd00:9::2"}]]
    net.plant("fd00:9::2", "c0\r\neth0")
    before = net.held()
    code, msg = net.fault("ADD")
    assert (code, "failed to allocate for range 1: no IP addresses available" in msg) == (999, True)
    assert net.held() == before
    net.ranges = [V4, V6]
    assert net.fault("ADD", args=POD + ";IP=10.9.0.77")[1] == "failed to allocate all requested IPs: 10.9.0.77"
    assert net.held() == before


def test_a_result_that_cannot_be_printed_gives_back_the_holder_file_alone(net):
    net.ranges = [V4, V6]
    net.plant("10.9.0.3", "c1\r\neth1")
    before = net.held()
    done = net.call("ADD")
    assert len(net.held()) == len(before) + 2
    done.undo()
    assert net.held() == before


def test_an_old_empty_holder_file_is_nobody(net):
    net.plant("10.9.0.5.holder", "", age_s=61)
    assert net.add("c1") == ["10.9.0.5"]
    assert net.held()["10.9.0.5.holder"] == "c1\r\neth0"


@pytest.mark.parametrize("age_s", [0, 50, -3600])
def test_a_young_empty_holder_file_may_be_somebody(net, age_s):
    net.plant("10.9.0.5.holder", "", age_s=age_s)
    code, msg = net.fault("ADD")
    assert code == 11
    assert "10.9.0.5 is reserved for shop.db-0 and still held by an empty file 10.9.0.5.holder" in msg
    assert net.held()["10.9.0.5.holder"] == ""


def test_a_holder_that_is_no_file_stops_the_pod(net):
    (net.path / "10.9.0.5.holder").mkdir()
    code, msg = net.fault("ADD")
    assert code == 999
    assert "whether somebody has it cannot be told: see %s/10.9.0.5.holder" % net.path in msg


def test_an_address_with_a_holder_and_no_reservation_is_taken(net):
    """Somebody removed the reservation by hand, and the pod still runs."""
    net.plant("10.9.0.2.holder", "c7\r\neth0")
    net.plant("10.9.0.3.holder", "", age_s=1000)
    assert net.add("c1", args="") == ["10.9.0.3"]
    assert "10.9.0.2 is not available" in net.fault("ADD", "c2", args="IP=10.9.0.2")[1]
    assert net.call("CHECK", "c7").rc == 0
    assert net.call("DEL", "c7").rc == 0
    assert net.add("c2", args="IP=10.9.0.2") == ["10.9.0.2"]


def test_holder_files_of_the_old_form_and_by_hand(net):
    net.plant("10.9.0.5.holder", " c1\n")
    assert net.call("CHECK", "c1").rc == 0
    net.plant("10.9.0.5.holder", "c1")
    net.plant("10.9.0.3", "c1\r\neth0")
    assert net.call("DEL", "c1").rc == 0
    # exact matches first, as with address files
    assert sorted(net.held()) == ["10.9.0.5", "10.9.0.5.holder"]
    assert net.call("DEL", "c1").rc == 0
    assert net.held() == {"10.9.0.5": RESERVED}


def test_names_that_are_no_holder_files_are_left_alone(net):
    for name in ("x.holder", ".holder", "10.9.0.300.holder", "10.9.0.5.holder~", "10.9.0.5.holder.holder"):
        net.plant(name, "c1\r\neth0")
    before = net.held()
    assert net.fault("CHECK")[0] == 999
    assert net.call("DEL").rc == 0
    assert net.held() == before


def test_gc_releases_a_stale_holder_and_never_the_reservation(net):
    stale, alive = "a" * 64, "b" * 64
    net.plant("10.9.0.6", "static.shop.db-1\r\neth0")
    valid = {"cni.dev/valid-attachments": [{"containerID": alive, "ifname": "eth0"}]}
    net.plant("10.9.0.5.holder", stale + "\r\neth0")
    net.plant("10.9.0.6.holder", alive + "\r\neth0", age_s=1000)
    assert net.call("GC", **valid).rc == 0
    assert sorted(net.held()) == ["10.9.0.5", "10.9.0.5.holder", "10.9.0.6", "10.9.0.6.holder"], "it is young"
    net.plant("10.9.0.5.holder", stale + "\r\neth0", age_s=61)
    assert net.call("GC", **valid).rc == 0
    assert sorted(net.held()) == ["10.9.0.5", "10.9.0.6", "10.9.0.6.holder"]
    # an id of another form may be another runtime's
    net.plant("10.9.0.5.holder", "k8s-pod\r\neth0", age_s=61)
    assert net.call("GC", **valid).rc == 0
    assert "10.9.0.5.holder" in net.held()


def test_status_counts_reservations_not_holders(net):
    net.add("c1")
    done = net.call("STATUS")
    assert (done.rc, done.stdout, done.stderr) == (0, "", "")


def test_the_snapshot_answers_what_was_asked_and_what_changed_since(net):
    net.plant("10.9.0.5.holder", "c1\r\neth0")
    with Store(net.data_dir, "net") as store, store.lock(5):
        snapshot = store.snapshot()
        five, six = parse_address("10.9.0.5"), parse_address("10.9.0.6")
        assert snapshot.present_holder(five).container_id == "c1"
        assert snapshot.present_holder(six) is None
        assert [one.name for one in snapshot.reserved_for("static.shop.db-0", "eth0")] == ["10.9.0.5"]
        assert snapshot.reserved_for("c1", "eth0") == []
        assert [one.name for one in snapshot.held_by("c1", "eth0")] == ["10.9.0.5.holder"]
        assert not store.reserve(snapshot, five, "c2", "eth0", ".holder")
        store.release(snapshot, snapshot.to_release("c1", "eth0"))
        assert snapshot.present_holder(five) is None
        assert not snapshot.held_by("c1", "eth0")
        assert store.reserve(snapshot, five, "c2", "eth0", ".holder")
        assert snapshot.present_holder(five).container_id == "c2"
        assert [one.address for one in snapshot.holding] == [five]
    assert Snapshot.nothing(0.0).holding == []
