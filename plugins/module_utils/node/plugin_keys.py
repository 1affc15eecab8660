# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the plugins read of their configuration: keys, types, and the values that they take.

Read in the sources of containernetworking/plugins 1.9 and, for what other products bring along, in theirs. A table is
text, because compiling it costs a node nothing. A line is the name of a table and its keys:

    key=type  key=type:rule  key!=type (the plugin does not work without it)

Types: ``s`` string, ``b`` boolean, ``i`` whole number, ``u`` and ``U`` one of 0 or more (32 and 64 bits), ``*``
anything, ``.name`` an object with the keys of the table of that name, ``l`` and ``m`` before a type a list or a map
of such.
Rules: ``1..9`` a number of that range, ``a|b`` one of these (after ``?``: with any other value the plugin takes its
default instead of failing), ``mac``, ``ifname``, ``ip``, ``cidr``. An empty string counts as not given.
"""

from __future__ import annotations

from ..cni.gojson import fold

TABLES = """
.list cniVersion=s cniVersions=ls name=s plugins=* disableCheck=* disableGC=* loadOnlyInlinedPlugins=* args=* \
nerdctlID=* nerdctlLabels=*
.plugin cniVersion=s name=s type=s capabilities=mb ipam=* dns=.dns args=* runtimeConfig=* prevResult=*
.dns nameservers=ls domain=s search=ls options=ls
.route dst!=s:cidr gw=s:ip mtu=i advmss=i priority=i table=i scope=i

bridge bridge=s:ifname isGateway=b isDefaultGateway=b forceAddress=b ipMasq=b ipMasqBackend=s:iptables|nftables \
mtu=i hairpinMode=b promiscMode=b vlan=i:0..4094 vlanTrunk=l.vlanTrunk preserveDefaultVlan=b macspoofchk=b \
enabledad=b disableContainerInterface=b portIsolation=b
.vlanTrunk minID=i:1..4094 maxID=i:1..4094 id=i:1..4094
ptp ipMasq=b ipMasqBackend=s:iptables|nftables mtu=i
macvlan master=s mode=s:bridge|private|vepa|passthru mtu=i mac=s:mac linkInContainer=b bcqueuelen=u
ipvlan master=s mode=s:l2|l3|l3s mtu=i linkInContainer=b
vlan master!=s vlanId=i:0..4094 mtu=i linkInContainer=b
host-device device=s hwaddr=s:mac kernelpath=s pciBusID=s DPDKMode=b
loopback
dummy
tap multiQueue=b mtu=i mac=s:mac owner=u group=u selinuxContext=s bridge=s

portmap backend=s:iptables|nftables snat=b conditionsV4=ls conditionsV6=ls masqAll=b markMasqBit=i:0..31 \
externalSetMarkChain=s
bandwidth ingressRate=U ingressBurst=U egressRate=U egressBurst=U unshapedSubnets=ls:cidr shapedSubnets=ls:cidr
tuning dataDir=s sysctl=ms mac=s:mac promisc=b mtu=i txQLen=i allmulti=b
firewall backend=s:?iptables|firewalld iptablesAdminChainName=s firewalldZone=s \
ingressPolicy=s:open|same-bridge|isolated
sbr table=i addSourceHints=b
vrf vrfname!=s:ifname table=u

ipam/host-local type=s name=s routes=l.route dataDir=s resolvConf=s ranges=ll.range subnet=s rangeStart=s rangeEnd=s \
gateway=s stickyStatic=b gcGraceSeconds=* statusExhaustion=b
.range subnet=s rangeStart=s rangeEnd=s gateway=s
ipam/static type=s name=s addresses=l.address routes=l.route dns=.dns
.address address!=s:cidr gateway=s:ip
ipam/dhcp type=s daemonSocketPath=s provide=l.provide request=l.request priority=i
.provide option=s value=s fromArg=s
.request skipDefault=b option=s

flannel subnetFile=s dataDir=s delegate=m*
calico mode=s vxlan_mac_prefix=s vxlan_vni=U mtu=i num_queues=i nodename=s nodename_file=s ipam_lock_file=s \
nodename_file_optional=b datastore_type=s etcd_endpoints=s etcd_discovery_srv=s log_level=s log_file_path=s \
log_file_max_size=i log_file_max_age=i log_file_max_count=i policy=* kubernetes=.kubernetes feature_control=mb \
etcd_scheme=s etcd_key_file=s etcd_cert_file=s etcd_ca_cert_file=s container_settings=mb include_default_routes=b \
dataplane_options=m* windows_use_single_network=b readiness_gates=ls policy_setup_timeout_seconds=i \
endpoint_status_dir=s etcd_authority=s hostname=s require_mtu_file=b
.kubernetes k8s_api_root=s kubeconfig=s node_name=s
ipam/calico-ipam type=s name=s subnet=s assign_ipv4=s:?true|false assign_ipv6=s:?true|false ipv4_pools=ls \
ipv6_pools=ls ip_pools_label_selector_keys=ls
kube-ovn server_socket=s provider=s routes=l* deviceID=s vf_driver=s vhost_user_socket_volume_name=s \
vhost_user_socket_name=s vhost_user_socket_consumption=s
ipam/kube-ovn type=s server_socket=s provider=s
multus confDir=s cniDir=s binDir=s delegates=lm* clusterNetwork=s defaultNetworks=ls kubeconfig=s logFile=s \
apiTimeoutSeconds=i logLevel=s logToStderr=b logOptions=* readinessindicatorfile=s namespaceIsolation=b \
globalNamespaces=s systemNamespaces=ls multusNamespace=s retryDeleteOnError=b auxiliaryCNIChainName=s
sriov vlan=i:0..4094 vlanQoS=i:0..7 vlanProto=s deviceID=s min_tx_rate=i max_tx_rate=i spoofchk=s:on|off \
trust=s:on|off link_state=s:auto|enable|disable vlan_trunk=s logLevel=s logFile=s
ipam/whereabouts type=s name=s routes=l.route datastore=s addresses=l.address exclude=ls dns=.dns range=s \
range_start=s:ip range_end=s:ip gateway=s ipRanges=lm* etcd_host=s etcd_username=s etcd_password=s etcd_key_file=s \
etcd_cert_file=s etcd_ca_cert_file=s log_file=s log_level=s enable_overlapping_ranges=b kubernetes=.kubernetes \
configuration_path=s network_name=s node_slice_size=s sleep_for_race=i leader_lease_duration=i \
leader_renew_deadline=i leader_retry_period=i reconciler_cron_expression=s
"""
#: Plugins whose keys may be more than these: another release has others, so only what looks like a slip is told.
PRODUCTS = ("flannel", "calico", "kube-ovn", "multus", "sriov", "calico-ipam", "whereabouts")
#: The first cniVersion that a plugin takes, where that is not the very first one.
OLDEST = {"bandwidth": "0.3.0", "vrf": "0.3.1", "firewall": "0.4.0"}
#: Plugins that work on what a plugin before them has made.
CHAINED = ("portmap", "bandwidth", "tuning", "firewall", "sbr", "vrf")
#: Plugins that make the pod's interface under the name that the runtime wants.
MAKERS = ("bridge", "ptp", "macvlan", "vlan", "host-device", "dummy", "tap")
#: Plugins that set an MTU.
WITH_MTU = ("bridge", "ptp", "macvlan", "ipvlan", "vlan", "tap", "tuning")
#: What plugins take from runtimeConfig, if a capability asks for it; the main plugin passes that of its ipam on.
CAPABILITIES = {
    "bridge": "mac", "macvlan": "mac", "tap": "mac", "tuning": "mac", "host-device": "deviceID",
    "portmap": "portMappings", "bandwidth": "bandwidth", "ptp": "", "ipvlan": "", "vlan": "", "loopback": "",
    "dummy": "", "firewall": "", "sbr": "", "vrf": "",
}  # fmt: skip
IPAM_CAPABILITIES = {"host-local": "ips ipRanges", "static": "ips", "dhcp": "", "": ""}


class Key:
    """One key: ``name``, ``kind`` (its type), ``rule`` ("" for none) and whether it is ``needed``."""

    __slots__ = ("name", "kind", "rule", "needed")

    def __init__(self, text: str) -> None:
        name, _equals, kind = text.partition("=")
        self.name = name.rstrip("!")
        self.needed = name.endswith("!")
        self.kind, _colon, self.rule = kind.partition(":")


def known_types() -> list[str]:
    """Return the types of the plugins that somebody described here, those of ipam too."""
    names = [line.split(None, 1)[0] for line in TABLES.splitlines() if line and line[0] != "."]
    return [name.rpartition("/")[2] for name in names]


def keys_of(table: str) -> dict[str, Key] | None:
    """Return the keys of a table by their folded name, None if there is no such table."""
    start = TABLES.find("\n%s" % table)
    while start >= 0 and TABLES[start + 1 + len(table)] not in " \n":
        start = TABLES.find("\n%s" % table, start + 1)
    if start < 0:
        return None
    words = TABLES[start + 1 : TABLES.index("\n", start + 1)].split()[1:]
    return {fold(key.name): key for key in map(Key, words)}
