// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/call.hpp>
#include <penstock/core/collate.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/core/element.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/fingerprint.hpp>
#include <penstock/core/flat_json.hpp>
#include <penstock/core/guarantee.hpp>
#include <penstock/core/message.hpp>
#include <penstock/core/mistake.hpp>
#include <penstock/core/name.hpp>
#include <penstock/core/open_sample.hpp>
#include <penstock/core/options.hpp>
#include <penstock/core/pack.hpp>
#include <penstock/core/part.hpp>
#include <penstock/core/pipe.hpp>
#include <penstock/core/plan.hpp>
#include <penstock/core/position.hpp>
#include <penstock/core/random.hpp>
#include <penstock/core/record.hpp>
#include <penstock/core/shape_class.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/core/version.hpp>
