// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/sequence/fill_in_the_middle.hpp>
#include <penstock/sequence/join_fields.hpp>
#include <penstock/sequence/join_turns.hpp>
#include <penstock/sequence/joined_sequence.hpp>
#include <penstock/sequence/mask_tokens.hpp>
#include <penstock/sequence/span_corruption.hpp>
#include <penstock/sequence/token_sequence.hpp>
