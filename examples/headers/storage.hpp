// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "names.hpp"

#include <penstock/storage/cached.hpp>
#include <penstock/storage/encryption.hpp>
#include <penstock/storage/http.hpp>
#include <penstock/storage/memory_files.hpp>
#include <penstock/storage/s3.hpp>
#include <penstock/storage/simulated_storage.hpp>
#include <penstock/storage/uring_file.hpp>

#include <chrono>
#include <string_view>

namespace {

/// What a program asks its key service.
[[maybe_unused]] penstock::encryption_key key_from_vault(std::string_view) {
  return penstock::encryption_key(penstock::bytes_of("take the bytes from your vault!!"));
}

}  // namespace
