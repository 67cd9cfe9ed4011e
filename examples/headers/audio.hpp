// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "names.hpp"

#include "support/sound_files.hpp"

#include <penstock/audio/resample.hpp>
#include <penstock/audio/speed.hpp>
#include <penstock/codec/audio.hpp>

namespace {

/// Sounds of 2 to 5 s.
const auto sounds = [] {
  std::vector<std::vector<std::byte>> files;
  for (std::size_t seconds = 2; seconds <= 5; ++seconds)
    files.push_back(penstock_test::sound_file(SF_FORMAT_WAV | SF_FORMAT_PCM_16,
                                              penstock_test::tones(seconds * 8'000, 8'000), 8'000));
  return penstock::zip<"flac">(penstock::from(files)) |
         penstock::decode<penstock::field<"flac", penstock::audio>>;
}();

const bool has_folder = std::filesystem::create_directories("derived");

}  // namespace
