# SPDX-License-Identifier: GPL-2.0
#
# `make help` lists the targets. The kernel's build system reads Kbuild instead of this file.

# Kernel to build for and to boot: 7.3, a release of `buildenv list`, newest or debug.
KERNEL ?=
# Selftests to run, by file name; if empty, all tests.
TESTS ?=
# Kernel build directory to build for; used by `make modules` only. LLVM=1 as for that kernel.
KDIR ?=
# Root directory of the system to install into; if empty, this system.
DESTDIR ?=
# What to install comes from the command line only: `=` overrides the environment, which may have a
# TARGET for something else. Kernel release to install for.
RELEASE = $(shell uname -r)
# Program to install.
PROGRAM = build/cargo/release/rnvmf
# If set, nvme_rdma_rust.ko is installed, too, in place of nvme-rdma.
TRANSPORT =
# If set, nvmet_rdma_rust.ko is installed, too, in place of nvmet-rdma.
TARGET =
# Crate whose documentation `make doc` writes.
CRATE ?= rrdma
# If set, `make bench` measures less.
QUICK ?=
# If set, the selftests that repeat something run longer.
LONG ?=
# How the CPUs of a VM take turns in the selftests; if empty, at random.
SEED ?=
# Minutes after which `make test-debug` begins no selftest.
MINUTES ?= 120
# If set, `make test-debug` prints what has passed, and runs nothing.
STATUS ?=

vm := tools/testing/vm
kernel-option := $(if $(KERNEL),--kernel $(KERNEL))
long-option := $(if $(LONG),--long)
suite = $(vm)/suite $(if $(SEED),--seed $(SEED)) $(long-option)
kernel-options = $(foreach kernel,$(KERNEL),--kernel $(kernel))

# The selftests that repeat something.
long-tests := test_reset.sh test_recovery.sh test_hostile_random.sh test_many_hosts.sh test_loss.sh

.PHONY: help modules program build doc run shell test test-change test-races test-long test-debug bench check install install-dkms uninstall clean
.DEFAULT_GOAL := help

help:
	@sed -n 's/^#: \{0,1\}//p' $(firstword $(MAKEFILE_LIST))

#: make run                load the modules in a VM, connect to a target, run verified I/O
#: make test               run all tests: cargo tests, and selftests in VMs
#: make test-change        run what a change must pass: most tests on the newest kernel, and on
#:                         7.2 the selftests of what differs there
#: make test-races         run all selftests on free-running CPUs instead of counted time
#: make test-debug         run all tests on a kernel with KASAN, lockdep, kmemleak and others, except
#:                         the selftests that have passed with the same files before
#: make test-debug STATUS=1  print which selftests have passed on which commit
#: make test-long          run the selftests that repeat something, with LONG=1
#: make bench              compare rnvmf with nvme-rdma: instructions per I/O, throughput
#: make bench QUICK=1      compare instructions only, in some minutes
#: make check              check format, lints, documents, compile-fail tests; fuzz for seconds
#: make shell              start a shell in a VM with the modules and the program
#: make modules            build the modules and the samples for a stock kernel
#: make modules KDIR=DIR   build them for the kernel build directory DIR; with LLVM=1 if clang
#:                         built that kernel
#: make program            build the program rnvmf
#: make doc                write the reference of the crate rrdma (rustdoc), and print its path
#: make doc CRATE=C        write that of another crate, such as nvmet
#: make install            install modules, program, units and udev rules in this system
#: make install-dkms       install the sources for DKMS instead of the modules
#: make uninstall          remove what `make install` or `make install-dkms` installed
#: make clean              remove build/; the cache of kernels and tools is kept
#:
#: KERNEL=V        stock kernel, such as 7.3, or debug (default: newest); `make test` accepts
#:                 several: KERNEL="newest 7.2". `tools/testing/vm/buildenv list` lists them
#: TESTS="T..."    selftests to run, such as "test_load.sh test_fs.sh" (default: all tests)
#: SEED=N          how the CPUs of a VM take turns in the selftests, 0 to 3 (default: random)
#: MINUTES=M       `make test-debug` begins no selftest after M minutes (default: 120)
#: LONG=1          let the selftests that repeat something run longer; time limits times 12
#: RELEASE=R       kernel release to install for (default: `uname -r`), or to uninstall (default: all)
#: DESTDIR=DIR     root directory of the system to install into (default: /)
#: TRANSPORT=1     install nvme_rdma_rust, too, and have it loaded in place of nvme-rdma
#: TARGET=1        install nvmet_rdma_rust, too, and have it loaded in place of nvmet-rdma
#: PROGRAM=FILE    program to install, such as tools/rnvmf/target/release/rnvmf
#:                 (default: build/cargo/release/rnvmf)
#:
#: `tools/testing/vm/run --help` describes how to run a command in a VM.

modules:
	+@$(vm)/buildenv modules $(kernel-option) $(if $(KDIR),--kdir '$(KDIR)')

program:
	+@$(vm)/buildenv program

build:
	+@$(vm)/buildenv build $(kernel-option)

doc:
	@tools/testing/check/rustdoc $(kernel-option) --crate $(CRATE)

run: build
	@$(vm)/run $(kernel-option) -- /opt/rnvmf/src/$(vm)/demo.sh

shell: build
	@$(vm)/run $(kernel-option) --timeout 0 --interactive -- bash -l

test:
	+@$(suite) $(kernel-options) $(TESTS)

# .ci/run runs this and `make check`.
test-change:
	+@$(suite) --second 7.2

test-races:
	+@$(suite) $(kernel-options) --races $(TESTS)

test-long:
	+@$(suite) $(kernel-options) --long $(or $(TESTS),$(long-tests))

test-debug:
	+@$(suite) --kernel debug --keep --minutes $(MINUTES) $(if $(STATUS),--status) $(TESTS)

bench: build
	@tools/testing/bench/run $(kernel-option) $(if $(QUICK),--quick)

check:
	@tools/testing/check/run $(kernel-option)

install-command = tools/boot/install $(if $(DESTDIR),--root $(DESTDIR))
replacements = $(if $(TRANSPORT), --transport)$(if $(TARGET), --target)

install:
	@$(install-command)$(replacements) $(RELEASE) build/$(RELEASE) $(PROGRAM)

install-dkms:
	@$(install-command)$(replacements) --dkms $(PROGRAM)

# The modules of all kernels, unless the command line names one.
uninstall:
	@$(install-command) --remove$(if $(filter command,$(origin RELEASE)), $(RELEASE))

clean:
	rm -rf build
