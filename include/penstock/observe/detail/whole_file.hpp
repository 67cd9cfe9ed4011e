// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

namespace penstock::inline v0_1::detail {

/// Writes under a temporary name in the same folder, flushes and renames; leaves nothing behind on failure.
/// `number` tells the temporary file from others of this process, `mode`, unless 0, who may read the file.
inline void write_whole_file(const std::string& path, std::string_view bytes, std::string_view called,
                             std::uint64_t number, ::mode_t mode = 0) {
  const std::string temporary = text({path, ".tmp-", ::getpid(), '-', number});
  const auto fail = [&](std::string_view what) {
    const int code = errno;
    std::remove(temporary.c_str());
    throw error(errc::io, {"cannot ", what, " the ", called, " (", std::strerror(code), ")"}).in_file(path);
  };
  std::FILE* const out = std::fopen(temporary.c_str(), "wbx");
  if (out == nullptr) fail("create");
  const bool written = std::fwrite(bytes.data(), 1, bytes.size(), out) == bytes.size() &&
                       std::fflush(out) == 0 && ::fsync(::fileno(out)) == 0 &&
                       (mode == 0 || ::fchmod(::fileno(out), mode) == 0);
  if (std::fclose(out) != 0 || !written) fail("write");
  if (std::rename(temporary.c_str(), path.c_str()) != 0) fail("rename");
}

}  // namespace penstock::inline v0_1::detail
