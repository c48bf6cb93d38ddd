.PHONY: build test help
help:
	@echo "make build | test"
build:
	/usr/bin/cmake -S . -B build/release -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo
	ninja -C build/release
test: build
	ctest --test-dir build/release --output-on-failure
