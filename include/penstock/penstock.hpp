// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// What most programs use; all of it needs the standard library alone. penstock/all.hpp has everything.

#include <penstock/codec.hpp>
#include <penstock/core.hpp>
#include <penstock/device/host.hpp>
#include <penstock/inspection/describe.hpp>
#include <penstock/integration/any_loader.hpp>
#include <penstock/observe/counters.hpp>
#include <penstock/observe/progress.hpp>
#include <penstock/observe/verdict.hpp>
#include <penstock/order/permutation.hpp>
#include <penstock/order/repeat.hpp>
#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/order/shuffle_batches.hpp>
#include <penstock/order/skip.hpp>
#include <penstock/order/split.hpp>
#include <penstock/order/tail.hpp>
#include <penstock/order/take.hpp>
#include <penstock/order/world.hpp>
#include <penstock/run/run.hpp>
#include <penstock/run/state.hpp>
#include <penstock/source/concat.hpp>
#include <penstock/source/directory.hpp>
#include <penstock/source/from.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/source/idx.hpp>
#include <penstock/source/lines.hpp>
#include <penstock/source/mix.hpp>
#include <penstock/source/npy_rows.hpp>
#include <penstock/source/tokens.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/source/zip.hpp>
#include <penstock/stage.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/mapped_file.hpp>
