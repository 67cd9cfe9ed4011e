// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/inspection/consumed.hpp>
#include <penstock/inspection/derive.hpp>
#include <penstock/inspection/describe.hpp>
#include <penstock/inspection/headspace.hpp>
#include <penstock/inspection/ledger_proof.hpp>
#include <penstock/inspection/peek.hpp>
#include <penstock/inspection/prove.hpp>
#include <penstock/inspection/tokenised.hpp>
#include <penstock/inspection/topology.hpp>
