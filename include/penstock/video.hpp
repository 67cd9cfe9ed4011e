// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/video/clip.hpp>
#include <penstock/video/film.hpp>
#include <penstock/video/frame_index.hpp>
