// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// Everything that needs the standard library alone.

#include <penstock/audio.hpp>
#include <penstock/base.hpp>
#include <penstock/codec.hpp>
#include <penstock/core.hpp>
#include <penstock/device.hpp>
#include <penstock/evaluation.hpp>
#include <penstock/image.hpp>
#include <penstock/inspection.hpp>
#include <penstock/integration.hpp>
#include <penstock/observe.hpp>
#include <penstock/order.hpp>
#include <penstock/run.hpp>
#include <penstock/sequence.hpp>
#include <penstock/source.hpp>
#include <penstock/stage.hpp>
#include <penstock/storage.hpp>
#include <penstock/video.hpp>
