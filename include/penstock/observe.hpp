// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/observe/concepts.hpp>
#include <penstock/observe/counters.hpp>
#include <penstock/observe/interference.hpp>
#include <penstock/observe/metrics.hpp>
#include <penstock/observe/metrics_file.hpp>
#include <penstock/observe/progress.hpp>
#include <penstock/observe/run_monitor.hpp>
#include <penstock/observe/timeline.hpp>
#include <penstock/observe/verdict.hpp>
