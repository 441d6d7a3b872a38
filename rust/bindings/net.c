// SPDX-License-Identifier: GPL-2.0

#include <linux/completion.h>
#include <linux/net.h>
#include <linux/nsproxy.h>
#include <linux/sched.h>
#include <net/net_namespace.h>
#include <net/sock.h>

/*
 * NULL for an exiting process that has left its namespaces: it closes its last
 * files after that.
 */
__rrdma_helper struct net *rrdma_helper_current_net(void)
{
	return current->nsproxy ? current->nsproxy->net_ns : NULL;
}

/*
 * A kernel socket that holds its network namespace like a socket of user space,
 * so that a lost FIN is retransmitted after it is released.
 */
__rrdma_helper int rrdma_helper_tcp_socket(struct net *net, int family, struct socket **sock)
{
	int err = sock_create_kern(net, family, SOCK_STREAM, IPPROTO_TCP, sock);

	if (!err)
		sk_net_refcnt_upgrade((*sock)->sk);
	return err;
}

__rrdma_helper void rrdma_helper_socket_set_reuseaddr(struct socket *sock)
{
	sock_set_reuseaddr(sock->sk);
}

__rrdma_helper int rrdma_helper_socket_bind(struct socket *sock,
					    struct __kernel_sockaddr_storage *address)
{
	return kernel_bind(sock, (struct sockaddr_unsized *)address, sizeof(*address));
}

__rrdma_helper int rrdma_helper_socket_try_connect(struct socket *sock,
						   struct __kernel_sockaddr_storage *address)
{
	return kernel_connect(sock, (struct sockaddr_unsized *)address, sizeof(*address),
			      O_NONBLOCK);
}

__rrdma_helper int rrdma_helper_socket_try_accept(struct socket *sock, struct socket **accepted)
{
	return kernel_accept(sock, accepted, O_NONBLOCK);
}

__rrdma_helper int rrdma_helper_socket_try_send(struct socket *sock, void *data, size_t length)
{
	struct msghdr msg = { .msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL };
	struct kvec vec = { .iov_base = data, .iov_len = length };

	return kernel_sendmsg(sock, &msg, &vec, 1, length);
}

__rrdma_helper int rrdma_helper_socket_try_receive(struct socket *sock, void *data, size_t length)
{
	struct msghdr msg = {};
	struct kvec vec = { .iov_base = data, .iov_len = length };

	return kernel_recvmsg(sock, &msg, &vec, 1, length, MSG_DONTWAIT);
}

/* Original callbacks of a socket. */
struct rrdma_socket_callbacks {
	void (*data_ready)(struct sock *sk);
	void (*state_change)(struct sock *sk);
	void (*write_space)(struct sock *sk);
};

static void rrdma_socket_changed(struct sock *sk)
{
	struct completion *wake;

	read_lock_bh(&sk->sk_callback_lock);
	wake = __locked_read_sk_user_data_with_flags(sk, 0);
	if (wake)
		complete(wake);
	read_unlock_bh(&sk->sk_callback_lock);
}

/*
 * Make a socket complete `wake` when its state changes, and return its original
 * callbacks. An accepted socket inherits the callbacks of its listener, but not
 * sk_user_data.
 */
__rrdma_helper struct rrdma_socket_callbacks
rrdma_helper_socket_complete_on_change(struct socket *sock, struct completion *wake)
{
	struct sock *sk = sock->sk;
	struct rrdma_socket_callbacks old;

	write_lock_bh(&sk->sk_callback_lock);
	old.data_ready = sk->sk_data_ready;
	old.state_change = sk->sk_state_change;
	old.write_space = sk->sk_write_space;
	sk->sk_data_ready = rrdma_socket_changed;
	sk->sk_state_change = rrdma_socket_changed;
	sk->sk_write_space = rrdma_socket_changed;
	__rcu_assign_sk_user_data_with_flags(sk, wake, SK_USER_DATA_NOCOPY);
	write_unlock_bh(&sk->sk_callback_lock);
	return old;
}

/* The socket does not use the completion after this returns. */
__rrdma_helper void
rrdma_helper_socket_restore_callbacks(struct socket *sock, const struct rrdma_socket_callbacks *old)
{
	struct sock *sk = sock->sk;

	write_lock_bh(&sk->sk_callback_lock);
	sk->sk_data_ready = old->data_ready;
	sk->sk_state_change = old->state_change;
	sk->sk_write_space = old->write_space;
	rcu_assign_sk_user_data(sk, NULL);
	write_unlock_bh(&sk->sk_callback_lock);
}
