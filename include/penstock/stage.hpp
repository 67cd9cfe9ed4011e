// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/stage/allow_empty.hpp>
#include <penstock/stage/bad_samples.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/batch_by.hpp>
#include <penstock/stage/batch_columns.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/enumerate.hpp>
#include <penstock/stage/fields.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/function_chain.hpp>
#include <penstock/stage/functions.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/map_batch.hpp>
#include <penstock/stage/map_fields.hpp>
#include <penstock/stage/memory.hpp>
#include <penstock/stage/mix_batch.hpp>
#include <penstock/stage/pin_and_copy.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/require.hpp>
#include <penstock/stage/seed.hpp>
#include <penstock/stage/shuffle_buffer.hpp>
#include <penstock/stage/steps.hpp>
#include <penstock/stage/unbatch.hpp>
#include <penstock/stage/watchdog.hpp>
#include <penstock/stage/workers.hpp>
