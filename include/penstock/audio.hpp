// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/audio/log_mel.hpp>
#include <penstock/audio/log_mel_features.hpp>
#include <penstock/audio/log_mel_options.hpp>
#include <penstock/audio/mfcc_features.hpp>
#include <penstock/audio/spec_augment.hpp>
