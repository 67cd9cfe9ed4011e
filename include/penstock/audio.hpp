// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/audio/add_noise.hpp>
#include <penstock/audio/audio_limits.hpp>
#include <penstock/audio/channels.hpp>
#include <penstock/audio/crop.hpp>
#include <penstock/audio/gain.hpp>
#include <penstock/audio/lazy_sound.hpp>
#include <penstock/audio/log_mel.hpp>
#include <penstock/audio/log_mel_features.hpp>
#include <penstock/audio/log_mel_options.hpp>
#include <penstock/audio/mfcc_features.hpp>
#include <penstock/audio/operation.hpp>
#include <penstock/audio/pad_to.hpp>
#include <penstock/audio/segment.hpp>
#include <penstock/audio/sound_length.hpp>
#include <penstock/audio/spec_augment.hpp>
#include <penstock/audio/to_int16.hpp>
