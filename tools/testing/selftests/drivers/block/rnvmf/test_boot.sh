#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests the installation of modules, program and units, and connect-all with a file of connections.

. "$(dirname "$0")/lib.sh"
. "$HERE/lib/installed.sh"

requirements() {
	need_root && need_modules rnvmf rdma_rxe nvmet-rdma dummy null_blk &&
		need_programs rnvmf rdma ip systemctl systemd-analyze
}

setup() {
	network_single && backend_memory disk 16 512 && target_simple "$BACKEND" && modprobe rnvmf &&
		CONNECTIONS=$SCRATCH/connections.conf && installed_at "$SCRATCH/root"
}

installs_and_is_taken_away() {
	installed
	run modprobe -d "$ROOT" --show-depends rnvmf
	has "$OUTPUT" "/updates/rrdma.ko.*"$'\n'".*/updates/rnvmf.ko"
	run "$ROOT/usr/sbin/rnvmf" --version
	[ -s "$ROOT/usr/share/bash-completion/completions/rnvmf" ] || fail "no bash completion installed"
	grep -q '^.TH rnvmf-connect-all 1' "$ROOT/usr/share/man/man1/rnvmf-connect-all.1" ||
		fail "no man page of connect-all installed"
	[ -s "$ROOT/usr/lib/udev/rules.d/60-rnvmf.rules" ] || fail "no udev rules installed"
	echo '# mine' >"$ROOT/etc/rnvmf/connections.conf"
	installed
	same configuration '# mine' "$(<"$ROOT/etc/rnvmf/connections.conf")"
	run systemctl --root "$ROOT" --quiet enable rnvmf.service rnvmf-follow.service
	removed
	has "$OUTPUT" '^kept: .*/etc/rnvmf/connections.conf$'
	same "list of remaining files" '' "$(find "$ROOT" -name '*rnvmf*' ! -path '*/etc/rnvmf*')"
}

# Installed files are readable for everybody, whatever root's umask is.
is_for_everybody() {
	installed_at "$SCRATCH/root"
	mkdir -p "$ROOT/lib/modules/$RELEASE"
	umask 077
	installed
	same "list of files not readable for everybody" "$ROOT/etc/rnvmf/connections.conf" \
		"$(find "$ROOT" -type d ! -perm -555 -o -type f ! -perm -444)"
	same "mode of the file of connections" 600 \
		"$(stat -c %a "$ROOT/etc/rnvmf/connections.conf")"
}

# What other modules on rrdma are built against: installed if the directory of the modules has it, and removed
# when that of another rrdma is installed.
installs_the_interface_of_rrdma() {
	local built=$SCRATCH/built interface=$ROOT/lib/modules/$RELEASE/rrdma
	mkdir -p "$ROOT/lib/modules/$RELEASE" "$built/rust"
	cp "$MODULES/rrdma.ko" "$MODULES/rnvmf.ko" "$built"
	echo metadata >"$built/rust/librrdma.rmeta"
	expect 1 "$INSTALL" --root "$ROOT" "$RELEASE" "$built" "$(command -v rnvmf)"
	has "$ERRORS" 'Module.symvers does not exist: build it first'
	echo symbols >"$built/Module.symvers"
	run "$INSTALL" --root "$ROOT" "$RELEASE" "$built" "$(command -v rnvmf)"
	same metadata metadata "$(<"$interface/rust/librrdma.rmeta")"
	same symbols symbols "$(<"$interface/Module.symvers")"
	installed
	[ ! -e "$interface" ] || fail "the interface of an earlier rrdma is left"
	run "$INSTALL" --root "$ROOT" "$RELEASE" "$built" "$(command -v rnvmf)"
	removed
	[ ! -e "$interface" ] || fail "the interface of rrdma was not removed"
}

# makes TARGET VARIABLE...: run make in the source tree, with DESTDIR=ROOT.
makes() {
	run make --no-print-directory -C "$TREE" DESTDIR="$ROOT" "$@"
}

# The install targets of the Makefile, with the build in the source tree.
make_installs() {
	local version
	TREE=/opt/rnvmf/src
	[ -e "$TREE/build/$RELEASE/rnvmf.ko" ] || skip "no source tree with a build in $TREE"
	command -v make >"$SCRATCH/path" || skip "program make not found"
	mkdir -p "$ROOT/lib/modules/$RELEASE"
	# For the running kernel.
	makes install
	run cmp "$TREE/build/$RELEASE/rnvmf.ko" "$ROOT/lib/modules/$RELEASE/updates/rnvmf.ko"
	run modprobe -d "$ROOT" --show-depends rnvmf
	run cmp "$TREE/build/cargo/release/rnvmf" "$ROOT/usr/sbin/rnvmf"
	[ -s "$ROOT/etc/rnvmf/connections.conf" ] || fail "no file of connections installed"
	makes uninstall
	same "list of remaining files" '' "$(find "$ROOT" -name '*rnvmf*' ! -path '*/etc/rnvmf*')"
	# For a given kernel release.
	mkdir -p "$ROOT/lib/modules/none"
	expect 2 make -C "$TREE" DESTDIR="$ROOT" RELEASE=none install
	has "$ERRORS" 'build/none/rrdma.ko does not exist: build it first'
	run rm -r "$ROOT/lib/modules/none"
	makes install RELEASE="$RELEASE"
	[ -e "$ROOT/lib/modules/$RELEASE/updates/rnvmf.ko" ] || fail "no module installed for RELEASE"
	makes uninstall RELEASE="$RELEASE"
	makes install-dkms
	version=$(rnvmf --version)
	[ -s "$ROOT/usr/src/rnvmf-${version##* }/dkms.conf" ] || fail "no DKMS sources installed: $OUTPUT"
	[ ! -e "$ROOT/lib/modules/$RELEASE/updates/rnvmf.ko" ] || fail "install-dkms installed modules"
	makes uninstall
	same "list of remaining files" '' "$(find "$ROOT" -name '*rnvmf*' ! -path '*/etc/rnvmf*')"
	# Of all kernels.
	makes install
	install -D -t "$ROOT/lib/modules/7.0.0-other/updates" "$TREE/build/$RELEASE/rnvmf.ko"
	makes uninstall
	same "list of remaining files" '' "$(find "$ROOT" -name '*rnvmf*' ! -path '*/etc/rnvmf*')"
	# Dry run without DESTDIR.
	run make --no-print-directory -n -C "$TREE" install
	same "command" "tools/boot/install  $RELEASE build/$RELEASE build/cargo/release/rnvmf" "$OUTPUT"
	run make --no-print-directory -n -C "$TREE" PROGRAM=mine install install-dkms
	same "commands" "tools/boot/install  $RELEASE build/$RELEASE mine"$'\n'"tools/boot/install  --dkms mine" \
		"$OUTPUT"
}

# A shell that is set up for something else, such as a cross build, has variables of the same names.
environment_selects_nothing() {
	local command="tools/boot/install  $RELEASE build/$RELEASE build/cargo/release/rnvmf"
	TREE=/opt/rnvmf/src
	[ -e "$TREE/Makefile" ] || skip "no source tree in $TREE"
	command -v make >"$SCRATCH/path" || skip "program make not found"
	export TARGET=aarch64-linux-gnu TRANSPORT=1 PROGRAM=other RELEASE=none
	run make --no-print-directory -n -C "$TREE" install
	same "command" "$command" "$OUTPUT"
	run make --no-print-directory -n -C "$TREE" install-dkms
	same "command" "tools/boot/install  --dkms build/cargo/release/rnvmf" "$OUTPUT"
	run make --no-print-directory -n -C "$TREE" uninstall
	same "command" "tools/boot/install  --remove" "$OUTPUT"
	run make --no-print-directory -n -C "$TREE" uninstall TARGET=1 RELEASE=7
	same "command" "tools/boot/install  --remove 7" "$OUTPUT"
	run make --no-print-directory -n -C "$TREE" install TARGET=1 TRANSPORT=1
	same "command" "${command/install /install  --transport --target}" "$OUTPUT"
}

# The DKMS sources are complete, and the version in dkms.conf is that of their directory.
installs_for_dkms() {
	local version sources named
	# Installed tests have no source tree.
	[ -e /opt/rnvmf/src/Kbuild ] || skip "no source tree in /opt/rnvmf/src"
	run /opt/rnvmf/src/tools/boot/install --root "$ROOT" --dkms "$(command -v rnvmf)"
	version=$(rnvmf --version)
	sources=$ROOT/usr/src/rnvmf-${version##* }
	has "$OUTPUT" "dkms install rnvmf/${version##* }\$"
	named=$(bash -uc 'kernel_source_dir=/headers dkms_tree=/tree; . "$1"
		echo "$PACKAGE_NAME-$PACKAGE_VERSION ${BUILT_MODULE_NAME[*]} $PRE_BUILD"' - "$sources/dkms.conf")
	same "the variables of dkms.conf" "${sources##*/} rrdma rnvmf probe.py /headers" "$named"
	run diff -r /opt/rnvmf/src/rust "$sources/rust"
	run diff -r /opt/rnvmf/src/drivers "$sources/drivers"
	mkdir -p "$SCRATCH/headers/include/config"
	echo CONFIG_RUST=y >"$SCRATCH/headers/.config"
	touch "$SCRATCH/headers/Makefile"
	echo "$RELEASE" >"$SCRATCH/headers/include/config/kernel.release"
	expect 1 "$sources/probe.py" "$SCRATCH/headers"
	has "$OUTPUT" 'rnvmf cannot be built: no Rust metadata: libcore.rmeta'
	mkdir -p "$ROOT/lib/modules/$RELEASE"
	removed
	[ ! -e "$sources" ] || fail "the DKMS sources were not removed"
}

wrong_installs_are_refused() {
	expect 2 "$INSTALL" --dkms
	expect 2 "$INSTALL" --dkms --remove "$RELEASE"
	expect 2 "$INSTALL"
	expect 2 "$INSTALL" --root
	expect 2 "$INSTALL" --frob "$RELEASE"
	expect 2 "$INSTALL" --remove "$RELEASE" more
	expect 1 "$INSTALL" --root "$SCRATCH/nowhere" "$RELEASE" "$MODULES" "$(command -v rnvmf)"
	has "$ERRORS" 'kernel .* is not installed'
	mkdir -p "$ROOT/lib/modules/$RELEASE"
	expect 1 "$INSTALL" --root "$ROOT" "$RELEASE" "$SCRATCH" "$(command -v rnvmf)"
	has "$ERRORS" 'build it first'
	mkdir "$SCRATCH/bin"
	ln -s "$(command -v dirname)" "$SCRATCH/bin"
	expect 1 env PATH="$SCRATCH/bin" \
		"$INSTALL" --root "$ROOT" "$RELEASE" "$MODULES" "$(command -v rnvmf)"
	has "$ERRORS" 'depmod .* is not in PATH'
	# A program that does not run, as one that was built for newer libraries.
	printf '%s\n' '#!/bin/sh' 'echo it does not run >&2' 'exit 127' >"$SCRATCH/rnvmf"
	chmod +x "$SCRATCH/rnvmf"
	expect 1 "$INSTALL" --root "$ROOT" "$RELEASE" "$MODULES" "$SCRATCH/rnvmf"
	has "$ERRORS" $'^[^\n]*/rnvmf does not run here \\(it does not run\\): build it for this system$'
	if [ -e /opt/rnvmf/src/Kbuild ]; then
		expect 1 /opt/rnvmf/src/tools/boot/install --root "$ROOT" --dkms "$SCRATCH/rnvmf"
		has "$ERRORS" '/rnvmf does not run here'
	fi
	same "list of installed files" '' "$(find "$ROOT" -name '*.ko' -o -path "$ROOT/usr/*rnvmf*")"
}

# systemd-analyze must accept the units. It needs the units and the program that they refer to.
units_are_right() {
	installed
	cp -r /usr/lib/systemd/system/. "$ROOT/usr/lib/systemd/system/"
	install -D -t "$ROOT/usr/bin" "$(command -v systemctl)"
	run systemd-analyze verify --root "$ROOT" --man=no rnvmf.service \
		rnvmf-late.service rnvmf-follow.service
	same complaints '' "$OUTPUT$ERRORS"
	removed
}

all_are_connected() {
	local devices
	connections "$CONNECTIONS" "-a $TARGET4 -n $NQN" "-a $TARGET6 -n $NQN"
	connect_all 0
	has "$OUTPUT" "connected to $NQN at .*"$'\n'".*connected to $NQN at "
	devices=$(device_names)
	connect_all 0
	has "$OUTPUT" $'already connected\n.*already connected$'
	same devices "$devices" "$(device_names)"
	run rnvmf disconnect-all
}

# Connections are made in parallel, so that an unreachable target does not delay the others.
one_that_fails_stops_no_other() {
	local program status=0
	connections "$CONNECTIONS" "-a $NOBODY4 -n $NQN --timeout $((6 * SLOWDOWN))" "-a $TARGET4 -n $NQN" \
		"-a $NOBODY4 -n $NQN -s 4421 --timeout $((6 * SLOWDOWN))"
	defer rnvmf disconnect-all
	rnvmf connect-all -f "$CONNECTIONS" >"$SCRATCH/told" 2>"$SCRATCH/complaints" &
	program=$!
	defer end_process $program
	wait_until "$SOON" connects_in_parallel || fail "not live beside two that connect: $OUTPUT"
	wait $program || status=$?
	same status 1 $status
	has "$(<"$SCRATCH/told")" "^rnvmf[0-9]+: connected to $NQN at $TARGET4:4420\$"
	has "$(<"$SCRATCH/complaints")" "connect to $NOBODY4:4420: .*"$'\n'".*connect to $NOBODY4:4421: "
	has "$(<"$SCRATCH/complaints")" 'rnvmf: connect-all: 2 of 3 connections failed$'
	run rnvmf disconnect-all
}

# connects_in_parallel: whether one controller is live while two others are connecting.
connects_in_parallel() {
	local states
	run rnvmf show -o json
	states=$(grep -oE '"state":"[a-z]+"' <<<"$OUTPUT" | sort | paste -sd ' ')
	[ "$states" = '"state":"connecting" "state":"connecting" "state":"live"' ]
}

wrong_line_stops_no_other() {
	connections "$CONNECTIONS" "-a $TARGET4 -n $NQN -s frob" "-a $TARGET4 -n $NQN"
	connect_all 1
	has "$ERRORS" "connections.conf:2: invalid value 'frob'"
	has "$ERRORS" 'rnvmf: connect-all: 1 of 2 connections failed$'
	has "$OUTPUT" "^rnvmf[0-9]+: connected to $NQN at $TARGET4:4420\$"
	run rnvmf disconnect-all
}

wrong_file_connects_nothing() {
	connections "$CONNECTIONS" "-a $TARGET4 -n $NQN -s frob"
	connect_all 2
	has "$ERRORS" "connections.conf:2: invalid value 'frob'"
	same devices '' "$(device_names)"
	expect 2 rnvmf connect-all -f "$SCRATCH/none"
	has "$ERRORS" 'none: No such file or directory'
}

# connect_all STATUS: run connect-all with the file, which must exit with this status.
connect_all() {
	defer rnvmf disconnect-all
	expect "$1" rnvmf connect-all -f "$CONNECTIONS"
}

device_names() {
	run rnvmf show -o json
	grep -o '"device":"rnvmf[0-9]*"' <<<"$OUTPUT" || true
}

main setup \
	installs_and_is_taken_away \
	is_for_everybody \
	installs_the_interface_of_rrdma \
	make_installs \
	environment_selects_nothing \
	installs_for_dkms \
	wrong_installs_are_refused \
	units_are_right \
	all_are_connected \
	one_that_fails_stops_no_other \
	wrong_line_stops_no_other \
	wrong_file_connects_nothing
