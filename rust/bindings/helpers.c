// SPDX-License-Identifier: GPL-2.0
/*
 * C that Rust cannot call: static inlines and macros, one file a header.
 * A helper does what its name says and nothing else; the prefix keeps clear of
 * the kernel's own rust_helper_ symbols. bindgen reads this file too, and
 * skips inline functions, hence the marker.
 */

#define __rrdma_helper

#include "addr.c"
#include "blk.c"
#include "fs.c"
#include "log.c"
#include "mm.c"
#include "module.c"
#include "net.c"
#include "netlink.c"
#include "sync.c"
#include "verbs.c"
