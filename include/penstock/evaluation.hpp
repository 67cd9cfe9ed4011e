// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/evaluation/chosen_cache_node.hpp>
#include <penstock/evaluation/kept_places.hpp>
#include <penstock/evaluation/next_samples.hpp>
#include <penstock/evaluation/parts.hpp>
#include <penstock/evaluation/place_choice.hpp>
#include <penstock/evaluation/reader_calls.hpp>
#include <penstock/evaluation/sample_cache_node.hpp>
#include <penstock/evaluation/stage_chain.hpp>
