# SPDX-License-Identifier: GPL-2.0
#
# For people: `make help`. The kernel's build system reads Kbuild instead of this file.

# The stock kernel to build for and to run: KERNEL=7.3, or a release of `ground list`.
KERNEL ?=
# A kernel build directory of your own, for `make modules` only.
KDIR ?=

vm := tools/testing/vm
kernel-option := $(if $(KERNEL),--kernel $(KERNEL))

.PHONY: help modules program build run shell test check clean
.DEFAULT_GOAL := help

help:
	@sed -n 's/^#: //p' $(firstword $(MAKEFILE_LIST))

#: make run                load the modules in a VM, connect to a target, run verified I/O
#: make test               all tests: in user space, then in VMs
#: make check              format, lints, documents, compile-fail tests
#: make shell              a shell in a VM with the modules and the program
#: make modules            build rrdma.ko and rnvme.ko for the stock kernel
#: make modules KDIR=DIR   build them for a kernel build directory of yours
#: make program            build the program rnvme
#: make clean              remove what was built; the cache of kernels and tools stays
#:
#: KERNEL=7.3 chooses the stock kernel; without it the newest one is taken.
#: make test KERNEL="newest 7.2" runs the selftests on each.
#: `tools/testing/vm/ground list` names those on offer; `tools/testing/vm/run --help`
#: tells how to run any command in a VM.

modules:
	+@$(vm)/ground modules $(kernel-option) $(if $(KDIR),--kdir $(KDIR))

program:
	+@$(vm)/ground program

build:
	+@$(vm)/ground build $(kernel-option)

run: build
	@$(vm)/run $(kernel-option) -- /opt/rnvme/src/$(vm)/demo.sh

shell: build
	@$(vm)/run $(kernel-option) --timeout 0 --interactive -- bash -l

test:
	+@$(vm)/suite $(foreach kernel,$(KERNEL),--kernel $(kernel))

check:
	@tools/testing/check/run $(kernel-option)

clean:
	rm -rf build
