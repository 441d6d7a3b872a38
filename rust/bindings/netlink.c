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

/*
 * genl_done() reads the family after its done(), which drops the reference that
 * keeps the family allocated; see start() in rust/netlink/callbacks.rs.
 */
const struct genl_family rrdma_detached_family = {
	.parallel_ops = true,
};

__rrdma_helper void rrdma_helper_genl_family_set_flags(struct genl_family *family)
{
	family->netnsok = true;
	family->parallel_ops = true;
}

__rrdma_helper struct net *rrdma_helper_genl_info_net(const struct genl_info *info)
{
	return genl_info_net(info);
}

__rrdma_helper struct sk_buff *rrdma_helper_genlmsg_new_default(gfp_t flags)
{
	return genlmsg_new(GENLMSG_DEFAULT_SIZE, flags);
}

__rrdma_helper void rrdma_helper_nlmsg_free(struct sk_buff *skb)
{
	nlmsg_free(skb);
}

__rrdma_helper void rrdma_helper_genlmsg_end(struct sk_buff *skb, void *hdr)
{
	genlmsg_end(skb, hdr);
}

__rrdma_helper void rrdma_helper_genlmsg_cancel(struct sk_buff *skb, void *hdr)
{
	genlmsg_cancel(skb, hdr);
}

__rrdma_helper int rrdma_helper_genlmsg_reply(struct sk_buff *skb, struct genl_info *info)
{
	return genlmsg_reply(skb, info);
}

__rrdma_helper int
rrdma_helper_genlmsg_multicast_netns(const struct genl_family *family, struct net *net,
				     struct sk_buff *skb, unsigned int group, gfp_t flags)
{
	return genlmsg_multicast_netns(family, net, skb, 0, group, flags);
}

__rrdma_helper int rrdma_helper_genl_has_listeners(const struct genl_family *family,
						   struct net *net, unsigned int group)
{
	return genl_has_listeners(family, net, group);
}

__rrdma_helper int rrdma_helper_genl_set_err(const struct genl_family *family, struct net *net,
					     unsigned int group, int code)
{
	return genl_set_err(family, net, 0, group, code);
}

__rrdma_helper void rrdma_helper_genl_dump_check_consistent(struct netlink_callback *cb, void *hdr)
{
	genl_dump_check_consistent(cb, hdr);
}

__rrdma_helper struct nlattr *rrdma_helper_nla_nest_start(struct sk_buff *skb, int attrtype)
{
	return nla_nest_start(skb, attrtype);
}

__rrdma_helper int rrdma_helper_nla_nest_end_safe(struct sk_buff *skb, struct nlattr *start)
{
	return nla_nest_end_safe(skb, start);
}

__rrdma_helper void rrdma_helper_nla_nest_cancel(struct sk_buff *skb, struct nlattr *start)
{
	nla_nest_cancel(skb, start);
}

/* Truncates a message that is too long, and logs the whole message. */
__rrdma_helper void rrdma_helper_nl_set_err_msg(struct netlink_ext_ack *extack,
						const char *msg, int len)
{
	NL_SET_ERR_MSG_FMT(extack, "%.*s", len, msg);
}

__rrdma_helper void rrdma_helper_nl_set_bad_attr(struct netlink_ext_ack *extack,
						 const struct nlattr *attr)
{
	NL_SET_BAD_ATTR(extack, attr);
}

__rrdma_helper void rrdma_helper_nl_set_err_attr_miss(struct netlink_ext_ack *extack,
						      const struct nlattr *nest, u16 type)
{
	NL_SET_ERR_ATTR_MISS(extack, nest, type);
}
