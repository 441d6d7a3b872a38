// SPDX-License-Identifier: GPL-2.0

#include <net/genetlink.h>
#include <net/net_namespace.h>

__rrdma_helper struct net *rrdma_helper_get_net(struct net *net)
{
	return get_net(net);
}

__rrdma_helper void rrdma_helper_put_net(struct net *net)
{
	put_net(net);
}

__rrdma_helper unsigned int rrdma_helper_net_inum(const struct net *net)
{
	return net->ns.inum;
}
