# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import hashlib
import json
import os

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.cni.errors import NodenetError
from ansible_collections.nodenet.cni.plugins.module_utils.node import confdir, conflists, confwrite, effective

BRIDGE = {"type": "bridge", "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.1.0.0/24"}]]}}


def entry(name="net", **more):
    if more.get("state") != "absent" and "content" not in more:
        more.setdefault("plugins", [BRIDGE])
    return dict(more, name=name)


def plan(conf_dir, *entries, **options):
    found = confdir.read_conf_dir(str(conf_dir))
    modes = conflists.modes_of(str(conf_dir), [conflists.file_name(one) for one in entries])
    known = {key: options.pop(key) for key in ("installed", "speaks", "crio_default_network") if key in options}
    runtimes = effective.Settings(**known)
    return conflists.make_plan(found, entries, modes, conflists.Options(runtimes=runtimes, **options))


def do(conf_dir, *entries, **options):
    made = plan(conf_dir, *entries, **options)
    confwrite.apply_plan(made)
    return made.result


def tree(directory):
    """Everything about the tree but access times."""
    state = {}
    for path, _folders, names in os.walk(str(directory)):
        state[path] = os.lstat(path).st_mtime_ns
        for name in names:
            file = os.path.join(path, name)
            with open(file, "rb") as stream:
                state[file] = (hashlib.sha256(stream.read()).hexdigest(), os.lstat(file).st_mode, os.lstat(file).st_ino)
    return state


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))


def refused(conf_dir, *entries, **options):
    """Plan what must be refused; nothing may have happened. Returns the message."""
    before = tree(conf_dir)
    with pytest.raises(NodenetError) as caught:
        plan(conf_dir, *entries, **options)
    assert tree(conf_dir) == before
    message = str(caught.value)
    assert message.startswith("Cannot ")
    assert not message.endswith(".")
    assert "\n" not in message
    return message


def test_a_network_is_written_and_the_second_run_changes_nothing(tmp_path):
    conf_dir = tmp_path / "etc" / "net.d"
    result = do(conf_dir, entry())
    assert result["changed"] is True
    assert read(conf_dir / "10-net.conflist") == {"cniVersion": "1.0.0", "name": "net", "plugins": [BRIDGE]}
    assert result["conflists"] == [
        {
            "name": "net",
            "filename": "10-net.conflist",
            "path": str(conf_dir / "10-net.conflist"),
            "state": "present",
            "changed": True,
        }
    ]
    assert result["effective"]["before"]["containerd"]["network"] is None
    assert result["effective"]["after"]["containerd"]["network"] == "net"
    before = tree(conf_dir)
    again = do(conf_dir, entry())
    assert again["changed"] is False
    assert again["effective"]["before"] == again["effective"]["after"] == result["effective"]["after"]
    assert tree(conf_dir) == before
    assert os.listdir(str(conf_dir)) == ["10-net.conflist"]


def test_a_plan_touches_nothing(tmp_path):
    made = plan(tmp_path / "none" / "net.d", entry())
    assert made.result["changed"] is True
    assert os.listdir(str(tmp_path)) == []


def test_case_key_order(tmp_path, case):
    data = case("conflist-idempotent-key-order")
    ((name, on_disk),) = data["input"]["conf_dir"].items()
    (tmp_path / name).write_text(on_disk["raw"])
    (tmp_path / name).chmod(0o644)
    result = do(tmp_path, entry(content=data["input"]["write"][name], filename=name))
    assert result["changed"] is data["check"]["changed"]
    assert (tmp_path / name).read_text() == on_disk["raw"]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ('{"a": 1, "b": [1, 2]}', '{"b":[1,2],\n"a":1.0}', True),
        ('{"a": 1}', '{"a": "1"}', False),
        ('{"a": 1}', '{"a": true}', False),
        ('{"a": 0}', '{"a": null}', False),
        ('{"a": [1, 2]}', '{"a": [2, 1]}', False),
        ('{"a": {}}', '{"a": []}', False),
        ('{"a": 9007199254740993}', '{"a": 9007199254740992}', False),
        ('{"a": 1}', '{"a": 1, "b": 2}', False),
        ('{"a": 1, "a": 1}', '{"a": 1}', False),
        ('{"a": "\\u00e9"}', '{"a": "é"}', True),
        ("{", "{", True),
        ("{", "{ ", False),
    ],
)
def test_what_is_the_same(one, other, same):
    files = [confdir.ConfFile("a.conflist", text.encode("utf-8")) for text in (one, other)]
    assert conflists.same_content(*files) is same
    assert conflists.same_content(*reversed(files)) is same


def test_text_is_written_as_it_is(tmp_path):
    text = '{"cniVersion": "0.4.0",\n\t"plugins": [ {"type": "bridge", "big": 9007199254740993} ],  "name": "net"}'
    do(tmp_path, entry(content=text))
    assert (tmp_path / "10-net.conflist").read_text() == text + "\n"
    assert do(tmp_path, entry(content=text))["changed"] is False


def test_a_dictionary_gets_name_and_version(tmp_path):
    do(tmp_path, entry(content={"plugins": [BRIDGE]}, cni_version="0.4.0"))
    assert read(tmp_path / "10-net.conflist") == {"cniVersion": "0.4.0", "name": "net", "plugins": [BRIDGE]}


def test_a_changed_value_replaces_the_file(tmp_path):
    do(tmp_path, entry())
    made = plan(tmp_path, entry(plugins=[{"type": "loopback"}]))
    (diff,) = made.diff
    assert diff["before_header"] == diff["after_header"] == str(tmp_path / "10-net.conflist")
    assert '"type": "bridge"' in diff["before"]
    assert '"type": "loopback"' in diff["after"]
    confwrite.apply_plan(made)
    assert read(tmp_path / "10-net.conflist")["plugins"] == [{"type": "loopback"}]


def test_the_mode_is_part_of_the_state(tmp_path):
    do(tmp_path, entry())
    path = tmp_path / "10-net.conflist"
    assert path.stat().st_mode & 0o777 == 0o644
    made = plan(tmp_path, entry(), mode=0o600)
    assert made.result["changed"] is True
    assert made.diff[0]["after_header"].endswith("(mode 0600)")
    confwrite.apply_plan(made)
    assert path.stat().st_mode & 0o777 == 0o600
    assert do(tmp_path, entry(), mode=0o600)["changed"] is False


@pytest.mark.parametrize("text", ["", "0o644", "rw", "0999", "0044", "01644", "420x"])
def test_a_mode_has_to_be_octal(text):
    with pytest.raises(NodenetError, match="has to be octal"):
        conflists.parse_mode(text)


@pytest.mark.parametrize(("number", "mode"), [(0o644, 0o644), (0o600, 0o600)])
def test_a_number_is_the_mode_itself(number, mode):
    # what YAML makes of an unquoted 0644
    assert conflists.parse_mode(number) == mode
    assert conflists.parse_mode(f"{mode:04o}") == mode


@pytest.mark.parametrize("value", [-1, 0o1644, 0o044, True, None, 6.5])
def test_no_other_value_is_a_mode(value):
    with pytest.raises(NodenetError, match="has to be octal"):
        conflists.parse_mode(value)


def test_absent_removes_whatever_file_defines_the_network(tmp_path):
    do(tmp_path, entry(filename="77-x.conflist"), entry("other"))
    result = do(tmp_path, entry(state="absent"))
    assert result["changed"] is True
    assert result["conflists"][0]["filename"] == "77-x.conflist"
    assert os.listdir(str(tmp_path)) == ["10-other.conflist"]
    again = do(tmp_path, entry(state="absent"))
    assert again["changed"] is False
    assert again["conflists"][0]["filename"] is None


def test_absent_removes_a_broken_file_by_its_name(tmp_path):
    (tmp_path / "05-a.conf").write_text("{")
    made = plan(tmp_path, entry(state="absent", filename="05-a.conf"))
    assert made.diff[0]["before"] == "{"
    confwrite.apply_plan(made)
    assert os.listdir(str(tmp_path)) == []


def test_absent_leaves_a_file_of_another_network_alone(tmp_path):
    do(tmp_path, entry("other"))
    message = refused(tmp_path, entry(state="absent", filename="10-other.conflist"))
    assert message.endswith("10-other.conflist: the file defines network other")


def test_absent_in_a_missing_directory(tmp_path):
    assert do(tmp_path / "none", entry(state="absent"))["changed"] is False
    assert os.listdir(str(tmp_path)) == []


def test_case_in_conf_extension_is_renamed_in_one_step(tmp_path, case):
    ((name, content),) = case("conflist-in-conf-extension")["input"]["conf_dir"].items()
    (tmp_path / name).write_text(json.dumps(content))
    message = refused(tmp_path, entry(content=content))
    assert name in message
    result = do(tmp_path, entry(content=content), entry(state="absent", filename=name))
    assert os.listdir(str(tmp_path)) == ["10-net.conflist"]
    assert result["effective"]["before"]["containerd"]["network"] is None
    assert result["effective"]["after"]["containerd"]["network"] == "net"


def test_another_file_that_defines_the_network_is_named(tmp_path):
    do(tmp_path, entry(filename="20-mine.conflist"))
    message = refused(tmp_path, entry())
    assert "20-mine.conflist defines that network too; give its name as filename" in message


def test_a_twin_that_is_no_conflist_can_only_be_removed(tmp_path):
    (tmp_path / "10-podnet.conf").write_text('{"cniVersion": "1.0.0", "name": "net", "type": "bridge"}')
    message = refused(tmp_path, entry())
    assert message.endswith("network too; list it as well, with filename: 10-podnet.conf and state: absent")
    do(tmp_path, entry(), entry(state="absent", filename="10-podnet.conf"))
    assert os.listdir(str(tmp_path)) == ["10-net.conflist"]


def test_the_documents_in_effect_are_returned(tmp_path):
    text = '{"name": "text", "cniVersion": "0.4.0", "plugins": [{"type": "ptp", "mtu": 9007199254740993}]}'
    entries = [entry(), entry("text", content=text), entry("gone", state="absent"), entry("bad", content="{")]
    made = plan(tmp_path, *entries, validate="none")
    assert made.result["documents"] == {
        "net": {"cniVersion": "1.0.0", "name": "net", "plugins": [BRIDGE]},
        "text": {"name": "text", "cniVersion": "0.4.0", "plugins": [{"type": "ptp", "mtu": 9007199254740993}]},
    }


def test_a_broken_file_is_told_once(tmp_path):
    (tmp_path / "05-other.conf").write_text("{")
    result = do(tmp_path, entry(content="{"), validate="none")
    codes = [(item["code"], os.path.basename(item["where"])) for item in result["findings"]]
    assert ("CONF003", "10-net.conflist") in codes
    assert ("CONF021", "10-net.conflist") not in codes
    assert codes.count(("CONF003", "05-other.conf")) == 1


def test_the_subnet_file_of_flannel_is_an_option(tmp_path):
    subnet_file = tmp_path / "subnet.env"
    flannel = entry("cbr0", plugins=[{"type": "flannel"}])
    options = {"flannel_subnet_file": str(subnet_file)}
    result = plan(tmp_path / "net.d", flannel, **options).result
    assert [item["code"] for item in result["findings"]] == ["IPAM002"]
    subnet_file.write_text("FLANNEL_NETWORK=10.244.0.0/16\nFLANNEL_SUBNET=10.244.1.1/24\n")
    assert plan(tmp_path / "net.d", flannel, **options).result["findings"] == []


@pytest.mark.parametrize(
    ("entries", "word"),
    [
        ([entry(), entry(filename="20-net.conflist")], "the list has name net more than once"),
        ([entry("a", filename="x.conflist"), entry("b", filename="x.conflist")], "filename x.conflist more than once"),
        ([entry(state="absent"), entry()], "the list has name net more than once"),
        ([entry("a/b")], "a network name starts with"),
        ([entry("")], "a network name starts with"),
        ([entry("..")], "a network name starts with"),
        ([entry(filename="a/b.conflist")], "has to be a plain file name"),
        ([entry(filename="../b.conflist")], "has to be a plain file name"),
        ([entry(filename="net.conf")], "ends in .conflist"),
        ([entry(filename="net.conflist.bak")], "ends in .conflist"),
        ([entry(filename="net")], "ends in .conflist"),
        ([entry("n" * 250)], "the file name has more than 255 bytes"),
        ([entry(state="absent", filename="net.txt")], "ends in .conf or .conflist or .json"),
        ([{"name": "net"}], "give either plugins or content"),
        ([entry(content="{}", plugins=[BRIDGE])], "give either plugins or content"),
        ([entry(content={"name": "other", "plugins": [BRIDGE]})], "its content names network 'other'"),
        ([entry(content='{"name": "other", "plugins": []}')], "its content names network 'other'"),
        ([entry(plugins=[])], "no 'plugins'"),
        ([entry(plugins=[{"mtu": 1}])], "plugins[0] has no 'type'"),
        ([entry(cni_version="9.9.9")], "cniVersion '9.9.9' is none of"),
        ([entry(plugins=[{"type": "bridge", "mtu": float("nan")}])], "JSON has no NaN"),
    ],
)
def test_what_is_refused(tmp_path, entries, word):
    do(tmp_path, entry("there"))
    assert word in refused(tmp_path, *entries)


def test_case_trailing_comma_is_refused_and_the_old_file_stays(tmp_path, case):
    do(tmp_path, entry())
    text = case("conflist-trailing-comma")["input"]["conf_dir"]["10-net.conflist"]["raw"]
    message = refused(tmp_path, entry(content=text))
    assert "trailing comma at line 1, column %d" % (text.index(",]") + 1) in message


def test_case_unrendered_template_is_refused_with_each_cause(tmp_path, case):
    data = case("conflist-unrendered-template")
    ((name, content),) = data["input"]["conf_dir"].items()
    message = refused(tmp_path, entry("k8s-pod-network", content=content["raw"], filename=name))
    for cause in [*data["check"]["leftovers"], "single quotes", "True instead of true"]:
        assert cause in message


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("netconf-host-bits-set", ["plugins[0].ipam.ranges[0][0].subnet", "write 10.1.2.0/24"]),
        ("netconf-rangestart-typo", ["ipam.rangeStart", "192.0.2.14.200"]),
        ("netconf-subnet-empty-template", ["ipam.subnet"]),
        ("netconf-mixed-family-set", ["put IPv4 and IPv6 into a range set of their own"]),
        ("netconf-empty-range-set", ["empty range set"]),
        ("netconf-rangesets-overlap", ["overlaps"]),
    ],
)
@pytest.mark.parametrize("validate", ["strict", "upstream"])
def test_cases_of_addresses_are_refused_before_anything_is_written(tmp_path, case, name, words, validate):
    config = case(name)["input"]["stdin"]
    plugin = {key: value for key, value in config.items() if key not in ("name", "cniVersion")}
    message = refused(
        tmp_path, entry("good"), entry(plugins=[plugin], cni_version=config["cniVersion"]), validate=validate
    )
    assert all(word in message for word in words), message


def test_strict_refuses_what_go_reads_without_a_word(tmp_path):
    text = '{"cniVersion": "1.0.0", "name": "net", "plugins": [{"type": "bridge", "mtu": 1400, "mtu": 1500}]}'
    assert "plugins[0].mtu occurs more than once" in refused(tmp_path, entry(content=text))
    result = do(tmp_path, entry(content=text), validate="upstream")
    assert [item["code"] for item in result["findings"]] == ["CONF013"]
    assert do(tmp_path, entry(content=text), validate="upstream")["changed"] is False


def test_a_placeholder_in_a_value_is_refused_unless_only_upstream_counts(tmp_path):
    network = entry(plugins=[{"type": "calico", "nodename": "__NODE_NAME__"}])
    assert "__NODE_NAME__" in refused(tmp_path, network)
    result = do(tmp_path, network, validate="upstream")
    assert [(item["code"], item["go"]) for item in result["findings"]] == [("CONF022", "carries_on")]


def test_validate_none_writes_what_it_is_given(tmp_path):
    result = do(tmp_path, entry(content="{"), validate="none")
    assert (tmp_path / "10-net.conflist").read_text() == "{\n"
    assert result["changed"] is True
    assert result["effective"]["after"]["containerd"]["network"] is None
    assert "CONF003" in [item["code"] for item in result["findings"]]
    assert do(tmp_path, entry(content="{"), validate="none")["changed"] is False


def test_a_doubtful_gateway_is_a_finding(tmp_path, case):
    config = json.loads(json.dumps(case("netconf-gateway-outside-subnet")["input"]["stdin"]).replace("$DIR", "/data"))
    result = do(tmp_path, entry(plugins=[{"type": "bridge", "ipam": config["ipam"]}]))
    assert [(item["code"], item["where"]) for item in result["findings"]] == [
        ("IPAM001", str(tmp_path / "10-net.conflist"))
    ]


def test_the_effective_network_has_to_be_the_expected_one(tmp_path):
    do(tmp_path, entry("podnet", filename="10-podnet.conflist"))
    message = refused(tmp_path, entry("storage", filename="05-storage.conflist"), expect_effective="podnet")
    assert "containerd would use network storage instead of podnet" in message
    do(tmp_path, entry("storage", filename="20-storage.conflist"), expect_effective="podnet")
    message = refused(tmp_path, entry("podnet", state="absent"), expect_effective="podnet")
    assert "containerd would use network storage instead of podnet" in message


def test_nothing_changes_the_effective_network_unless_the_task_says_so(tmp_path):
    do(tmp_path, entry("podnet"))
    earlier = entry("storage", filename="05-storage.conflist", plugins=[{"type": "loopback"}])
    message = refused(tmp_path, earlier)
    assert "containerd would use network storage instead of podnet" in message
    assert (
        "set expect_effective to the network that is meant (roles: networks_expect_effective, "
        "node_remove_expect_effective)"
    ) in message
    do(tmp_path, earlier, expect_effective="storage")
    message = refused(tmp_path, entry("storage", state="absent"))
    assert "containerd would use network podnet instead of storage" in message
    do(tmp_path, entry("storage", state="absent"), expect_effective="podnet")
    assert do(tmp_path, entry("podnet", state="absent"))["effective"]["after"]["crio"]["network"] is None
    assert do(tmp_path, earlier)["changed"] is True, "where there was none, any will do"


def test_a_broken_file_takes_the_network_from_nobody(tmp_path):
    do(tmp_path, entry("podnet"))
    broken = entry("other", filename="00-other.conflist", content="{")
    assert "containerd would use no network instead of podnet" in refused(tmp_path, broken, validate="none")
    swapped = entry("other", filename="10-podnet.conflist")
    message = refused(tmp_path, swapped)
    assert "would use network other instead of podnet" in message


def test_what_is_in_effect_already_may_stay_another_network(tmp_path):
    do(tmp_path, entry("podnet"))
    assert do(tmp_path, entry("podnet"))["changed"] is False
    later = entry("storage", filename="20-storage.conflist", plugins=[{"type": "loopback"}])
    assert do(tmp_path, later)["effective"]["after"]["containerd"]["network"] == "podnet"


def test_what_nobody_can_tell_is_no_effective_network(tmp_path):
    settings = effective.Settings()
    settings.unknown["containerd"] = "config.toml cannot be read"
    found = confdir.read_conf_dir(str(tmp_path))
    made = conflists.make_plan(found, [entry()], {}, conflists.Options(runtimes=settings))
    assert made.result["effective"]["after"]["containerd"] == {
        "network": None,
        "file": None,
        "known": False,
        "reason": "unknown: config.toml cannot be read",
    }
    assert "CONF056" in [item["code"] for item in made.result["findings"]]
    with pytest.raises(NodenetError) as caught:
        conflists.make_plan(found, [entry()], {}, conflists.Options(runtimes=settings, expect_effective="net"))
    assert "containerd would use an unknown network instead of net" in str(caught.value)
    assert ('set containerd_config: "" to go by its defaults (roles: networks_containerd_config)') in str(caught.value)


def test_the_versions_of_the_plugins_are_looked_at(tmp_path, case):
    data = case("conflist-cniversion-unsupported")
    content = data["input"]["conf_dir"]["10-net.conflist"]
    versions = data["input"]["plugin_versions"]
    result = do(tmp_path, entry(content=content), installed=versions.__contains__, speaks=lambda name: versions[name])
    (item,) = [item for item in result["findings"] if item["code"] == "CONF038"]
    assert f"set cniVersion to {data['check']['suggest']}" in item["hint"]
    assert result["effective"]["after"]["containerd"]["network"] == "net"
    assert result["effective"]["after"]["crio"]["network"] is None


def test_the_effective_network_of_crio_counts_as_well(tmp_path):
    do(tmp_path, entry("other", filename="20-other.conflist", plugins=[{"type": "loopback"}]))
    message = refused(tmp_path, entry("podnet"), expect_effective="podnet", installed=["loopback"].__contains__)
    assert "CRI-O would use network other instead of podnet" in message
    assert "no plugin bridge" in message
    message = refused(tmp_path, entry("podnet"), expect_effective="podnet", crio_default_network="other")
    assert "CRI-O would use network other instead of podnet" in message


def test_missing_plugins_are_findings(tmp_path):
    result = do(tmp_path, entry(), bin_dir="/bin-dir", installed=["bridge"].__contains__)
    assert [(item["code"], item["text"]) for item in result["findings"] if item["code"] == "CONF019"] == [
        ("CONF019", "plugin 'host-local' is not in /bin-dir")
    ]


def test_a_batch_is_written_as_a_whole_or_not_at_all(tmp_path):
    made = plan(tmp_path, entry("a"), entry("b"))
    made.write[1].data = b"x" * 10
    made.write[1].name = "no-such-dir/10-b.conflist"  # the second one cannot be staged
    with pytest.raises(NodenetError, match="^Cannot write conflist no-such-dir/10-b.conflist in .*: No such file or"):
        confwrite.apply_plan(made)
    assert os.listdir(str(tmp_path)) == []


@pytest.mark.parametrize("backup", [False, True])
@pytest.mark.parametrize("wrong", ["no-such-dir/10-b.conflist", "1" * 260])
def test_a_file_that_cannot_be_written_leaves_no_directory_and_no_backup_behind(tmp_path, wrong, backup):
    conf_dir, backup_dir = tmp_path / "etc" / "net.d", tmp_path / "var" / "backup"
    made = plan(conf_dir, entry())
    made.write[0].name = wrong
    with pytest.raises(NodenetError, match=f"^Cannot .* {wrong[:9]}.* in .*: [A-Z][a-z ]*$"):
        confwrite.apply_plan(made, str(backup_dir) if backup else "")
    assert os.listdir(str(tmp_path)) == []


@pytest.mark.parametrize("fault", ["a file", "too long"])
def test_without_a_backup_nothing_is_replaced(tmp_path, fault):
    conf_dir = tmp_path / "net.d"
    name = "1" + "x" * 235 + ".conflist"  # with a time stamp behind it too long
    do(conf_dir, entry(), entry("second", filename=name))
    before = tree(conf_dir)
    backup_dir = tmp_path / "backup"
    if fault == "a file":
        backup_dir.write_text("")
    made = plan(conf_dir, entry(plugins=[{"type": "loopback"}]), entry("second", state="absent"))
    with pytest.raises(NodenetError, match=f"^Cannot keep a copy of .* in backup_dir {backup_dir}: ") as caught:
        confwrite.apply_plan(made, str(backup_dir))
    assert "Errno" not in str(caught.value)
    after = tree(conf_dir)
    after[str(conf_dir)] = before[str(conf_dir)]  # a temporary file came and went
    assert after == before
    assert sorted(os.listdir(str(tmp_path))) == (["backup", "net.d"] if fault == "a file" else ["net.d"])


def test_a_conf_dir_below_a_file_is_an_error_that_names_it(tmp_path):
    made = plan(tmp_path / "etc" / "net.d", entry())
    (tmp_path / "etc").write_text("")
    with pytest.raises(NodenetError, match=f"^Cannot write conflist 10-net.conflist in {tmp_path}/etc/net.d: "):
        confwrite.apply_plan(made)
    assert os.listdir(str(tmp_path)) == ["etc"]


def test_a_symbolic_link_is_replaced_as_a_link(tmp_path):
    target = tmp_path / "target"
    target.write_text("{}")
    conf_dir = tmp_path / "net.d"
    conf_dir.mkdir()
    os.symlink(str(target), str(conf_dir / "10-net.conflist"))
    assert do(conf_dir, entry())["changed"] is True
    assert target.read_text() == "{}"
    assert not (conf_dir / "10-net.conflist").is_symlink()


def test_a_directory_of_that_name_is_refused(tmp_path):
    (tmp_path / "10-net.conflist").mkdir()
    assert "there is a directory of that name" in refused(tmp_path, entry())


def test_backups_lie_elsewhere(tmp_path):
    conf_dir, backup_dir = tmp_path / "net.d", tmp_path / "backup"
    do(conf_dir, entry(), entry("gone"))
    old = (conf_dir / "10-net.conflist").read_text()
    made = plan(
        conf_dir,
        entry(plugins=[{"type": "loopback"}]),
        entry("gone", state="absent"),
        entry("new"),
        expect_effective="net",
    )
    backups = confwrite.apply_plan(made, str(backup_dir))
    assert [os.path.basename(path).rsplit(".", 1)[0] for path in backups] == ["10-net.conflist", "10-gone.conflist"]
    with open(backups[0], encoding="utf-8") as stream:
        assert stream.read() == old
    assert sorted(os.listdir(str(conf_dir))) == ["10-net.conflist", "10-new.conflist"]
    again = plan(conf_dir, entry())
    more = confwrite.apply_plan(again, str(backup_dir))
    assert len(os.listdir(str(backup_dir))) == 3
    assert confwrite.apply_plan(plan(conf_dir, entry()), str(backup_dir)) == []
    assert more[0] not in backups


@pytest.mark.parametrize("below", ["", "sub"])
def test_backups_never_lie_in_the_conf_dir(tmp_path, below):
    os.symlink(str(tmp_path), str(tmp_path.parent / (tmp_path.name + "-link")))
    for path in (tmp_path / below, tmp_path.parent / (tmp_path.name + "-link") / below):
        with pytest.raises(NodenetError, match="lies in the conf dir"):
            conflists.refuse_backup_dir(str(tmp_path), str(path))
    conflists.refuse_backup_dir(str(tmp_path), str(tmp_path) + "-other")


# --- addresses that move ----------------------------------------------------------------------------------------------


def shared(data_dir, *ranges, kind="macvlan", name="lan"):
    """A network whose ranges are (start, end) in 10.60.0.0/16 or fd00:60::/64."""
    subnets = {True: "fd00:60::/64", False: "10.60.0.0/16"}
    spelled = [[{"subnet": subnets[":" in start], "rangeStart": start, "rangeEnd": end}] for start, end in ranges]
    ipam = {"type": "host-local", "dataDir": str(data_dir), "ranges": spelled}
    more = {"master": "eth0"} if kind != "bridge" else {"bridge": "br0"}
    return entry(name, plugins=[dict(more, type=kind, ipam=ipam)])


def hold(data_dir, *addresses, network="lan"):
    folder = data_dir / network
    folder.mkdir(parents=True, exist_ok=True)
    for name in (*addresses, "lock", "last_reserved_ip.0", "10.60.1.2.holder", "notes"):
        (folder / name).write_text("c\r\neth0")


FIRST, SECOND = ("10.60.1.0", "10.60.1.127"), ("10.60.1.128", "10.60.1.255")
OUT = ("10.60.1.64", "10.60.1.99")
OTHER = ("10.60.1.200", "10.60.1.210")
LESS = ("10.60.1.0", "10.60.1.63")
SIX = ("fd00:60::10", "fd00:60::1f")


@pytest.mark.parametrize(
    ("before", "after", "held", "words"),
    [
        ([FIRST], [SECOND], [], "hand out 10.60.1.128-10.60.1.255 on this node, and before 10.60.1.0-10.60.1.127"),
        ([FIRST], [("10.60.1.0", "10.60.1.129")], [], "hand out 10.60.1.128-10.60.1.129 on this node"),
        ([FIRST], [("10.60.0.250", "10.60.1.129")], [], "hand out 10.60.0.250-10.60.0.255 and 1 more on this node"),
        ([FIRST], [FIRST, SIX], [], "hand out fd00:60::10-fd00:60::1f on this node"),
        ([FIRST], [LESS], ["10.60.1.9", *OUT], "2 address(es) of network lan, such as 10.60.1.64"),
        ([FIRST, SIX], [FIRST], ["fd00:60::11"], "1 address(es) of network lan, such as fd00:60::11,"),
        ([FIRST], [SECOND], ["10.60.1.7"], "1 address(es) of network lan, such as 10.60.1.7,"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("validate", ["strict", "none"])
def test_a_shared_network_keeps_the_addresses_of_a_node(tmp_path, before, after, held, words, validate):
    data_dir = tmp_path / "data"
    do(tmp_path / "net.d", shared(data_dir, *before))
    hold(data_dir, *held)
    message = refused(tmp_path / "net.d", shared(data_dir, *after), validate=validate)
    assert message.startswith(f"Cannot write conflist {tmp_path}/net.d/10-lan.conflist: ")
    assert words in message
    assert "networks_move_ranges" in message
    result = do(tmp_path / "net.d", shared(data_dir, *after), move_ranges=True)
    assert {item["code"] for item in result["findings"]} & {"CONF060", "CONF061"}
    assert do(tmp_path / "net.d", shared(data_dir, *after))["findings"] == []


@pytest.mark.parametrize(
    ("before", "after", "held"),
    [
        ([FIRST], [FIRST], ["10.60.9.9"]),
        ([FIRST], [LESS], ["10.60.1.63"]),
        ([FIRST], [("10.60.1.0", "10.60.1.63"), ("10.60.1.64", "10.60.1.127")], ["10.60.1.64"]),
        ([FIRST, SIX], [FIRST], ["10.60.1.7"]),
    ],
)
def test_a_shared_network_may_give_up_what_nobody_holds(tmp_path, before, after, held):
    data_dir = tmp_path / "data"
    do(tmp_path / "net.d", shared(data_dir, *before))
    hold(data_dir, *held)
    changed = shared(data_dir, *after)
    changed["plugins"][0]["mtu"] = 1400
    result = do(tmp_path / "net.d", changed)
    assert (result["changed"], result["findings"]) == (True, [])


def test_a_network_that_takes_the_place_of_a_shared_one_in_another_file_counts_as_well(tmp_path):
    do(tmp_path / "net.d", dict(shared(tmp_path, FIRST), filename="50-lan.conflist"))
    gone = entry("lan", filename="50-lan.conflist", state="absent")
    assert "and before 10.60.1.0" in refused(tmp_path / "net.d", shared(tmp_path, SECOND), gone)


def test_a_network_of_one_node_may_move_and_says_what_is_held(tmp_path):
    do(tmp_path / "net.d", shared(tmp_path, FIRST, kind="bridge"))
    assert do(tmp_path / "net.d", shared(tmp_path, SECOND, kind="bridge"))["findings"] == []
    hold(tmp_path, "10.60.1.200", "10.60.1.128")
    (found,) = do(tmp_path / "net.d", shared(tmp_path, FIRST, kind="bridge"))["findings"]
    assert (found["code"], found["severity"]) == ("CONF062", "warning")
    assert "2 address(es) of network lan, such as 10.60.1.128, are in use" in found["text"]


@pytest.mark.parametrize(
    "before", [None, "{", '{"cniVersion": "1.0.0", "name": "lan", "plugins": [{"type": "macvlan"}]}']
)
def test_where_no_ranges_of_before_are_known_all_that_is_held_counts(tmp_path, before):
    """The file is new, broken, or said nothing of addresses: containers may have some all the same."""
    (tmp_path / "net.d").mkdir()
    if before:
        (tmp_path / "net.d" / "10-lan.conflist").write_text(before)
    hold(tmp_path, "10.60.1.7", "10.60.1.200")
    message = refused(tmp_path / "net.d", shared(tmp_path, FIRST))
    assert "1 address(es) of network lan, such as 10.60.1.200, are in use on this node" in message
    assert do(tmp_path / "net.d", shared(tmp_path, FIRST, OTHER))["findings"] == []


def test_where_nobody_can_tell_what_is_held_a_network_stays_as_it_is(tmp_path):
    """Not being able to look is not the same as finding nothing. What is known already is told as well."""
    do(tmp_path / "net.d", shared(tmp_path, FIRST))
    (tmp_path / "lan").symlink_to(tmp_path / "lan")
    message = refused(tmp_path / "net.d", shared(tmp_path, SECOND))
    assert "network lan would hand out 10.60.1.128-10.60.1.255 on this node" in message
    assert (
        f"nobody can tell which addresses of network lan are in use, {tmp_path}/lan cannot be read: Too many levels"
        in message
    )
    changed = shared(tmp_path, FIRST)
    changed["plugins"][0]["mtu"] = 1400
    assert do(tmp_path / "net.d", changed)["changed"], "its addresses stay"
    do(tmp_path / "net.d", shared(tmp_path, SECOND), move_ranges=True)


@pytest.mark.parametrize("kind", ["macvlan", "bridge"])
def test_another_data_dir_has_to_know_what_is_in_use(tmp_path, kind):
    old, new = tmp_path / "old", tmp_path / "new"
    do(tmp_path / "net.d", shared(old, FIRST, kind=kind))
    hold(old, "10.60.1.7", "10.60.1.9", "10.60.1.200")
    hold(new, "10.60.1.9")
    message = refused(tmp_path / "net.d", shared(new, FIRST, kind=kind))
    assert (
        f"1 address(es) that network lan hands out, such as 10.60.1.7, are in use by {old}/lan, and {new}/lan"
        in message
    )
    (new / "link").symlink_to(old)
    assert do(tmp_path / "net.d", shared(new / "link", FIRST, kind=kind))["findings"] == []
    hold(new, "10.60.1.7")
    assert do(tmp_path / "net.d", shared(new, FIRST, kind=kind))["findings"] == []
    do(tmp_path / "net.d", shared(tmp_path / "third", FIRST, kind=kind), move_ranges=True)


def test_another_name_has_to_know_what_is_in_use(tmp_path):
    do(tmp_path / "net.d", dict(shared(tmp_path, FIRST), filename="10-lan.conflist"))
    hold(tmp_path, "10.60.1.7")
    gone = entry("lan", state="absent")
    renamed = shared(tmp_path, FIRST, name="office")
    message = refused(tmp_path / "net.d", gone, renamed, expect_effective="office")
    assert f"are in use by {tmp_path}/lan, and {tmp_path}/office would know nothing of it" in message
    # other addresses may be anybody's, and beside the old network it is another finding
    do(tmp_path / "net.d", gone, shared(tmp_path, SECOND, name="office"), expect_effective="office")


# --- networks that cannot work ----------------------------------------------------------------------------------------


def test_nothing_is_written_beside_a_broken_file_for_which_containerd_loads_nothing(tmp_path):
    (tmp_path / "05-old.conflist").write_text('{"cniVersion": "1.0.0", "name": "old", "plugins": [],}')
    message = refused(tmp_path, entry())
    assert "containerd would have no network for any pod, since it loads none beside 05-old.conflist" in message
    assert "which is broken (trailing comma at line 1, column 53); repair or remove that file" in message
    assert do(tmp_path, entry(), validate="none")["changed"]
    (tmp_path / "10-net.conflist").unlink()
    broken = entry("old", state="absent", filename="05-old.conflist")
    assert do(tmp_path, entry(), broken)["effective"]["after"]["containerd"]["network"] == "net"


def test_a_broken_file_that_sorts_later_stands_in_nobodys_way(tmp_path):
    (tmp_path / "90-old.conflist").write_text("{")
    assert do(tmp_path, entry())["changed"]


@pytest.mark.parametrize("first", [True, False])
def test_two_gateways_on_one_bridge_are_refused_when_one_of_them_is_to_be_written(tmp_path, first):
    def bridge(name, subnet, **more):
        ipam = {"type": "host-local", "ranges": [[{"subnet": subnet}]]}
        return entry(name, plugins=[dict(more, type="bridge", isGateway=True, ipam=ipam)], filename=f"{name}.conflist")

    do(tmp_path, bridge("b", "10.1.0.0/24"))
    second = bridge("a" if first else "c", "10.2.0.0/24")
    assert "bridge cni0 has gateway 10." in refused(tmp_path, second, expect_effective=second["name"] if first else "b")
    do(tmp_path, second, expect_effective=second["name"] if first else "b", validate="none")
    # what is there already keeps nobody from writing another network
    do(tmp_path, bridge("d", "10.3.0.0/24", bridge="br1"), expect_effective=second["name"] if first else "b")
