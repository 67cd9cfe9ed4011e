// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// What most programs use; all of it needs the standard library alone. penstock/all.hpp has everything.

#include <penstock/codec/chain.hpp>
#include <penstock/codec/floating.hpp>
#include <penstock/codec/identity.hpp>
#include <penstock/codec/integer.hpp>
#include <penstock/codec/npy.hpp>
#include <penstock/codec/text.hpp>
#include <penstock/core.hpp>
#include <penstock/inspection/describe.hpp>
#include <penstock/observe/progress.hpp>
#include <penstock/observe/verdict.hpp>
#include <penstock/order/repeat.hpp>
#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/order/shuffle_batches.hpp>
#include <penstock/order/skip.hpp>
#include <penstock/order/split.hpp>
#include <penstock/order/take.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/directory.hpp>
#include <penstock/source/from.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/source/npy_rows.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/stage/allow_empty.hpp>
#include <penstock/stage/bad_samples.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/enumerate.hpp>
#include <penstock/stage/fields.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/map_batch.hpp>
#include <penstock/stage/map_fields.hpp>
#include <penstock/stage/memory.hpp>
#include <penstock/stage/pin_and_copy.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/require.hpp>
#include <penstock/stage/seed.hpp>
#include <penstock/stage/shuffle_buffer.hpp>
#include <penstock/stage/steps.hpp>
#include <penstock/stage/watchdog.hpp>
#include <penstock/stage/workers.hpp>
#include <penstock/storage/mapped_file.hpp>
