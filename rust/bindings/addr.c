// SPDX-License-Identifier: GPL-2.0

#include <rdma/ib_addr.h>

__rrdma_helper void rrdma_helper_rdma_gid2ip(struct sockaddr *out, const union ib_gid *gid)
{
	rdma_gid2ip(out, gid);
}
