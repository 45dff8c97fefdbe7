/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A fuzzer is this one function. With libFuzzer (configure --enable-fuzzing) it is called for as
 * long as one likes; otherwise driver.c calls it for the conversations of tests/wire and for
 * damaged copies of them.
 */

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
