#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Demonstrate rnvmf, from loading the modules to unloading them; `make run` runs this in a VM.
#
# The host driver connects to the kernel's NVMe/RDMA target over a soft-RoCE device. The namespace
# is a RAM disk. Data is written and verified on the disk, then in a file system on it.
#
# usage: demo.sh [rnvmf|nvme]	host driver (default: rnvmf); nvme is the kernel's C host

set -Eeuo pipefail

host=${1:-rnvmf}
case $host in
rnvmf) modules=(rrdma rnvmf) disk=/dev/rnvmf0n1 ;;
nvme) modules=(nvme-rdma) disk=/dev/nvme0n1 ;;
*)
	echo "demo.sh: unknown host driver '$host': expected rnvmf or nvme" >&2
	exit 2
	;;
esac

address=192.0.2.1
service=4420
nqn=nqn.2026-11.org.rnvmf:demo
subsystem=/sys/kernel/config/nvmet/subsystems/$nqn
port=/sys/kernel/config/nvmet/ports/1
megabytes=256
work=/tmp/demo
# Files to copy; every Debian system has them.
files=/usr/share/zoneinfo/America
summary=()
doing="starting"
trap 'echo "demo.sh: failed in: $doing" >&2' ERR

# part TITLE FUNCTION: run a part of the demonstration, and record its duration for the summary.
part() {
	local began=$EPOCHREALTIME
	doing=$1
	echo "== $1"
	"$2"
	local took=$((${EPOCHREALTIME/./} - ${began/./}))
	summary+=("$(printf '%-58s %3d.%d s' "$1" $((took / 1000000)) $((took / 100000 % 10)))")
}

fail() {
	echo "demo.sh: $*" >&2
	exit 1
}

load() {
	local module
	for module in "${modules[@]}"; do
		modprobe "$module"
	done
}

make_device() {
	modprobe rdma_rxe
	ip link add demo0 type dummy
	ip addr add "$address/24" dev demo0
	ip link set demo0 up
	rdma link add rxe0 type rxe netdev demo0
	rdma link show rxe0/1
}

make_target() {
	modprobe brd rd_nr=1 rd_size=$((megabytes * 1024))
	modprobe nvmet-rdma
	mkdir "$subsystem"
	echo 1 >"$subsystem/attr_allow_any_host"
	mkdir "$subsystem/namespaces/1"
	echo -n /dev/ram0 >"$subsystem/namespaces/1/device_path"
	echo 1 >"$subsystem/namespaces/1/enable"
	mkdir "$port"
	echo rdma >"$port/addr_trtype"
	echo ipv4 >"$port/addr_adrfam"
	echo "$address" >"$port/addr_traddr"
	echo "$service" >"$port/addr_trsvcid"
	ln -s "$subsystem" "$port/subsystems/$nqn"
}

connect() {
	local tries
	"$host" connect -t rdma -a "$address" -s "$service" -n "$nqn"
	# `rnvmf connect` returns when the disk exists; nvme-core scans after `nvme connect`.
	for tries in {1..50}; do
		[ ! -b "$disk" ] || break
		sleep 0.1
	done
	[ -b "$disk" ] || fail "timed out waiting for $disk ($tries tries)"
	[ "$(blockdev --getsize64 "$disk")" = $((megabytes << 20)) ] ||
		fail "$disk: capacity differs from the $megabytes MiB of the target"
}

verify() {
	fio --name=verify --filename="$disk" --ioengine=libaio --direct=1 --rw=randwrite \
		--bssplit=4k/60:64k/30:1m/10 --size=8M --iodepth=16 --verify=crc32c \
		--verify_fatal=1 --randseed=1 --minimal --output="$work/fio" ||
		fail "fio: I/O error or wrong data: $(tail -n 3 "$work/fio")"
}

file_system() {
	mkfs.ext4 -q "$disk"
	mkdir -p "$work/mount"
	mount "$disk" "$work/mount"
	cp -r "$files" "$work/mount/"
	umount "$work/mount"
	# Mount again, so that the files are read from the target and not from the page cache.
	mount "$disk" "$work/mount"
	diff -r "$files" "$work/mount/${files##*/}" || fail "files differ after a remount"
	umount "$work/mount"
}

disconnect() {
	"$host" disconnect -n "$nqn"
	[ ! -b "$disk" ] || fail "$disk still exists after disconnect"
}

remove() {
	local index
	rm "$port/subsystems/$nqn"
	rmdir "$port" "$subsystem/namespaces/1" "$subsystem"
	modprobe -r nvmet-rdma
	rdma link del rxe0
	for ((index = ${#modules[@]} - 1; index >= 0; index--)); do
		modprobe -r "${modules[index]}"
	done
}

mkdir -p "$work"
part "load ${modules[*]}" load
part "soft-RoCE device rxe0, $address" make_device
part "target nvmet-rdma, $megabytes MiB, port $service" make_target
part "connect $disk" connect
part "fio: 8 MiB in 4k to 1m blocks, depth 16, crc32c verified" verify
part "ext4: $(find "$files" -type f | wc -l) files copied, compared after a remount" file_system
part "disconnect" disconnect
part "remove target and device, unload" remove

echo
echo "kernel $RNVMF_KERNEL, host driver $host, disk $disk: all verified"
printf '  %s\n' "${summary[@]}"
