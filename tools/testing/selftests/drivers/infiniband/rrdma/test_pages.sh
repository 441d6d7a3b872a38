#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Runs the commands on the pages of the samples as they are written: the literal block after each comment
# `.. run: as written`, after those that index.rst has for all of them, `.. run: once` and `.. run: before each`.

. "$(dirname "$0")/lib.sh"

PAGES=/opt/rnvmf/src/Documentation/samples

requirements() {
	need_sample handshake ibv_devinfo ibv_rc_pingpong rping udaddy genl mkfs.ext4 python3 && {
		[ -e "$PAGES/index.rst" ] || {
			ktap_skip_all "no source tree in /opt/rnvmf/src"
			return 1
		}
	}
}

# block PAGE MARKER: print the literal block after `.. run: MARKER`.
block() {
	awk -v marker=".. run: $2" '
		$0 == marker { marked = 1 }
		inside && /^[^ \t]/ { exit }
		inside
		marked && /::$/ { inside = 1 }' "$PAGES/$1.rst" |
		awk 'NR == 1 { while (getline > 0 && !/[^ \t]/); match($0, /^[ \t]*/); indent = RLENGTH }
			{ print substr($0, indent + 1) }'
}

setup() {
	BEFORE_EACH=$SCRATCH/each
	block index once >"$SCRATCH/once"
	block index "before each" >"$BEFORE_EACH"
	[ -s "$SCRATCH/once" ] && [ -s "$BEFORE_EACH" ] && [ ${#PAGES_WITH_COMMANDS[@]} -gt 10 ] || return 1
	defer the_devices_are_gone
	bash -ex "$SCRATCH/once" >"$SCRATCH/made" 2>&1 || {
		note "$(<"$SCRATCH/made")"
		return 1
	}
	clear_log
}

the_devices_are_gone() {
	local device
	for device in rxe0 rxe1; do
		[ ! -e "/sys/class/infiniband/$device" ] || rdma link delete "$device" || true
	done
	interface_delete rrdma0
	netns_delete peer
}

# no_sample_stays: unload what a page that failed has left, so that the next one does not fail, too.
no_sample_stays() {
	local module
	for module in /sys/module/rrdma_*; do
		[ ! -e "$module" ] || try modprobe -r "${module##*/}"
	done
}

# runs PAGE: run the commands of a page, each of which must succeed.
runs() {
	# What a stale key of the sample causes on purpose.
	explain 'rxe[01]: qp#[0-9]+ [a-z_]+: non-flush error status'
	explain '(EXT4-fs|infiniband) |d0|rxe5|rxe7'
	defer no_sample_stays
	{
		cat "$BEFORE_EACH"
		block "$1" "as written"
	} >"$SCRATCH/page"
	bash -n "$SCRATCH/page"
	COMMAND_SECONDS=$((120 * SLOWDOWN)) run bash -ex "$SCRATCH/page"
}

mapfile -t PAGES_WITH_COMMANDS < <(grep -lx '\.\. run: as written' "$PAGES"/*.rst | sed 's,.*/,,; s/\.rst$//')
for page in "${PAGES_WITH_COMMANDS[@]}"; do
	eval "page_$page() { runs $page; }"
done

main setup "${PAGES_WITH_COMMANDS[@]/#/page_}"
