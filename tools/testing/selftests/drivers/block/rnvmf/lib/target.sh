# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The kernel's NVMe target, through configfs. All names start alike, so that nobody else's are hit.

NVMET=/sys/kernel/config/nvmet
NQN=nqn.2014-08.org.nvmexpress:rnvmf-selftest
# shellcheck disable=SC2034 # read by the tests
HOSTNQN=nqn.2014-08.org.nvmexpress:uuid:5e1f7e57-0000-4000-8000-000000000001

target_load() {
	modprobe nvmet-rdma
}

# target_subsystem NQN: a subsystem that any host may use.
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

# target_host SUBSYSTEM HOSTNQN: this host, and no other that is not named, may use the subsystem.
target_host() {
	mkdir "$NVMET/hosts/$2" || return 1
	defer rmdir "$NVMET/hosts/$2"
	echo 0 >"$NVMET/subsystems/$1/attr_allow_any_host" &&
		ln -s "$NVMET/hosts/$2" "$NVMET/subsystems/$1/allowed_hosts/$2" || return 1
	defer rm "$NVMET/subsystems/$1/allowed_hosts/$2"
}

# target_namespace SUBSYSTEM NSID PATH: a block device or a file as a namespace.
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

# target_port PORT ADDRESS [SERVICE]: a listener. The numbers of ports are ours from 4420.
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

# target_export PORT SUBSYSTEM
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

# target_referral PORT NAME TRANSPORT ADDRESS [SERVICE]: the port's discovery log refers to another.
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

# target_simple BACKEND...: the subsystem $NQN with a namespace for each backend, on both addresses.
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

# The target listens no more, and drops its connections.
port_goes() {
	target_unexport 4420 "$NQN"
	target_port_delete 4420
}

# It listens again, until whoever made it listen first undoes that.
port_is_back() {
	target_listen 4420 "$TARGET4"
	target_offer 4420 "$NQN"
}

# start_pair: a cable, and the subsystem $NQN with one disk at its end: for a test that breaks some of
# it, and so has its own.
start_pair() {
	# shellcheck disable=SC2153 # set by backend_memory
	network_pair && backend_memory disk 64 512 && target_simple "$BACKEND"
}
