/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What bindgen reads: the kernel headers behind the rrdma crate that the
 * kernel crate's own bindings leave out (RDMA, generic netlink), and those of
 * the block layer and workqueues, of which the functions are shared and only
 * constants are missing.
 */

#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/completion.h>
#include <linux/inet.h>
#include <linux/scatterlist.h>
#include <linux/workqueue.h>
#include <net/genetlink.h>
#include <net/net_namespace.h>
#include <net/netlink.h>
#include <rdma/ib_cm.h>
#include <rdma/ib_verbs.h>
#include <rdma/mr_pool.h>
#include <rdma/rdma_cm.h>

#include "helpers.c"
