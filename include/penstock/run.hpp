// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/run/batch_handle.hpp>
#include <penstock/run/batch_view.hpp>
#include <penstock/run/chain.hpp>
#include <penstock/run/chunk_feed.hpp>
#include <penstock/run/column.hpp>
#include <penstock/run/column_set.hpp>
#include <penstock/run/core.hpp>
#include <penstock/run/describe.hpp>
#include <penstock/run/direct_feed.hpp>
#include <penstock/run/engine.hpp>
#include <penstock/run/front.hpp>
#include <penstock/run/machine.hpp>
#include <penstock/run/parts.hpp>
#include <penstock/run/payload.hpp>
#include <penstock/run/peek.hpp>
#include <penstock/run/position_buffer.hpp>
#include <penstock/run/read_ahead.hpp>
#include <penstock/run/ring.hpp>
#include <penstock/run/run.hpp>
#include <penstock/run/slot_memory.hpp>
#include <penstock/run/state.hpp>
#include <penstock/run/watchdog.hpp>
