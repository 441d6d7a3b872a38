#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests the comparison of nvme_rdma_rust with the private structures of the running kernel, and the
# files that put it in the place of nvme-rdma.

. "$(dirname "$0")/lib.sh"
. "$HERE/lib/installed.sh"

BOOT=$(dirname "$INSTALL")

requirements() {
	need_root && need_modules nvme-rdma nvme_rdma_rust rnvmf && need_programs rnvmf nvme python3
}

setup() {
	unload && installed_at "$SCRATCH/root" && mkdir -p "$ROOT/lib/modules/$RELEASE" &&
		MODULE=$(modinfo -n nvme_rdma_rust)
}

unload() {
	modprobe -r nvme-rdma && modprobe -r nvme_rdma_rust
}

# need_btf: skip the test if the kernel has no BTF to compare with.
need_btf() {
	[ -e /sys/kernel/btf/vmlinux ] || skip "the kernel has no BTF"
}

# loaded_are [MODULE...]: fail unless these transports, and no others, are loaded.
loaded_are() {
	local each found=()
	for each in nvme_rdma nvme_rdma_rust; do
		[ ! -e "/sys/module/$each" ] || found+=("$each")
	done
	same "loaded transports" "$*" "${found[*]}"
}

# changed FILE: write a copy of the module that was built with another offset.
changed() {
	LC_ALL=C sed -E 's/(nvme_ctrl::ops) [0-9]/\1 9/' "$MODULE" >"$1"
}

# in_place: have nvme_rdma_rust loaded in the place of nvme-rdma, as `make install TRANSPORT=1` does.
in_place() {
	defer rm -r /run/modprobe.d/nvme_rdma_rust.conf /usr/libexec/rnvmf
	install -D -t /run/modprobe.d "$BOOT/nvme_rdma_rust.conf"
	install -D -t /usr/libexec/rnvmf "$BOOT/check-layout"
	defer unload
}

# ask_for_rdma: have nvme-fabrics ask for a transport `rdma`. The connect itself fails.
ask_for_rdma() {
	expect 1 nvme connect -t rdma -a 192.0.2.1 -s 4420 -n nqn.2014-08.org.example:none
}

fits_the_running_kernel() {
	run "$BOOT/check-layout" "$MODULE"
	if [ -e /sys/kernel/btf/vmlinux ]; then
		same output "" "$OUTPUT$ERRORS"
	else
		has "$OUTPUT" 'no BTF of nvme-core: layout not checked$'
	fi
}

other_layout_is_refused() {
	need_btf
	changed "$SCRATCH/nvme_rdma_rust.ko"
	expect 1 "$BOOT/check-layout" "$SCRATCH/nvme_rdma_rust.ko"
	has "$ERRORS" '^check-layout: offset of nvme_ctrl::ops: 9[0-9]* in the module, [0-9]+ in the kernel; '
	same "lines in the log" 1 "$(logged 'nvme_rdma_rust: offset of nvme_ctrl::ops: ')"
	cp "$MODULES/rrdma.ko" "$MODULES/rnvmf.ko" "$SCRATCH"
	expect 1 "$INSTALL" --root "$ROOT" --transport "$RELEASE" "$SCRATCH" "$(command -v rnvmf)"
	same "list of installed files" '' "$(find "$ROOT" -type f)"
}

takes_the_place() {
	modprobe nvme-rdma
	loaded_are nvme_rdma
	modprobe -r nvme-rdma
	in_place
	modprobe nvme-rdma
	loaded_are nvme_rdma_rust
	modprobe nvme-rdma
	loaded_are nvme_rdma_rust
	modprobe -r nvme-rdma
	loaded_are
	modprobe nvme-fabrics
	ask_for_rdma
	loaded_are nvme_rdma_rust
	modprobe -r nvme-rdma
	loaded_are
	undo
	modprobe nvme-rdma
	loaded_are nvme_rdma
	modprobe -r nvme-rdma
}

# A kernel without the module has the C driver, with the same file in modprobe.d.
leaves_other_kernels_alone() {
	in_place
	mv "$MODULE" "$SCRATCH/kept.ko"
	defer depmod
	defer mv "$SCRATCH/kept.ko" "$MODULE"
	depmod
	modprobe nvme-rdma
	loaded_are nvme_rdma
	modprobe -r nvme-rdma
	loaded_are
}

other_layout_is_not_loaded() {
	need_btf
	in_place
	changed "$SCRATCH/changed.ko"
	mount --bind "$SCRATCH/changed.ko" "$MODULE"
	defer umount "$MODULE"
	expect 1 modprobe nvme-rdma
	has "$ERRORS" 'offset of nvme_ctrl::ops: 9'
	modprobe nvme-fabrics
	ask_for_rdma
	loaded_are
	same "lines in the log" 2 "$(logged 'nvme_rdma_rust: offset of nvme_ctrl::ops: ')"
}

# installs [--transport]: install in ROOT.
installs() {
	run "$INSTALL" --root "$ROOT" "$@" "$RELEASE" "$MODULES" "$(command -v rnvmf)"
}

installs_and_is_taken_away() {
	installs
	same "list of files of the transport" '' "$(find "$ROOT" -name '*nvme_rdma*' -o -name check-layout)"
	installs --transport
	run cmp "$MODULE" "$ROOT/lib/modules/$RELEASE/updates/nvme_rdma_rust.ko"
	run cmp "$BOOT/check-layout" "$ROOT/usr/libexec/rnvmf/check-layout"
	run cmp "$BOOT/nvme_rdma_rust.conf" "$ROOT/usr/lib/modprobe.d/nvme_rdma_rust.conf"
	expect 2 "$INSTALL" --root "$ROOT" --transport --remove "$RELEASE"
	removed
	same "list of remaining files" '' "$(find "$ROOT" -name '*nvme*' -o -name check-layout -o \
		-name '*rnvmf*' ! -path '*/etc/rnvmf*')"
}

# The DKMS sources build the transport where the headers are, and only if it is wanted.
installs_for_dkms() {
	local headers=$SCRATCH/headers
	[ -e /opt/rnvmf/src/Kbuild ] || skip "no source tree in /opt/rnvmf/src"
	mkdir -p "$headers/drivers/nvme/host"
	touch "$headers/drivers/nvme/host/nvme.h"
	echo CONFIG_NVME_FABRICS=m >"$headers/.config"
	dkms_builds "$headers" "rrdma rnvmf"
	dkms_builds "$headers" "rrdma rnvmf nvme_rdma_rust" --transport
	dkms_builds "$SCRATCH" "rrdma rnvmf" --transport
	try "$SOURCES/probe.py" "$SCRATCH" --transport
	has "$OUTPUT" 'nvme_rdma_rust is not built: .*/drivers/nvme/host/nvme.h is missing: '
}

# dkms_builds KDIR MODULES [--transport]: the sources for DKMS must name these modules.
dkms_builds() {
	local kdir=$1 wanted=$2
	shift 2
	run "$INSTALL" --root "$ROOT" "$@" --dkms "$(command -v rnvmf)"
	SOURCES=$(echo "$ROOT"/usr/src/rnvmf-*)
	same "modules" "$wanted" "$(bash -uc 'kernel_source_dir=$2 dkms_tree=/tree; . "$1"
		echo "${BUILT_MODULE_NAME[*]}"' - "$SOURCES/dkms.conf" "$kdir")"
}

main setup \
	fits_the_running_kernel \
	other_layout_is_refused \
	takes_the_place \
	leaves_other_kernels_alone \
	other_layout_is_not_loaded \
	installs_and_is_taken_away \
	installs_for_dkms
