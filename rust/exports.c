// SPDX-License-Identifier: GPL-2.0
/*
 * Exports the symbols of the rrdma crate to its users, as rust/exports.c of the
 * kernel does for the kernel crate. Kbuild generates the list.
 */

#include <linux/export.h>

#define EXPORT_SYMBOL_RUST_GPL(sym) extern int sym; EXPORT_SYMBOL_GPL(sym)

#include "exports_generated.h"
