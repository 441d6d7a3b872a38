# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Configures the kernel's NVMe target (nvmet) through configfs. All names have a common prefix, so
# that no other object is touched.

NVMET=/sys/kernel/config/nvmet
NQN=nqn.2014-08.org.nvmexpress:rnvmf-selftest
# shellcheck disable=SC2034 # read by the tests
HOSTNQN=nqn.2014-08.org.nvmexpress:uuid:5e1f7e57-0000-4000-8000-000000000001

# Module of the target's RDMA transport, and its parameters.
TARGET_DRIVER=${TARGET_DRIVER:-nvmet-rdma}
TARGET_PARAMETERS=()

# nvmet has one transport of each type, and loads nvmet-rdma if there is none of type rdma.
target_load() {
	[ "$TARGET_DRIVER" = nvmet-rdma ] || [ ! -d /sys/module/nvmet_rdma ] || modprobe -r nvmet-rdma || return 1
	load_module "$TARGET_DRIVER" "${TARGET_PARAMETERS[@]}"
}

# target_subsystem NQN: create a subsystem that accepts any host.
target_subsystem() {
	local path=$NVMET/subsystems/$1
	mkdir "$path" || return 1
	defer target_subsystem_delete "$1"
	echo 1 >"$path/attr_allow_any_host"
}

target_subsystem_delete() {
	local path=$NVMET/subsystems/$1 link
	for link in "$path"/allowed_hosts/*; do
		[ ! -L "$link" ] || rm "$link" || return 1
	done
	[ ! -d "$path" ] || rmdir "$path"
}

# target_host SUBSYSTEM HOSTNQN: restrict the subsystem to named hosts, and add this host.
target_host() {
	mkdir "$NVMET/hosts/$2" || return 1
	defer rmdir "$NVMET/hosts/$2"
	echo 0 >"$NVMET/subsystems/$1/attr_allow_any_host" &&
		ln -s "$NVMET/hosts/$2" "$NVMET/subsystems/$1/allowed_hosts/$2" || return 1
	defer rm "$NVMET/subsystems/$1/allowed_hosts/$2"
}

# target_namespace SUBSYSTEM NSID PATH: create a namespace on a block device or a file.
target_namespace() {
	local path=$NVMET/subsystems/$1/namespaces/$2
	mkdir "$path" || return 1
	defer target_namespace_delete "$1" "$2"
	echo -n "$3" >"$path/device_path" && echo 1 >"$path/enable"
}

target_namespace_delete() {
	local path=$NVMET/subsystems/$1/namespaces/$2
	[ ! -d "$path" ] || { echo 0 >"$path/enable" && rmdir "$path"; }
}

# target_port PORT ADDRESS [SERVICE]: create an RDMA port, deleted when the test ends. PORT is its
# name in configfs, 4420 or more in these tests. SERVICE is its RDMA port number, by default 4420.
target_port() {
	defer target_port_delete "$1"
	target_listen "$@"
}

target_listen() {
	local path=$NVMET/ports/$1 family=ipv4
	[[ $2 != *:* ]] || family=ipv6
	mkdir "$path" || return 1
	echo rdma >"$path/addr_trtype" && echo "$family" >"$path/addr_adrfam" &&
		echo "$2" >"$path/addr_traddr" && echo "${3:-4420}" >"$path/addr_trsvcid"
}

target_port_delete() {
	[ ! -d "$NVMET/ports/$1" ] || rmdir "$NVMET/ports/$1"
}

# target_export PORT SUBSYSTEM: export the subsystem on the port until the test ends.
target_export() {
	defer target_unexport "$1" "$2"
	target_offer "$@"
}

target_offer() {
	ln -s "$NVMET/subsystems/$2" "$NVMET/ports/$1/subsystems/$2"
}

target_unexport() {
	rm -f "$NVMET/ports/$1/subsystems/$2"
}

# target_referral PORT NAME TRANSPORT ADDRESS [SERVICE]: add a referral to the port's discovery log.
target_referral() {
	local path=$NVMET/ports/$1/referrals/$2 family=ipv4
	[[ $4 != *:* ]] || family=ipv6
	mkdir "$path" || return 1
	defer target_referral_delete "$1" "$2"
	echo "$3" >"$path/addr_trtype" && echo "$family" >"$path/addr_adrfam" &&
		echo "$4" >"$path/addr_traddr" && echo "${5:-4420}" >"$path/addr_trsvcid" &&
		echo 1 >"$path/enable"
}

target_referral_delete() {
	[ ! -d "$NVMET/ports/$1/referrals/$2" ] || rmdir "$NVMET/ports/$1/referrals/$2"
}

# target_simple BACKEND...: create the subsystem $NQN with a namespace for each backend, and export
# it on an IPv4 and an IPv6 port.
target_simple() {
	local backend nsid=0
	target_load && target_subsystem "$NQN" || return 1
	for backend; do
		nsid=$((nsid + 1))
		target_namespace "$NQN" $nsid "$backend" || return 1
	done
	target_port 4420 "$TARGET4" && target_export 4420 "$NQN" &&
		target_port 4421 "$TARGET6" && target_export 4421 "$NQN"
}

# Delete the IPv4 port; the target closes its listener and its connections.
port_goes() {
	target_unexport 4420 "$NQN"
	target_port_delete 4420
}

# Create the IPv4 port again. The deferred commands of `target_simple` delete it.
port_is_back() {
	target_listen 4420 "$TARGET4"
	target_offer 4420 "$NQN"
}

# start_pair: create a veth pair and a target with one namespace at its end, for the running test
# only. For tests that break one of them.
start_pair() {
	# shellcheck disable=SC2153 # set by backend_memory
	network_pair && backend_memory disk 64 512 && target_simple "$BACKEND"
}
