// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "names.hpp"

namespace {

const made_up_shards files("of_stages", 128, 2);  // train-0000.tar to train-0127.tar
const auto samples = penstock::webdataset("train-{0000..0127}.tar");
const std::vector<std::string> words = {"a", "loader", "feeds"}, names = words;

}  // namespace
