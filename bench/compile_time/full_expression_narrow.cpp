// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The program of full_expression.cpp with only the headers it needs.

#include <penstock/codec/integer.hpp>
#include <penstock/codec/npy.hpp>
#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/fields.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/pin_and_copy.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/shuffle_buffer.hpp>
#include <penstock/stage/workers.hpp>

#include "full_expression.hpp"
