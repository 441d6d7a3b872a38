#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests the events that `rnvmf monitor` prints, and their order.

. "$(dirname "$0")/lib.sh"

setup() {
	modprobe rnvmf && network_single && backend_memory one 16 512 || return 1
	local one=$BACKEND
	backend_memory two 16 4096 && target_simple "$one" "$BACKEND"
}

# monitor [OPTION...]: start a monitor; its output goes to $SCRATCH/events. MONITOR is its PID.
monitor() {
	: >"$SCRATCH/events"
	rnvmf monitor "$@" >"$SCRATCH/events" 2>"$SCRATCH/monitor-errors" &
	MONITOR=$!
	defer end_process $MONITOR
	wait_until "$SOON" event_seen ready || fail "the monitor is not ready: $(<"$SCRATCH/monitor-errors")"
}

# event_seen PATTERN: whether a line of the monitor matches.
event_seen() {
	grep -qE "$1" "$SCRATCH/events"
}

# wait_event PATTERN: wait until a line of the monitor matches; fail after SOON seconds.
wait_event() {
	wait_until "$SOON" event_seen "$1" || fail "no event '$1' in: $(<"$SCRATCH/events")"
}

stop_monitor() {
	local status=0
	kill "-$1" "$MONITOR"
	wait "$MONITOR" || status=$?
	same "status of the monitor after SIG$1" 0 $status
}

# kinds: print each event with its object and state, without repetitions.
kinds() {
	sed -E 's/^\{"schema":1,"event":"([^"]*)"(,"controller":\{"device":"([^"]*)","id":[0-9]+,"state":"([^"]*)"|,"namespace":\{"name":"([^"]*)")?.*/\1 \3\5 \4/' \
		"$SCRATCH/events" | sed 's/ *$//' | uniq
}

connect_and_disconnect() {
	local wanted
	monitor -o json
	connect "$TARGET4"
	disconnect "$CTRL"
	wait_event '"event":"ctrl-del"'
	stop_monitor TERM
	wanted="ready
ctrl-add $CTRL new
ctrl-change $CTRL connecting
ns-add ${CTRL}n1
ns-add ${CTRL}n2
ctrl-change $CTRL live
ctrl-change $CTRL deleting
ns-del ${CTRL}n1
ns-del ${CTRL}n2
ctrl-del $CTRL deleting"
	same events "$wanted" "$(kinds)"
}

# Every line is a JSON object.
lines_are_json() {
	monitor -o json
	connect "$TARGET4"
	disconnect "$CTRL"
	wait_event '"event":"ctrl-del"'
	run python3 -c '
import json, sys
lines = [json.loads(line) for line in sys.stdin]
assert all(line["schema"] == 1 for line in lines), lines
live = [line for line in lines if line.get("controller", {}).get("state") == "live"]
assert live[0]["controller"]["subsysnqn"] == sys.argv[1], live
sizes = [line["namespace"]["size"] for line in lines if line["event"] == "ns-add"]
assert sizes == [16 << 20, 16 << 20], sizes' "$NQN" <"$SCRATCH/events"
}

failure_has_its_reason() {
	monitor -o json
	expect 1 rnvmf connect -a "$TARGET4" -n "$NQN.wrong"
	wait_event '"event":"ctrl-del"'
	has "$(<"$SCRATCH/events")" \
		'"event":"ctrl-change","controller":[^}]*"state":"dead",[^}]*"error":\{"stage":"fabrics-connect"'
	has "$(<"$SCRATCH/events")" 'no such subsystem'
}

lines_for_people() {
	monitor
	connect "$TARGET4"
	wait_event "^ctrl-add $CTRL new $TARGET4:4420 $NQN\$"
	wait_event "^ns-add ${CTRL}n1 nsid 1 16.78 MB\$"
	wait_event "^ctrl-change $CTRL live $TARGET4:4420 $NQN\$"
	disconnect "$CTRL"
	wait_event "^ctrl-del $CTRL "
	stop_monitor INT
}

# A monitor that reads too slowly gets an event for the lost ones, and then the current objects. The
# kernel does not wait for it.
slow_reader() {
	local room added times=8
	room=$(sysctl -n net.core.rmem_default)
	defer sysctl -q "net.core.rmem_default=$room"
	# A buffer for few events, for the monitor's sockets only.
	run sysctl -q net.core.rmem_default=4608
	monitor -o json
	run sysctl -q "net.core.rmem_default=$room"
	kill -STOP "$MONITOR"
	while [ $times -gt 0 ]; do
		times=$((times - 1))
		connect "$TARGET4"
		[ $times = 0 ] || disconnect "$CTRL"
	done
	kill -CONT "$MONITOR"
	wait_event '^\{"schema":1,"event":"lost"\}$'
	wait_event "\"event\":\"ns\",\"namespace\":\{\"name\":\"${CTRL}n2\""
	same "the events from lost on" "lost
ctrl $CTRL live
ns ${CTRL}n1
ns ${CTRL}n2" "$(kinds | sed -n '/lost/,$p')"
	added=$(grep -c '"event":"ctrl-add"' "$SCRATCH/events")
	[ "$added" -lt 8 ] || fail "no event was lost: $(kinds)"
	# From here on no event is lost.
	disconnect "$CTRL"
	wait_event '"event":"ctrl-del"'
	same "the last events" "ctrl-change $CTRL deleting
ns-del ${CTRL}n1
ns-del ${CTRL}n2
ctrl-del $CTRL deleting" "$(kinds | tail -n 4)"
	stop_monitor TERM
}

# Unloading the module removes the controllers first, then the monitor ends.
unloading_is_told() {
	local status=0
	monitor -o json
	connect "$TARGET4"
	run rmmod rnvmf
	defer modprobe rnvmf
	wait_event "\"event\":\"ns-del\",\"namespace\":\\{\"name\":\"${CTRL}n1\""
	wait_event "\"event\":\"ctrl-del\",\"controller\":\\{\"device\":\"$CTRL\""
	wait_until "$SOON" process_ended "$MONITOR" || fail "the monitor did not exit"
	wait "$MONITOR" || status=$?
	same "status of the monitor" 7 $status
	has "$(<"$SCRATCH/monitor-errors")" '"status":7,"message":"the rnvmf module was unloaded"'
}

main setup \
	connect_and_disconnect \
	lines_are_json \
	failure_has_its_reason \
	lines_for_people \
	slow_reader \
	unloading_is_told
