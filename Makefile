# Thin: set-up, then CMake. `make demo` runs the main job, `make test` every test that this machine can run.
BUILD := build/release
JOBS  := $(shell nproc)

.PHONY: demo test setup build gpu clients test-clients test-cuda check format clean

demo: build
	@tools/demo $(BUILD)

test: build
	@tools/run-tests $(BUILD)

build: setup
	@tools/build $(BUILD) $(JOBS)

setup:
	@tools/setup

gpu: build
	@tools/gpu $(BUILD)

clients:
	@tools/install-clients

test-clients: build
	@tools/run-tests $(BUILD) clients

test-cuda: build
	@tools/run-tests $(BUILD) cuda

check: build
	@tools/check $(BUILD)

format:
	@tools/format

clean:
	rm -rf build
