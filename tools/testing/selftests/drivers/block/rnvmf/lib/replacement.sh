# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Tests a module that is installed in the place of a C driver: the comparison with the private structures
# of the running kernel, the file for modprobe, and DKMS.
#
# The test sets the variables, and has a function `ask_for_rdma` that lets the kernel load the driver:
# REPLACED     the C driver, with underscores
# REPLACEMENT  the module
# OPTION       its option of tools/boot/install
# PARAMETER    a parameter of both modules, with a value that is not the default; empty if they have none
# FIELD        a field in its layout
# HEADER       the private header that it needs, in drivers/nvme
# CONFIG       the kernel option that it needs

. "$HERE/lib/installed.sh"

BOOT=$(dirname "$INSTALL")

setup() {
	unload && installed_at "$SCRATCH/root" && mkdir -p "$ROOT/lib/modules/$RELEASE" &&
		MODULE=$(modinfo -n "$REPLACEMENT")
}

unload() {
	modprobe -r "$REPLACED" && modprobe -r "$REPLACEMENT"
}

# need_btf: skip the test if the kernel has no BTF to compare with.
need_btf() {
	[ -e /sys/kernel/btf/vmlinux ] || skip "the kernel has no BTF"
}

# loaded_are [MODULE...]: fail unless these drivers, and no others, are loaded.
loaded_are() {
	local each found=()
	for each in "$REPLACED" "$REPLACEMENT"; do
		[ ! -e "/sys/module/$each" ] || found+=("$each")
	done
	same "loaded drivers" "$*" "${found[*]}"
}

# changed FILE: write a copy of the module that was built with another offset.
changed() {
	LC_ALL=C sed -E "s/($FIELD) [0-9]/\1 9/" "$MODULE" >"$1"
}

# in_place: have the module loaded in the place of the C driver, as `make install` with its option does.
in_place() {
	defer rm -r "/run/modprobe.d/$REPLACEMENT.conf" "/run/modprobe.d/00-$REPLACEMENT.conf" /usr/libexec/rnvmf
	install -D -t /run/modprobe.d "$BOOT/$REPLACEMENT.conf" "$BOOT/00-$REPLACEMENT.conf"
	install -D -t /usr/libexec/rnvmf "$BOOT/check-layout"
	defer unload
}

fits_the_running_kernel() {
	run "$BOOT/check-layout" "$MODULE"
	if [ -e /sys/kernel/btf/vmlinux ]; then
		same output "" "$OUTPUT$ERRORS"
	else
		has "$OUTPUT" 'no BTF of .*: layout not checked$'
	fi
}

# A signature follows the ELF file.
signed_module_is_compared() {
	need_btf
	{ cat "$MODULE" && printf 'signature~Module signature appended~\n'; } >"$SCRATCH/signed.ko"
	run "$BOOT/check-layout" "$SCRATCH/signed.ko"
	same output "" "$OUTPUT$ERRORS"
}

other_layout_is_refused() {
	need_btf
	changed "$SCRATCH/$REPLACEMENT.ko"
	expect 1 "$BOOT/check-layout" "$SCRATCH/$REPLACEMENT.ko"
	has "$ERRORS" "^check-layout: offset of $FIELD: 9[0-9]* in the module, [0-9]+ in the kernel; "
	same "lines in the log" 1 "$(logged "$REPLACEMENT: offset of $FIELD: ")"
	cp "$MODULES/rrdma.ko" "$MODULES/rnvmf.ko" "$SCRATCH"
	expect 1 "$INSTALL" --root "$ROOT" "$OPTION" "$RELEASE" "$SCRATCH" "$(command -v rnvmf)"
	same "list of installed files" '' "$(find "$ROOT" -type f)"
}

takes_the_place() {
	modprobe "$REPLACED"
	loaded_are "$REPLACED"
	modprobe -r "$REPLACED"
	in_place
	modprobe "$REPLACED"
	loaded_are "$REPLACEMENT"
	modprobe "$REPLACED"
	loaded_are "$REPLACEMENT"
	modprobe -r "$REPLACED"
	loaded_are
	ask_for_rdma
	loaded_are "$REPLACEMENT"
	modprobe -r "$REPLACED"
	loaded_are
	undo
	modprobe "$REPLACED"
	loaded_are "$REPLACED"
	modprobe -r "$REPLACED"
}

# site LINE...: write a file of the site for modprobe.
site() {
	defer rm -f /run/modprobe.d/rnvmf-site.conf
	printf '%s\n' "$@" >/run/modprobe.d/rnvmf-site.conf
}

# What the site has written for the C driver holds for the module, and for the C driver where that is loaded.
keeps_to_what_the_site_wrote() {
	modprobe -q -a --dry-run dummy null_blk || skip "modules dummy and null_blk not found"
	modprobe -r dummy null_blk
	in_place
	site "options ${REPLACED/_/-} ${PARAMETER:-register_always=N}" "softdep ${REPLACED/_/-} pre: dummy post: null_blk"
	modprobe "$REPLACED"
	loaded_are "$REPLACEMENT"
	softdeps_are_loaded
	[ -z "$PARAMETER" ] || same "${PARAMETER%=*}" "${PARAMETER#*=}" \
		"$(<"/sys/module/$REPLACEMENT/parameters/${PARAMETER%=*}")"
	modprobe -r "$REPLACED"
	modprobe -r dummy null_blk
	ask_for_rdma
	loaded_are "$REPLACEMENT"
	softdeps_are_loaded
	modprobe -r "$REPLACED"
	modprobe -r dummy null_blk
	rm /usr/libexec/rnvmf/check-layout
	modprobe "$REPLACED"
	loaded_are "$REPLACED"
	softdeps_are_loaded
	modprobe -r "$REPLACED"
	modprobe -r dummy null_blk
}

softdeps_are_loaded() {
	local each
	for each in dummy null_blk; do
		[ -e "/sys/module/$each" ] || fail "$each, a softdep of $REPLACED, is not loaded"
	done
}

# A kernel without the module has the C driver, with the same file in modprobe.d.
leaves_other_kernels_alone() {
	in_place
	# To put the index back takes the emulator less time than to make it again.
	mkdir "$SCRATCH/index"
	cp -t "$SCRATCH/index" "/lib/modules/$RELEASE"/modules.*
	defer cp -t "/lib/modules/$RELEASE" "$SCRATCH"/index/*
	mv "$MODULE" "$SCRATCH/kept.ko"
	defer mv "$SCRATCH/kept.ko" "$MODULE"
	depmod
	modprobe "$REPLACED"
	loaded_are "$REPLACED"
	modprobe -r "$REPLACED"
	loaded_are
}

# An initramfs may have the module, but not what compares it.
not_without_the_comparison() {
	in_place
	rm /usr/libexec/rnvmf/check-layout
	modprobe "$REPLACED"
	loaded_are "$REPLACED"
	modprobe -r "$REPLACED"
	loaded_are
}

other_layout_is_not_loaded() {
	need_btf
	in_place
	changed "$SCRATCH/changed.ko"
	mount --bind "$SCRATCH/changed.ko" "$MODULE"
	defer umount "$MODULE"
	expect 1 modprobe "$REPLACED"
	has "$ERRORS" "offset of $FIELD: 9"
	ask_for_rdma
	loaded_are
	same "lines in the log" 2 "$(logged "$REPLACEMENT: offset of $FIELD: ")"
}

# installs [OPTION]: install in ROOT.
installs() {
	run "$INSTALL" --root "$ROOT" "$@" "$RELEASE" "$MODULES" "$(command -v rnvmf)"
}

installs_and_is_taken_away() {
	installs
	same "list of files of the module" '' "$(find "$ROOT" -name '*nvme*_rdma*' -o -name check-layout)"
	installs "$OPTION"
	run cmp "$MODULE" "$ROOT/lib/modules/$RELEASE/updates/$REPLACEMENT.ko"
	run cmp "$BOOT/check-layout" "$ROOT/usr/libexec/rnvmf/check-layout"
	run cmp "$BOOT/$REPLACEMENT.conf" "$ROOT/usr/lib/modprobe.d/$REPLACEMENT.conf"
	run cmp "$BOOT/00-$REPLACEMENT.conf" "$ROOT/usr/lib/modprobe.d/00-$REPLACEMENT.conf"
	expect 2 "$INSTALL" --root "$ROOT" "$OPTION" --remove "$RELEASE"
	removed
	same "list of remaining files" '' "$(find "$ROOT" -name '*nvme*' -o -name check-layout -o \
		-name '*rnvmf*' ! -path '*/etc/rnvmf*')"
}

# The DKMS sources build the module where the headers are, and only if it is wanted.
installs_for_dkms() {
	local headers=$SCRATCH/headers
	[ -e /opt/rnvmf/src/Kbuild ] || skip "no source tree in /opt/rnvmf/src"
	mkdir -p "$headers/drivers/nvme/${HEADER%/*}"
	touch "$headers/drivers/nvme/$HEADER"
	echo "$CONFIG=m" >"$headers/.config"
	dkms_builds "$headers" "rrdma rnvmf"
	dkms_builds "$headers" "rrdma rnvmf $REPLACEMENT" "$OPTION"
	dkms_builds "$SCRATCH" "rrdma rnvmf" "$OPTION"
	try "$SOURCES/probe.py" "$SCRATCH" "$OPTION"
	has "$OUTPUT" "$REPLACEMENT is not built: .*/drivers/nvme/$HEADER is missing: "
}

# dkms_builds KDIR MODULES [OPTION]: the sources for DKMS must name these modules.
dkms_builds() {
	local kdir=$1 wanted=$2
	shift 2
	run "$INSTALL" --root "$ROOT" "$@" --dkms "$(command -v rnvmf)"
	SOURCES=$(echo "$ROOT"/usr/src/rnvmf-*)
	same "modules" "$wanted" "$(bash -uc 'kernel_source_dir=$2 dkms_tree=/tree; . "$1"
		echo "${BUILT_MODULE_NAME[*]}"' - "$SOURCES/dkms.conf" "$kdir")"
}

test_replacement() {
	main setup \
		fits_the_running_kernel \
		signed_module_is_compared \
		other_layout_is_refused \
		takes_the_place \
		keeps_to_what_the_site_wrote \
		leaves_other_kernels_alone \
		not_without_the_comparison \
		other_layout_is_not_loaded \
		installs_and_is_taken_away \
		installs_for_dkms
}
