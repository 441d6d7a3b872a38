// SPDX-License-Identifier: GPL-2.0
/*
 * Correct connections of hostile_host, on which it then sends broken commands.
 */
#include <err.h>

#include "host.h"

void request_make(struct request *request, unsigned int qid)
{
	*request = (struct request) { .length = 32, .responder_resources = 16,
				      .receives = WINDOW, .retry_count = 3 };
	put(request->data + 2, qid, 2);
	put(request->data + 4, 32, 2);
	put(request->data + 6, 31, 2);
}

bool session_sends(struct queue *queue, const char *name, unsigned int qid)
{
	struct response response;
	struct command command;

	if (!command_make(name, &command))
		errx(2, "no command %s", name);
	if (qid)
		put(command.capsule.sqe + 42, qid, 2);
	else if (!strcmp(name, "connect"))
		put(command.capsule.sqe + 48, keep_alive, 4);
	put(command.capsule.sqe + 2, 0xfff0, 2);
	if (!queue_send(queue, &command.capsule) ||
	    queue_wait(queue, patience, &response) != RESPONSE || response.status)
		return false;
	if (!strcmp(name, "connect"))
		controller = response.result & 0xffff;
	return true;
}

static struct queue *open_queue(unsigned int qid)
{
	struct verdict verdict;
	struct request request;
	struct queue *queue;

	request_make(&request, qid);
	queue = queue_open(&request, &verdict);
	if (queue && !session_sends(queue, "connect", qid)) {
		queue_close(queue);
		queue = NULL;
	}
	return queue;
}

struct queue *session_admin(void)
{
	struct queue *queue;

	controller = 0xffff;
	queue = open_queue(0);
	if (queue && !session_sends(queue, "set", 0)) {
		queue_close(queue);
		queue = NULL;
	}
	return queue;
}

struct queue *session_io(unsigned int qid)
{
	return open_queue(qid);
}
