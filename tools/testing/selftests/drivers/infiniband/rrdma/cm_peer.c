// SPDX-License-Identifier: GPL-2.0
/*
 * A peer that knows the messages of the connection manager and nothing else: it has
 * no queue pair.
 *
 *	cm_peer ADDRESS PORT COUNT ANSWER
 *
 * Asks COUNT times at once for a connection and prints a line for each answer, then
 * "answered". What it says when it is accepted is its ANSWER: "nothing", and it stays;
 * "reject"; "vanish" ends it there and then, as a crash does. With "hurry" it ends so
 * without having heard anything, once all is asked.
 */
#include <err.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

/* As patient as others. */
#define RESOLVE_MS	5000

static struct rdma_event_channel *channel;

/* The next event, to be acknowledged. */
static struct rdma_cm_event *hear(void)
{
	struct rdma_cm_event *event;

	if (rdma_get_cm_event(channel, &event))
		err(1, "event");
	return event;
}

/* Waits for the end of a step of the one id that takes one. */
static void step(int ret, enum rdma_cm_event_type wanted)
{
	struct rdma_cm_event *event;

	if (ret)
		err(1, "before %s", rdma_event_str(wanted));
	event = hear();
	if (event->event != wanted)
		errx(1, "%s: %d", rdma_event_str(event->event), event->status);
	rdma_ack_cm_event(event);
}

static struct rdma_cm_id *resolved(struct rdma_addrinfo *to)
{
	struct rdma_cm_id *id;

	if (rdma_create_id(channel, &id, NULL, RDMA_PS_TCP))
		err(1, "id");
	step(rdma_resolve_addr(id, NULL, to->ai_dst_addr, RESOLVE_MS),
	     RDMA_CM_EVENT_ADDR_RESOLVED);
	step(rdma_resolve_route(id, RESOLVE_MS), RDMA_CM_EVENT_ROUTE_RESOLVED);
	return id;
}

static void answer(struct rdma_cm_event *event, const char *how)
{
	if (event->event != RDMA_CM_EVENT_CONNECT_RESPONSE) {
		printf("%s: %d\n", rdma_event_str(event->event), event->status);
		return;
	}
	printf("accepted\n");
	if (!strcmp(how, "vanish"))
		raise(SIGKILL);
	if (!strcmp(how, "reject") && rdma_reject(event->id, "no", 2))
		err(1, "reject");
}

int main(int argc, char **argv)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP }, *to;
	struct rdma_conn_param param = { .retry_count = 7, .rnr_retry_count = 7 };
	struct rdma_cm_event *event;
	struct rdma_cm_id **ids;
	int count;

	if (argc != 5)
		errx(2, "usage: cm_peer ADDRESS PORT COUNT ANSWER");
	setvbuf(stdout, NULL, _IOLBF, 0);
	count = atoi(argv[3]);
	channel = rdma_create_event_channel();
	ids = calloc(count, sizeof(*ids));
	if (!channel || !ids)
		err(1, "start");
	if (rdma_getaddrinfo(argv[1], argv[2], &hints, &to))
		err(1, "address");
	for (int i = 0; i < count; i++)
		ids[i] = resolved(to);
	for (int i = 0; i < count; i++) {
		/* Nobody's, but of no two connections: it is remembered for a while. */
		param.qp_num = (getpid() * 256 + i) & 0xffffff;
		if (rdma_connect(ids[i], &param))
			err(1, "connect");
	}
	printf("asked\n");
	if (!strcmp(argv[4], "hurry"))
		raise(SIGKILL);
	for (int i = 0; i < count; i++) {
		event = hear();
		answer(event, argv[4]);
		rdma_ack_cm_event(event);
	}
	printf("answered\n");
	if (!strcmp(argv[4], "nothing"))
		pause();
	return 0;
}
