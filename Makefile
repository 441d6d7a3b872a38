# SPDX-License-Identifier: GPL-2.0
#
# For people: `make help`. The kernel's build system reads Kbuild instead of this file.

# The stock kernel to build for and to run: KERNEL=7.3, or a release of `buildenv list`.
KERNEL ?=
# Selftests to run, by the names of their files, instead of all tests.
TESTS ?=
# A kernel build directory of your own, for `make modules` only.
KDIR ?=
# The kernel to install for, and the system that it is in if that is not this one.
RELEASE ?= $(shell uname -r)
DESTDIR ?=
# The program to install, if it is not the one that was built here.
PROGRAM ?= build/cargo/release/rnvmf
# For `make bench`: less of it.
QUICK ?=
LONG ?=

vm := tools/testing/vm
kernel-option := $(if $(KERNEL),--kernel $(KERNEL))
long-option := $(if $(LONG),--long)

# Those that repeat something.
long-tests := test_reset.sh test_recovery.sh test_hostile_random.sh test_loss.sh

.PHONY: help modules program build run shell test test-change test-long test-debug bench check install install-dkms uninstall clean
.DEFAULT_GOAL := help

help:
	@sed -n 's/^#: //p' $(firstword $(MAKEFILE_LIST))

#: make run                load the modules in a VM, connect to a target, run verified I/O
#: make test               all tests: in user space, and in VMs with the newest kernel
#: make test KERNEL=7.2    the same with another kernel
#: make test-change        all tests on the newest kernel; on 7.2 those of what differs there
#: make test-debug         all tests on a kernel that looks for mistakes while it runs
#: make test-long          the tests that repeat something, for much longer
#: make bench              what an I/O costs, in instructions, beside nvme-rdma; throughput
#: make bench QUICK=1      less of it, in some minutes
#: make check              format, lints, documents, compile-fail tests
#: make shell              a shell in a VM with the modules and the program
#: make modules            build rrdma.ko, rnvmf.ko and the samples for the stock kernel
#: make modules KDIR=DIR   build them for a kernel build directory of yours
#: make program            build the program rnvmf
#: make install            put what was built for the running kernel into this system
#: make install-dkms       the same, but for DKMS to build the modules
#: make uninstall          take it away again
#: make clean              remove what was built; the cache of kernels and tools stays
#:
#: KERNEL=7.3 chooses the stock kernel; without it the newest one is taken.
#: make test KERNEL="newest 7.2" runs the selftests on each,
#: TESTS="test_load.sh test_fs.sh" only these; LONG=1 lets those that repeat go on for longer.
#: make install RELEASE=7.3.4 DESTDIR=/mnt is for another kernel, and another system;
#: PROGRAM=tools/rnvmf/target/release/rnvmf installs a program that you built yourself.
#: `tools/testing/vm/buildenv list` names those on offer; `tools/testing/vm/run --help`
#: tells how to run any command in a VM.

modules:
	+@$(vm)/buildenv modules $(kernel-option) $(if $(KDIR),--kdir $(KDIR))

program:
	+@$(vm)/buildenv program

build:
	+@$(vm)/buildenv build $(kernel-option)

run: build
	@$(vm)/run $(kernel-option) -- /opt/rnvmf/src/$(vm)/demo.sh

shell: build
	@$(vm)/run $(kernel-option) --timeout 0 --interactive -- bash -l

test:
	+@$(vm)/suite $(foreach kernel,$(KERNEL),--kernel $(kernel)) $(long-option) $(TESTS)

# What .ci/run runs beside `make check`.
test-change:
	+@$(vm)/suite --second 7.2

test-long:
	+@$(vm)/suite $(foreach kernel,$(KERNEL),--kernel $(kernel)) --long $(or $(TESTS),$(long-tests))

test-debug:
	+@$(vm)/suite --kernel debug $(long-option) $(TESTS)

bench: build
	@tools/testing/bench/run $(kernel-option) $(if $(QUICK),--quick)

check:
	@tools/testing/check/run $(kernel-option)

install-command := tools/boot/install $(if $(DESTDIR),--root $(DESTDIR))

install:
	@$(install-command) $(RELEASE) build/$(RELEASE) $(PROGRAM)

install-dkms:
	@$(install-command) --dkms $(PROGRAM)

uninstall:
	@$(install-command) --remove $(RELEASE)

clean:
	rm -rf build
