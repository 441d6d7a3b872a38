#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What is there after a boot: an installed system, and the connections of a file.

. "$(dirname "$0")/lib.sh"
. "$HERE/lib/installed.sh"

requirements() {
	need_root && need_modules rnvme rdma_rxe nvmet-rdma dummy null_blk &&
		need_programs rnvme rdma ip systemctl systemd-analyze
}

setup() {
	network_single && backend_memory disk 16 512 && target_simple "$BACKEND" && modprobe rnvme &&
		CONNECTIONS=$SCRATCH/connections.conf && installed_at "$SCRATCH/root"
}

installs_and_is_taken_away() {
	installed
	run modprobe -d "$ROOT" --show-depends rnvme
	has "$OUTPUT" "/updates/rrdma.ko.*"$'\n'".*/updates/rnvme.ko"
	run "$ROOT/usr/sbin/rnvme" --version
	[ -s "$ROOT/usr/share/bash-completion/completions/rnvme" ] || fail "no completion"
	grep -q '^.TH rnvme-connect-all 1' "$ROOT/usr/share/man/man1/rnvme-connect-all.1" ||
		fail "no page of connect-all"
	[ -s "$ROOT/usr/lib/udev/rules.d/60-rnvme.rules" ] || fail "no rules"
	echo '# mine' >"$ROOT/etc/rnvme/connections.conf"
	installed
	same configuration '# mine' "$(<"$ROOT/etc/rnvme/connections.conf")"
	run systemctl --root "$ROOT" --quiet enable rnvme.service rnvme-follow.service
	removed
	has "$OUTPUT" '^left: .*/etc/rnvme/connections.conf$'
	same "what is left" '' "$(find "$ROOT" -name '*rnvme*' ! -path '*/etc/rnvme*')"
}

# Whatever the umask of root is.
is_for_everybody() {
	installed_at "$SCRATCH/root"
	mkdir -p "$ROOT/lib/modules/$RELEASE"
	umask 077
	installed
	same "what not everybody may read" "$ROOT/etc/rnvme/connections.conf" \
		"$(find "$ROOT" -type d ! -perm -555 -o -type f ! -perm -444)"
	same "mode of the file of connections" 600 \
		"$(stat -c %a "$ROOT/etc/rnvme/connections.conf")"
}

# makes TARGET VARIABLE...: in the tree, into ROOT.
makes() {
	run make --no-print-directory -C "$TREE" DESTDIR="$ROOT" "$@"
}

# The targets of the Makefile, of what was built in the tree.
make_installs() {
	local version
	TREE=/opt/rnvme/src
	[ -e "$TREE/build/$RELEASE/rnvme.ko" ] || skip "there is no tree that was built"
	command -v make >"$SCRATCH/path" || skip "there is no program make"
	mkdir -p "$ROOT/lib/modules/$RELEASE"
	# For the kernel that runs.
	makes install
	run cmp "$TREE/build/$RELEASE/rnvme.ko" "$ROOT/lib/modules/$RELEASE/updates/rnvme.ko"
	run modprobe -d "$ROOT" --show-depends rnvme
	run cmp "$TREE/build/cargo/release/rnvme" "$ROOT/usr/sbin/rnvme"
	[ -s "$ROOT/etc/rnvme/connections.conf" ] || fail "no file of connections"
	makes uninstall
	same "what is left" '' "$(find "$ROOT" -name '*rnvme*' ! -path '*/etc/rnvme*')"
	# For one that is named.
	mkdir -p "$ROOT/lib/modules/none"
	expect 2 make -C "$TREE" DESTDIR="$ROOT" RELEASE=none install
	has "$ERRORS" 'there is no build/none/rrdma.ko: it has to be built first'
	run rm -r "$ROOT/lib/modules/none"
	makes install RELEASE="$RELEASE"
	[ -e "$ROOT/lib/modules/$RELEASE/updates/rnvme.ko" ] || fail "not installed for RELEASE"
	makes uninstall RELEASE="$RELEASE"
	makes install-dkms
	version=$(rnvme --version)
	[ -s "$ROOT/usr/src/rnvme-${version##* }/dkms.conf" ] || fail "no sources for DKMS: $OUTPUT"
	[ ! -e "$ROOT/lib/modules/$RELEASE/updates/rnvme.ko" ] || fail "modules that DKMS is to build"
	makes uninstall
	same "what is left" '' "$(find "$ROOT" -name '*rnvme*' ! -path '*/etc/rnvme*')"
	# Into this system, and nothing is done.
	run make --no-print-directory -n -C "$TREE" install
	same "command" "tools/boot/install  $RELEASE build/$RELEASE build/cargo/release/rnvme" "$OUTPUT"
	run make --no-print-directory -n -C "$TREE" PROGRAM=mine install install-dkms
	same "commands" "tools/boot/install  $RELEASE build/$RELEASE mine"$'\n'"tools/boot/install  --dkms mine" \
		"$OUTPUT"
}

# The sources that DKMS builds are all there, under the version that its configuration has.
installs_for_dkms() {
	local version sources named
	# Where the tests were installed there is nothing to build.
	[ -e /opt/rnvme/src/Kbuild ] || skip "there is no tree of sources"
	run /opt/rnvme/src/tools/boot/install --root "$ROOT" --dkms "$(command -v rnvme)"
	version=$(rnvme --version)
	sources=$ROOT/usr/src/rnvme-${version##* }
	has "$OUTPUT" "dkms install rnvme/${version##* }\$"
	named=$(bash -uc 'kernel_source_dir=/headers dkms_tree=/tree; . "$1"
		echo "$PACKAGE_NAME-$PACKAGE_VERSION ${BUILT_MODULE_NAME[*]} $PRE_BUILD"' - "$sources/dkms.conf")
	same "what it builds" "${sources##*/} rrdma rnvme probe.py /headers" "$named"
	run diff -r /opt/rnvme/src/rust "$sources/rust"
	run diff -r /opt/rnvme/src/drivers "$sources/drivers"
	mkdir -p "$SCRATCH/headers/include/config"
	echo CONFIG_RUST=y >"$SCRATCH/headers/.config"
	touch "$SCRATCH/headers/Makefile"
	echo "$RELEASE" >"$SCRATCH/headers/include/config/kernel.release"
	expect 1 "$sources/probe.py" "$SCRATCH/headers"
	has "$OUTPUT" 'rnvme cannot be built: no Rust metadata: libcore.rmeta'
	mkdir -p "$ROOT/lib/modules/$RELEASE"
	removed
	[ ! -e "$sources" ] || fail "the sources are left"
}

wrong_installs_are_refused() {
	expect 2 "$INSTALL" --dkms
	expect 2 "$INSTALL" --dkms --remove "$RELEASE"
	expect 2 "$INSTALL"
	expect 2 "$INSTALL" --root
	expect 2 "$INSTALL" --frob "$RELEASE"
	expect 2 "$INSTALL" --remove
	expect 1 "$INSTALL" --root "$SCRATCH/nowhere" "$RELEASE" "$MODULES" "$(command -v rnvme)"
	has "$ERRORS" 'there is no kernel'
	mkdir -p "$ROOT/lib/modules/$RELEASE"
	expect 1 "$INSTALL" --root "$ROOT" "$RELEASE" "$SCRATCH" "$(command -v rnvme)"
	has "$ERRORS" 'has to be built first'
	mkdir "$SCRATCH/bin"
	ln -s "$(command -v dirname)" "$SCRATCH/bin"
	expect 1 env PATH="$SCRATCH/bin" \
		"$INSTALL" --root "$ROOT" "$RELEASE" "$MODULES" "$(command -v rnvme)"
	has "$ERRORS" 'depmod .* is not in PATH'
	# As one that was built for newer libraries.
	printf '%s\n' '#!/bin/sh' 'echo it does not run >&2' 'exit 127' >"$SCRATCH/rnvme"
	chmod +x "$SCRATCH/rnvme"
	expect 1 "$INSTALL" --root "$ROOT" "$RELEASE" "$MODULES" "$SCRATCH/rnvme"
	has "$ERRORS" $'it does not run\n.*/rnvme does not run here'
	if [ -e /opt/rnvme/src/Kbuild ]; then
		expect 1 /opt/rnvme/src/tools/boot/install --root "$ROOT" --dkms "$SCRATCH/rnvme"
		has "$ERRORS" '/rnvme does not run here'
	fi
	same "what was put there" '' "$(find "$ROOT" -name '*.ko' -o -path "$ROOT/usr/*rnvme*")"
}

# By systemd, for which the units that it names are put beside it, and the program of systemd's own.
units_are_right() {
	installed
	cp -r /usr/lib/systemd/system/. "$ROOT/usr/lib/systemd/system/"
	install -D -t "$ROOT/usr/bin" "$(command -v systemctl)"
	run systemd-analyze verify --root "$ROOT" --man=no rnvme.service \
		rnvme-late.service rnvme-follow.service
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
	run rnvme disconnect-all
}

# Others are tried at the same time, so that one that does not answer holds up none.
one_that_fails_stops_no_other() {
	local began took
	connections "$CONNECTIONS" "-a $NOBODY4 -n $NQN --timeout 3" "-a $TARGET4 -n $NQN" \
		"-a $NOBODY4 -n $NQN -s 4421 --timeout 3"
	began=$(now)
	connect_all 1
	took=$(($(now) - began))
	has "$OUTPUT" "^rnvme[0-9]+: connected to $NQN at $TARGET4:4420\$"
	has "$ERRORS" "connect to $NOBODY4:4420: .*"$'\n'".*connect to $NOBODY4:4421: "
	has "$ERRORS" 'rnvme: connect-all: 2 of 3 connections failed$'
	[ $took -lt $((6000 * SLOWDOWN)) ] || fail "it took $took ms"
	run rnvme disconnect-all
}

wrong_file_connects_nothing() {
	connections "$CONNECTIONS" "-a $TARGET4 -n $NQN" "-a $TARGET4 -n $NQN -s frob"
	connect_all 2
	has "$ERRORS" "connections.conf:3: invalid value 'frob'"
	same devices '' "$(device_names)"
	expect 2 rnvme connect-all -f "$SCRATCH/none"
	has "$ERRORS" 'none: No such file or directory'
}

# connect_all STATUS: connect those of the file, with this status.
connect_all() {
	defer rnvme disconnect-all
	expect "$1" rnvme connect-all -f "$CONNECTIONS"
}

device_names() {
	run rnvme show -o json
	grep -o '"device":"rnvme[0-9]*"' <<<"$OUTPUT" || true
}

main setup \
	installs_and_is_taken_away \
	is_for_everybody \
	make_installs \
	installs_for_dkms \
	wrong_installs_are_refused \
	units_are_right \
	all_are_connected \
	one_that_fails_stops_no_other \
	wrong_file_connects_nothing
