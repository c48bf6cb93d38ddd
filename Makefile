# Every target may be run first, in any order, twice, or beside another. All that they write lies
# under build/ and .venv/; Debian packages that are missing are installed by tools/setup.sh.
SHELL := /bin/bash
.DEFAULT_GOAL := help

# The system's tools, whatever else (pyenv, conda, pip) puts on PATH.
CMAKE := /usr/bin/cmake
CTEST := /usr/bin/ctest
PYTHON := .venv/bin/python
JOBS ?= $(shell nproc)
SEED ?= 1
FUZZ_SECONDS ?= 60
PREFIX ?= /usr/local

export CCACHE_BASEDIR := $(CURDIR)
export CCACHE_NOHASHDIR := 1
# The user's ccache where there is one, else one of our own under build/.
ifeq ($(CCACHE_DIR)$(wildcard $(HOME)/.cache/ccache)$(wildcard $(HOME)/.ccache),)
export CCACHE_DIR := $(CURDIR)/build/ccache
endif
export CMAKE_BUILD_PARALLEL_LEVEL := $(JOBS)
export PYTHONDONTWRITEBYTECODE := 1
# Also where the build was configured before they were there.
export FOREBAY_WEED := $(CURDIR)/.venv/bin/weed
export FOREBAY_MINISTACK := $(CURDIR)/.venv/bin/ministack
export FOREBAY_FAULTS := $(CURDIR)/.venv/bin/forebay-faults

STAGE := tools/stage.sh
CTEST_ARGS := --no-tests=error --output-on-failure -j2 --timeout 600
CTEST_SHOW := -s 'tests passed|tests failed'

.PHONY: help build test demo check bench frameworks asan tsan fuzz sim fix install clean
.PHONY: release setup-build setup-test setup-demo setup-check setup-bench setup-frameworks layers

help:  ## this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 18

build: release  ## build; leaves .venv/bin/forebay and a .venv/bin/python that imports forebay

release:
	@tools/setup.sh build
	@$(STAGE) -l release build tools/build.sh release forebay_product
	@tools/link_venv.sh

setup-build:
	@tools/setup.sh build
setup-test:
	@tools/setup.sh test
setup-demo:
	@tools/setup.sh demo
setup-check:
	@tools/setup.sh check
setup-bench:
	@tools/setup.sh build bench
setup-frameworks:
	@tools/setup.sh build frameworks

test: setup-test  ## build and run every test: C++, Python, layers, sanitizers
	@$(MAKE) --no-print-directory layers
	@$(STAGE) -l release build tools/build.sh release
	@tools/link_venv.sh
	@$(STAGE) -l ctest $(CTEST_SHOW) ctest $(CTEST) --test-dir build/release $(CTEST_ARGS)
	@$(MAKE) --no-print-directory asan
	@$(MAKE) --no-print-directory tsan
	@if [ -d python/tests ]; then $(STAGE) -s ' (passed|failed|error)' pytest $(PYTHON) -m pytest -q \
	  -p no:cacheprovider --timeout 600 python/tests; fi

demo: setup-demo  ## the main job on an embedded S3 server, with its report in build/demo/
	@$(MAKE) --no-print-directory release
	@.venv/bin/forebay demo --output build/demo

layers:
	@$(STAGE) layers /usr/bin/python3 tools/check_layers.py
	@$(STAGE) layers-test /usr/bin/python3 tools/check_layers_test.py
	@/usr/bin/python3 tools/draw_layers.py --check

check: setup-check  ## layers, formatting, public headers, clang's thread safety, clang-tidy
	@$(MAKE) --no-print-directory layers
	@$(STAGE) format tools/format.sh --check
	@$(STAGE) headers tools/headers.sh
	@$(STAGE) -l clang clang tools/build.sh clang
	@$(STAGE) tidy tools/tidy.sh

asan: setup-test  ## C++ tests under ASan and UBSan
	@$(STAGE) -l asan asan-build tools/build.sh asan forebay_asan_tests
	@$(STAGE) -l asan $(CTEST_SHOW) asan $(CTEST) --test-dir build/asan $(CTEST_ARGS) -L asan

tsan: setup-test  ## the C++ tests with threads under TSan
	@$(STAGE) -l tsan tsan-build tools/build.sh tsan forebay_tsan_tests
	@$(STAGE) -l tsan $(CTEST_SHOW) tsan $(CTEST) --test-dir build/tsan $(CTEST_ARGS) -L tsan

sim: setup-build  ## the simulated cluster on SEED=A or SEED=A:B (half-open)
	@$(STAGE) -l release build tools/build.sh release sim_test
	@FOREBAY_SIM_SEEDS=$(SEED) build/release/sim/sim_test

bench: setup-bench  ## build and run the benchmarks (a quiet machine is yours to see to)
	@$(STAGE) -l bench build tools/build.sh bench forebay_benchmarks
	@tools/bench.sh

frameworks: setup-frameworks  ## tests under Lightning, Accelerate, Trainer, torchrun, JAX, TensorFlow (GBs)
	@$(STAGE) -l release build tools/build.sh release forebay_product
	@$(STAGE) -s ' (passed|failed|error)' frameworks env PYTHONPATH=build/release/python \
	  FOREBAY_CLI=build/release/cli/forebay FOREBAY_FRAMEWORKS=1 .venv-frameworks/bin/python -m pytest -q -p no:cacheprovider \
	  --timeout 300 python/tests/frameworks python/tests/test_torch.py python/tests/test_agreement.py

fuzz: setup-check  ## every parser of outside bytes under libFuzzer, FUZZ_SECONDS=60 each
	@$(STAGE) -l fuzz build tools/build.sh fuzz forebay_fuzz
	@tools/fuzz.sh $(FUZZ_SECONDS)

install: release  ## programs and the media library into PREFIX=/usr/local
	@$(STAGE) install $(CMAKE) --install build/release --prefix '$(PREFIX)'

fix: setup-check  ## format every C++ file
	@tools/format.sh

clean:  ## remove build/, .venv/ and .venv-frameworks/
	@rm -rf build .venv .venv-frameworks
