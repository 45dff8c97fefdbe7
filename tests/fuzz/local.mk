# SPDX-License-Identifier: MIT

check_PROGRAMS += tests/fuzz/fuzz-protocol
tests_fuzz_fuzz_protocol_SOURCES = tests/fuzz/fuzz-protocol.c tests/fuzz/fuzz.h $(protocol_sources)
tests_fuzz_fuzz_protocol_CFLAGS = $(AM_CFLAGS) $(LIBEVENT_CFLAGS) $(FUZZ_FLAGS)
tests_fuzz_fuzz_protocol_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_FLAGS)
tests_fuzz_fuzz_protocol_LDADD = libborder.la libcommon.la $(LIBEVENT_LIBS)
if ENABLE_FUZZING
# With clang, to run as long as one likes: tests/fuzz/fuzz-protocol CORPUS-FOLDER
FUZZ_FLAGS = -fsanitize=fuzzer
else
tests_fuzz_fuzz_protocol_SOURCES += tests/fuzz/driver.c
TESTS += tests/fuzz/test-fuzz.sh
endif
EXTRA_DIST += tests/fuzz/test-fuzz.sh
