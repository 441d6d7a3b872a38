# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# An installed system, in a directory of the test's own, and a file of connections.

# Installed with the tests, or where our VM has the sources.
INSTALL=$HERE/boot/install
[ -e "$INSTALL" ] || INSTALL=/opt/rnvmf/src/tools/boot/install

# installed_at DIRECTORY: what `installed` and `removed` are about.
installed_at() {
	ROOT=$1
	RELEASE=$(uname -r)
	MODULES=$(dirname "$(modinfo -n rnvmf)")
}

installed() {
	mkdir -p "$ROOT/lib/modules/$RELEASE"
	run "$INSTALL" --root "$ROOT" "$RELEASE" "$MODULES" "$(command -v rnvmf)"
}

removed() {
	run "$INSTALL" --root "$ROOT" --remove "$RELEASE"
}

# connections FILE OPTIONS...: a file with a line of these each, of our host.
connections() {
	local file=$1 each
	shift
	echo '# the connections' >"$file"
	for each; do
		echo "$each -q $HOSTNQN" >>"$file"
	done
}
