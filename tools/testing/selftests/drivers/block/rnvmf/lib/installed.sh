# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Installs the boot files in a directory of the test, and writes files of connections.

# The install program: in the installed selftests, or in the source tree of the test VM.
INSTALL=$HERE/boot/install
[ -e "$INSTALL" ] || INSTALL=/opt/rnvmf/src/tools/boot/install

# installed_at DIRECTORY: set the directory in which `installed` and `removed` work.
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

# connections FILE OPTIONS...: write a file of connections with one line for each OPTIONS, and the
# host NQN of the tests.
connections() {
	local file=$1 each
	shift
	echo '# the connections' >"$file"
	for each; do
		echo "$each -q $HOSTNQN" >>"$file"
	done
}
