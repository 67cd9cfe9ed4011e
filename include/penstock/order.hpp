// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// Everything of the room `order`: which sample is next.

#include <penstock/order/bucket_cut.hpp>
#include <penstock/order/bucket_edges.hpp>
#include <penstock/order/bucket_rule.hpp>
#include <penstock/order/class_balanced.hpp>
#include <penstock/order/compat/distributed_sampler.hpp>
#include <penstock/order/compat/megatron_blend.hpp>
#include <penstock/order/compat/mosaic.hpp>
#include <penstock/order/compat/mosaic_options.hpp>
#include <penstock/order/compat/mosaic_resampled.hpp>
#include <penstock/order/concepts.hpp>
#include <penstock/order/cost_cut.hpp>
#include <penstock/order/cut.hpp>
#include <penstock/order/equal_work.hpp>
#include <penstock/order/fold.hpp>
#include <penstock/order/mixture.hpp>
#include <penstock/order/order_chain.hpp>
#include <penstock/order/packed_cut.hpp>
#include <penstock/order/packing.hpp>
#include <penstock/order/permutation.hpp>
#include <penstock/order/repeat.hpp>
#include <penstock/order/row_packer.hpp>
#include <penstock/order/sample_list.hpp>
#include <penstock/order/schedule.hpp>
#include <penstock/order/sequential.hpp>
#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/order/shuffle_batches.hpp>
#include <penstock/order/skip.hpp>
#include <penstock/order/split.hpp>
#include <penstock/order/split_by_key.hpp>
#include <penstock/order/step_cut.hpp>
#include <penstock/order/subset.hpp>
#include <penstock/order/tail.hpp>
#include <penstock/order/take.hpp>
#include <penstock/order/weighted.hpp>
#include <penstock/order/weights.hpp>
#include <penstock/order/window_packer.hpp>
#include <penstock/order/world.hpp>
