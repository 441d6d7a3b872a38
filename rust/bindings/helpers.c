// SPDX-License-Identifier: GPL-2.0
/*
 * Wrappers of static inline functions and macros, which Rust cannot call, with
 * one file per area. The prefix differs from the kernel's rust_helper_, to
 * avoid duplicate symbols. bindgen reads this file, too. It skips inline
 * functions, so helpers have a marker instead of "static inline".
 */

#define __rrdma_helper

#include "blk.c"
#include "misc.c"
#include "mm.c"
#include "net.c"
#include "netlink.c"
#include "sync.c"
#include "verbs.c"
