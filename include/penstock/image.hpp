// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/image/augment.hpp>
#include <penstock/image/blur.hpp>
#include <penstock/image/color.hpp>
#include <penstock/image/crop.hpp>
#include <penstock/image/erase.hpp>
#include <penstock/image/flip.hpp>
#include <penstock/image/geometry.hpp>
#include <penstock/image/image_limits.hpp>
#include <penstock/image/interpolation.hpp>
#include <penstock/image/lazy_image.hpp>
#include <penstock/image/lookup.hpp>
#include <penstock/image/operation.hpp>
#include <penstock/image/orientation.hpp>
#include <penstock/image/pad.hpp>
#include <penstock/image/padded.hpp>
#include <penstock/image/pixels.hpp>
#include <penstock/image/random_erasing.hpp>
#include <penstock/image/random_resized_crop.hpp>
#include <penstock/image/resample.hpp>
#include <penstock/image/resize.hpp>
#include <penstock/image/rotate.hpp>
#include <penstock/image/to_chw.hpp>
#include <penstock/image/values.hpp>
#include <penstock/image/warp.hpp>
#include <penstock/image/warp_matrix.hpp>
