// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// Every codec that needs the standard library alone.

#include <penstock/codec/arrow_value.hpp>
#include <penstock/codec/chain.hpp>
#include <penstock/codec/components.hpp>
#include <penstock/codec/concepts.hpp>
#include <penstock/codec/ffcv_image.hpp>
#include <penstock/codec/floating.hpp>
#include <penstock/codec/identity.hpp>
#include <penstock/codec/image_of.hpp>
#include <penstock/codec/integer.hpp>
#include <penstock/codec/litdata_array.hpp>
#include <penstock/codec/mds_array.hpp>
#include <penstock/codec/npy.hpp>
#include <penstock/codec/npy_image.hpp>
#include <penstock/codec/pixels.hpp>
#include <penstock/codec/raw_number.hpp>
#include <penstock/codec/text.hpp>
#include <penstock/codec/tf_example.hpp>
#include <penstock/codec/tf_example_bytes.hpp>
#include <penstock/codec/tf_sequence_example.hpp>
#include <penstock/codec/tokenizer_options.hpp>
