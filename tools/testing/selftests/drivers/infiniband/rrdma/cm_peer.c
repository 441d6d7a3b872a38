// SPDX-License-Identifier: GPL-2.0
/*
 * A peer that exchanges messages of the connection manager without a queue pair.
 *
 *	cm_peer ADDRESS PORT COUNT ANSWER
 *
 * Sends COUNT connection requests at once, prints a line for each reply, and then
 * "answered". ANSWER is its reaction to an acceptance:
 *
 *	nothing		send no reply, and keep running
 *	reject		reject the connection
 *	vanish		end by SIGKILL, like a crash
 *	hurry		end by SIGKILL after the last request, before any reply
 */
#include <err.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

/* Time-out of address and route resolution. */
#define RESOLVE_MS	5000

static struct rdma_event_channel *channel;

/* Returns the next event; the caller acknowledges it. */
static struct rdma_cm_event *hear(void)
{
	struct rdma_cm_event *event;

	if (rdma_get_cm_event(channel, &event))
		err(1, "event");
	return event;
}

/* Waits for the event that ends a step. Only one ID has a step in progress. */
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
		/* No such queue pair exists. The CM keeps the number for a while, so it is unique. */
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
